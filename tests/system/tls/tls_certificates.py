"""Keys and certificates of the tests, made by openssl(1)."""

import pathlib
import subprocess


def openssl(*words, octets=None):
    done = subprocess.run(["openssl", *map(str, words)], input=octets, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class Pair:
    """A private key and its certificate, in files."""

    def __init__(self, folder, name):
        self.key, self.certificate = folder / f"{name}.key", folder / f"{name}.pem"

    def pin(self):
        """SHA-256 of the public key, in base64 (RFC 7858 §4.2)."""
        key = openssl("pkey", "-in", self.key, "-pubout", "-outform", "DER")
        return openssl("base64", "-A", octets=openssl("dgst", "-sha256", "-binary", octets=key)).decode().strip()

    def secret(self):
        """The octets of the private number, which nobody but pando-tls should have."""
        text = openssl("ec", "-in", self.key, "-text", "-noout").decode()
        digits = text.split("priv:")[1].split("pub:")[0]
        return bytes.fromhex("".join(digits.split()).replace(":", ""))[-32:]


def self_signed(folder, name, days=30, host=None):
    pair = Pair(folder, name)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", days,
            "-subj", f"/CN={host or name}", "-addext", f"subjectAltName=DNS:{host or name}",
            "-keyout", pair.key, "-out", pair.certificate)
    return pair


class Authority:
    """Signs certificates for host names."""

    def __init__(self, folder, name="authority"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pair = self_signed(self.folder, name)

    def sign(self, name, host=None, begin=None, end=None):
        """A pair for the host; `begin`, `end`: YYYYMMDDHHMMSSZ."""
        pair = Pair(self.folder, name)
        host = host or name
        request = self.folder / f"{name}.csr"
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-subj", f"/CN={host}",
                "-keyout", pair.key, "-out", request)
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName=DNS:{host}\n")
        if begin is None:
            openssl("x509", "-req", "-in", request, "-CA", self.pair.certificate, "-CAkey", self.pair.key,
                    "-days", 30, "-extfile", extensions, "-out", pair.certificate)
            return pair
        database = self.folder / f"{name}.ca"
        database.mkdir()
        (database / "index").write_text("")
        (database / "serial").write_text("01\n")
        config = database / "config"
        config.write_text(f"[ca]\ndefault_ca=one\n[one]\ndatabase={database}/index\nserial={database}/serial\n"
                          f"new_certs_dir={database}\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n")
        openssl("ca", "-batch", "-config", config, "-cert", self.pair.certificate, "-keyfile", self.pair.key,
                "-in", request, "-startdate", begin, "-enddate", end, "-extfile", extensions, "-out", pair.certificate,
                "-notext")
        return pair
