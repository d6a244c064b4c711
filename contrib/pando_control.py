"""A client of Pando's control socket (docs/reference/control-protocol.md), with the standard library alone.

    from pando_control import Control

    with Control("/run/pando") as control:
        with control.transaction("example.com", "example.net") as edit:
            edit.set("www", "A", "192.0.2.1", ttl=300, zone="example.com")
            edit.unset("old", zone="example.net")
        for record in control.read("example.com", "www"):
            print(record["owner"], record["ttl"], record["type"], record["rdata"])
"""

import json
import pathlib
import socket

PACKET_BYTES = 128 << 10
IN_FLIGHT = 48  # the manager takes 64 requests of a connection before it has answered the first one


class ControlError(Exception):
    """The manager refused a request. `code` is one of the words of the protocol, such as "not-found"."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Control:
    """One connection. Replies come in the order of the requests; a closed connection raises ConnectionError."""

    def __init__(self, run_directory="/run/pando", timeout=60):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(timeout)
        self._socket.connect(str(pathlib.Path(run_directory) / "control.sock"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def call(self, verb, **arguments):
        """Sends one request; gives the result, or raises ControlError."""
        self._send(verb, arguments)
        return self._result()

    def call_each(self, verb, requests):
        """Sends many requests, given as their arguments, and does not wait for each reply. Gives for each, in order,
        its result, or a ControlError. All replies have to be taken before another call."""
        sent = taken = 0
        for arguments in requests:
            if sent - taken == IN_FLIGHT:
                yield self._result_or_error()
                taken += 1
            self._send(verb, arguments)
            sent += 1
        for _ in range(sent - taken):
            yield self._result_or_error()

    def _send(self, verb, arguments):
        text = json.dumps({"verb": verb, "args": arguments}).encode()
        pieces = [text[at:at + PACKET_BYTES - 1] for at in range(0, len(text), PACKET_BYTES - 1)]
        for number, piece in enumerate(pieces):
            self._socket.send((b"." if number == len(pieces) - 1 else b"+") + piece)

    def _result(self):
        reply = self._receive()
        if not reply["ok"]:
            raise ControlError(reply["code"], reply["error"])
        return reply["result"]

    def _result_or_error(self):
        try:
            return self._result()
        except ControlError as error:
            return error

    def _receive(self):
        text = b""
        while True:
            packet = self._socket.recv(PACKET_BYTES)
            if not packet:
                raise ConnectionError("the manager closed the connection")
            text += packet[1:]
            if packet[:1] == b".":
                return json.loads(text)

    def add_zones(self, zones):
        """Adds zones, given as in the configuration's `zones`, all or none. Zones whose files failed are in the
        result's "problems"."""
        return self.call("zone-add", zones=list(zones))

    def add_each(self, zones):
        """Adds zones, each for itself. Gives for each, in order, its result, or a ControlError; a zone that has its
        result is durable and served. Several are under way at once, and share the waits for the disk."""
        return self.call_each("zone-add", ({"zones": [zone]} for zone in zones))

    def remove_zones(self, *names):
        return self.call("zone-remove", names=list(names))

    def configure_zone(self, name, key, value=None):
        """None: the zone has its template's value again."""
        return self.call("zone-configure", name=name, key=key, value=value)

    def reload_zones(self, *names):
        """Reads the zones' files again. Mistakes are in the result's "problems"."""
        return self.call("zone-reload", names=list(names))

    def pages(self, verb, rows, **arguments):
        """The rows of all pages of a list."""
        after = ""
        while True:
            page = self.call(verb, after=after, **arguments)
            yield from page[rows]
            if not page["next"] or page["next"] == after:
                return
            after = page["next"]

    def status(self):
        return self.call("status")

    def zones(self):
        return self.pages("zone-list", "zones")

    def read(self, zone, owner="", type=""):
        """Records of a zone: all, of an owner, or of an owner's type. Pages are read one after the other."""
        return self.pages("zone-read", "records", name=zone, owner=owner, type=type)

    def history(self, zone):
        return self.pages("zone-history", "changesets", name=zone)

    def transaction(self, *zones, if_serial=None):
        """For `with`: commits at its end as one version, or aborts when an exception leaves it, or this process dies."""
        return Transaction(self, zones, if_serial)


class Transaction:
    """The open transactions of one or more zones."""

    def __init__(self, control, zones, if_serial=None):
        self._control, self.zones = control, list(zones)
        self._if_serial = {} if if_serial is None else {"if_serial": if_serial}
        self.committed = None  # after the end: a row for each zone

    def __enter__(self):
        self._control.call("zone-begin", names=self.zones, while_connected=True, **self._if_serial)
        return self

    def __exit__(self, exception, *_):
        if exception is not None:
            self._control.call("zone-abort", names=self.zones)
            return
        try:
            self.committed = self._control.call("zone-commit", names=self.zones)["committed"]
        except ControlError:
            self._control.call("zone-abort", names=self.zones)
            raise

    def _zone(self, zone):
        if zone is None and len(self.zones) > 1:
            raise ValueError("several zones: say which one is meant")
        return zone or self.zones[0]

    def set(self, owner, type, rdata, ttl=None, zone=None):
        arguments = {} if ttl is None else {"ttl": ttl}
        return self._control.call("zone-set", name=self._zone(zone), owner=owner, type=type, rdata=rdata, **arguments)

    def unset(self, owner, type="", rdata="", zone=None):
        return self._control.call("zone-unset", name=self._zone(zone), owner=owner, type=type, rdata=rdata)

    def diff(self, zone=None):
        """What the commit would change; all pages as one."""
        whole = {"removed": [], "added": []}
        after = ""
        while True:
            page = self._control.call("zone-diff", name=self._zone(zone), after=after)
            whole["removed"] += page["removed"]
            whole["added"] += page["added"]
            if not page["next"]:
                return whole
            after = page["next"]
