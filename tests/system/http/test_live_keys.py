"""A key, a role or a zone of http.keys counts from the reload of the manager on, without a restart of pando-http."""

import json

import pytest

from test_api_write import Client, replace
from test_http import ADMIN, READ, beside  # noqa: F401: a fixture

LATE = "late-secret-of-a-test"
ZONES = "/api/v1/servers/localhost/zones"


def configure(server, program, keys, *more):
    """Writes the file; a reload is for the test to ask for."""
    server.write_config()
    section = f"http: {{listen: [127.0.0.1@{program.port}], user: root, keys: {json.dumps(keys)}}}"
    server.config.write_text("\n".join([server.config.read_text() + section, *more]) + "\n")


def reload(server):
    result = server.control("reload")
    assert result["restart_needed"] == [], result


def test_a_key_comes_and_goes_with_a_reload(beside):
    server, program = beside(section=f"keys: [{{name: a, secret: {READ}}}]")
    first, late = Client(program, READ), Client(program, LATE)
    assert first("GET", ZONES)[0] == 200 and late("GET", ZONES)[0] == 401
    configure(server, program, [{"name": "late", "secret": LATE}])
    assert first("GET", ZONES)[0] == 200 and late("GET", ZONES)[0] == 401, "the file is not in force yet"
    reload(server)
    assert late("GET", ZONES)[0] == 200 and first("GET", ZONES)[0] == 401
    # It stays so without a manager, and with the next one.
    server.kill()
    assert late("GET", ZONES)[0] == 200 and first("GET", ZONES)[0] == 401
    server.start("example.test")
    assert late("GET", ZONES)[0] == 200 and first("GET", ZONES)[0] == 401


def test_roles_and_zones_of_a_key_follow(beside):
    server, program = beside(zones=("example.test", "other.test"), section=f"keys: [{{name: a, secret: {READ}}}]")
    client = Client(program, READ)
    change = replace("www.example.test.", "A", "192.0.2.7")
    assert client.patch(change)[0] == 403
    configure(server, program, [{"name": "a", "secret": READ, "role": "write", "zones": ["example.test"]}])
    reload(server)
    assert client.patch(change)[0] == 204
    assert [zone["name"] for zone in client("GET", ZONES)[1]] == ["example.test."]
    assert client("GET", f"{ZONES}/other.test.")[0] == 404
    configure(server, program, [{"name": "a", "secret": READ, "zones": ["other.test"]}])
    reload(server)
    assert client("GET", f"{ZONES}/other.test.")[0] == 200 and client("GET", f"{ZONES}/example.test.")[0] == 404


def test_other_parts_of_the_configuration_follow(beside):
    """Primaries of new zones are addresses of `remotes`, and their template is `http.template`."""
    server, program = beside(section=f"keys: [{{name: a, secret: {ADMIN}, role: admin}}]")
    client = Client(program, ADMIN)
    secondary = {"name": "second.test.", "kind": "Slave", "masters": ["192.0.2.9"]}
    assert client("POST", ZONES, secondary)[0] == 422
    server.remotes = [{"name": "up", "address": ["192.0.2.9"]}]
    server.keys = [{"name": "late-key", "algorithm": "hmac-sha256", "secret": "cGFuZG8="}]
    configure(server, program, [{"name": "a", "secret": ADMIN, "role": "admin"}])
    reload(server)
    assert [key["id"] for key in client("GET", ZONES.replace("zones", "tsigkeys"))[1]] == ["late-key."]
    assert client("POST", ZONES, secondary)[0] == 201


def test_without_a_secret_a_reload_lets_nobody_in(beside):
    """The file of a secret is gone: the reload is refused, and the keys before stay."""
    server, program = beside(section=f"keys: [{{name: a, secret: {READ}}}]")
    configure(server, program, [{"name": "a", "secret-file": str(server.folder / "none")}])
    with pytest.raises(AssertionError, match="secret-file"):
        server.control("reload")
    assert Client(program, READ)("GET", ZONES)[0] == 200 and Client(program, "-")("GET", ZONES)[0] == 401
