#!/usr/bin/env python3
"""Makes the signed zones of this folder: sign.py [SOURCE]...

dnssec-signzone (BIND) makes the NSEC and NSEC3 chains, so that what the scenarios expect does not
come from code of ours. Signatures and keys are then replaced by short ones: nothing here validates.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# output, source, apex, options of dnssec-signzone
ZONES = [
    ("ex.nsec.zone", "ex.zone", "ex", []),
    ("ex.nsec3.zone", "ex.zone", "ex", ["-3", "aabb", "-H", "1", "-A"]),
    ("aw.nsec.zone", "aw.zone", "aw", []),
    ("aw.nsec3.zone", "aw.zone", "aw", ["-3", "-", "-H", "0"]),
    ("child.nsec.zone", "child.zone", "child.ex", []),
    ("rfc4035.nsec.zone", "rfc4035.zone", "example", []),
    ("rfc6672.nsec.zone", "rfc6672.zone", "example.com", []),
    ("rfc6672.nsec3.zone", "rfc6672.zone", "example.com", ["-3", "-", "-H", "0"]),
    ("rfc5155.nsec3.zone", "rfc5155.zone", "example", ["-3", "aabbccdd", "-H", "12", "-A"]),
]


def run(*args, cwd):
    subprocess.run(args, cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def sign(source, apex, options, work):
    for extra in ([], ["-f", "KSK"]):
        run("dnssec-keygen", "-q", "-a", "ECDSAP256SHA256", *extra, apex, cwd=work)
    run("dnssec-signzone", "-q", "-S", "-o", apex, "-O", "full", "-f", "signed", *options,
        "-s", "20200101000000", "-e", "20400101000000", str(source), cwd=work)
    return (pathlib.Path(work) / "signed").read_text()


def shorten(text):
    lines = [line.split(";")[0].rstrip() if not line.startswith(";") else "" for line in text.splitlines()]
    lines = [re.sub(r"[ \t]+", " ", line) for line in lines if line.strip()]
    lines = [re.sub(r"( RRSIG (?:\S+ ){6})\d+ (\S+) .*", r"\g<1>1 \2 c2ln", line) for line in lines]
    lines = [re.sub(r"( DNSKEY \d+ 3 13) .*", r"\1 a2V5", line) for line in lines]
    lines = [line for line in lines if " TYPE65534 " not in line]
    return "".join(line + "\n" for line in lines)


def main():
    here = pathlib.Path(__file__).resolve().parent
    for output, source, apex, options in ZONES:
        if len(sys.argv) > 1 and source not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as work:
            text = shorten(sign(here / source, apex, options, work))
        (here / output).write_text(f"; Made by sign.py from {source}. Do not edit.\n" + text)


if __name__ == "__main__":
    main()
