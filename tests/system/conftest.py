"""Fixtures of the system tests."""

import pytest

import servers

# What they share takes long to set up. Containers share the paths of their control groups as well: beside another one,
# systemd finds processes there that it cannot name, and fails to end a unit (EIO).
TOGETHER = ("test_isolation", "system/boot/", "differential", "intruders")

# Packages and units are tested with the programs that they carry, and a fleet has many processes.
RELEASE = ("system/boot/", "system/fleet/")
# Attacks, and searches of memory, mean most where no sanitizer has changed what the processes map and may call; the
# programs with sanitizers see what else goes wrong meanwhile.
BOTH = ("system/intruders/", "system/keys/", "tidy/test_hardening.py")


def pytest_configure(config):
    config.addinivalue_line("markers", "release: scripts/test asks it of the release build alone, as it moves many "
                                       "octets or is about what is shipped")
    config.addinivalue_line("markers", "both: scripts/test asks it of the release build as well")


@pytest.hookimpl(tryfirst=True)  # before names of groups are looked for, and tests chosen by their marks
def pytest_collection_modifyitems(items):
    """Tests run side by side, as they wait half of the time; those of one group stay in one."""
    for item in items:
        for group in TOGETHER:
            if group in item.nodeid:
                item.add_marker(pytest.mark.xdist_group(group))
        if any(part in item.nodeid for part in RELEASE):
            item.add_marker(pytest.mark.release)
        if any(part in item.nodeid for part in BOTH):
            item.add_marker(pytest.mark.both)


@pytest.fixture
def pando(tmp_path):
    """Makes Pando instances that are stopped and removed at the end of the test."""
    made = []

    def make(zones, **options):
        instance = servers.Pando(tmp_path / f"pando{len(made)}", zones, **options)
        made.append(instance)
        return instance

    yield make
    for instance in made:
        instance.clean()


@pytest.fixture
def peers(tmp_path):
    """Starts peers and stops them at the end of the test."""
    started = []

    def start(peer, zone=None):
        started.append(peer)
        return peer.start(zone)

    yield start
    for peer in started:
        peer.stop()
