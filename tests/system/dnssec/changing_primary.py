"""A primary of "one.test" whose zone changes during a test."""

import os
import shutil
import signal
import time

import servers


class Primary:
    """BIND or Knot with "one.test", as AXFR or IXFR sends it; replace() has it read another file."""

    def __init__(self, kind, tmp_path, peers, first):
        self.path = tmp_path / "primary.zone"
        self.edits = 0
        shutil.copy(first, self.path)
        if kind == "bind":
            self.server = servers.Bind(tmp_path / "bind", {"one.test": (
                f'type primary; file "{self.path}"; ixfr-from-differences yes; allow-transfer {{ any; }};'
                ' check-integrity no;')}, options="max-ixfr-ratio unlimited;")
        else:
            (tmp_path / "knot/db").mkdir(parents=True)
            self.server = servers.Knot(
                tmp_path / "knot", {"one.test": self.path},
                text="acl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer\n",
                zone_options={"one.test": "    acl: all\n    zonefile-load: whole\n    semantic-checks: off\n"})
        peers(self.server, "one.test")

    def replace(self, path, serial):
        shutil.copy(path, self.path)
        self.edits += 1
        later = time.time() + 2 * self.edits  # BIND looks at whole seconds
        os.utime(self.path, (later, later))
        self.server.process.send_signal(signal.SIGHUP)
        servers.wait_until("the primary has read its file", lambda: self.server.serial("one.test") == serial)
