"""Fixtures of the tests of `server.xdp`."""

import pytest

from hosts import Wire, XdpPando


@pytest.fixture
def make(tmp_path):
    """Makes servers with `server.xdp`, each on a wire of its own, and removes them."""
    made = []

    def build(xdp=None, queues=1, mtu=1500, **options):
        wire = Wire(queues, mtu)
        made.append(wire)
        server = XdpPando(tmp_path / f"pando{len(made)}", wire, xdp or [{"interface": "eth0"}], **options)
        made.append(server)
        return server

    yield build
    for one in reversed(made):
        one.clean() if isinstance(one, XdpPando) else one.close()
    for one in made:
        if isinstance(one, XdpPando):
            assert not one.faults_of_sanitizers()
