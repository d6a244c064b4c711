#!/usr/bin/python3
"""CPU time to verify a signed zone, beside what its signatures cost at the speed of `openssl speed`.

    PANDO_BUILD=build/release bench/verification.py [NAMES [FOLDER]]

Each of NAMES has an address: with signatures and NSEC four records, two of them signatures (ECDSAP256SHA256). The zone
is made by dnssec-signzone (bind9-utils) in FOLDER, and kept there for the next run. Three turns; in each, OpenSSL's rate
of verifications is measured before and after `pandoctl zone check`. The ratio is the CPU time that openssl would need
for these signatures, to the CPU time that the check of signatures needs: the same check with `--verify off` is taken
from it. OpenSSL runs as many processes as the check has threads, as processors that share a core or a clock are slower
together. The second ratio is of elapsed time: the rate of all these processes, to that of the whole check.
"""

import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(SOURCE / "tests/system")]

import servers  # noqa: E402

ZONE = "signed.test"
THREADS = os.cpu_count()  # as zone check


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, **options).stdout


def signed_zone(folder, names):
    signed = folder / f"{names}.signed"
    if signed.exists():
        return signed
    (folder / "plain").write_text(
        "$TTL 3600\n@ SOA ns admin 1 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n" +
        "".join(f"h{number} A 10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}\n" for number in range(names)))
    for options in (["-f", "KSK"], []):
        run("dnssec-keygen", "-a", "ECDSAP256SHA256", *options, ZONE, cwd=folder)
    run("dnssec-signzone", "-S", "-x", "-P", "-n", "1", "-O", "raw=0", "-o", ZONE, "-f", "raw", "plain", cwd=folder)
    run("named-compilezone", "-q", "-f", "raw", "-F", "text", "-s", "full", "-o", signed, ZONE, "raw", cwd=folder)
    return signed


def openssl_rate():
    """Verifications in a second of user time, of each of the processes."""
    text = run("openssl", "speed", "-seconds", "3", "-multi", THREADS, "ecdsap256")
    return float(re.findall(r"([\d.]+)\s*$", text, re.M)[-1]) / THREADS


def times_of(*words):
    """CPU and elapsed time of a program."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run(*words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, time.monotonic() - begun)


def main(names, parent):
    folder = pathlib.Path(parent or tempfile.mkdtemp(prefix="verification-"))
    folder.mkdir(exist_ok=True)
    zone = signed_zone(folder, names)
    with open(zone) as lines:
        records = signatures = 0
        for line in lines:
            records += not line.startswith(";")
            signatures += " IN RRSIG\t" in line
    print(f"{records} records, {signatures} signatures", flush=True)
    check = (servers.build_folder() / "pandoctl", "zone", "check", ZONE, zone, "--verify")
    for _ in range(3):
        rates = [openssl_rate()]
        plain, plain_elapsed = times_of(*check, "off")
        verified, elapsed = times_of(*check, "refuse")
        rates.append(openssl_rate())
        rate = sum(rates) / 2
        floor = signatures / rate
        print(f"openssl {rates[0]:.0f} and {rates[1]:.0f} a second: {floor:.2f} CPU s; zone check {plain:.2f} without, "
              f"{verified:.2f} with signatures; ratio {floor / (verified - plain):.3f}, of elapsed time "
              f"{floor / THREADS / (elapsed - plain_elapsed):.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 250_000, sys.argv[2] if len(sys.argv) > 2 else None)
