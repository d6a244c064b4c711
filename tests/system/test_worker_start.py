"""A manager killed while it starts a worker: the next manager has a worker that answers."""

import signal

import pytest

FILE = """$TTL 300
@ SOA ns admin 1 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
"""


@pytest.mark.parametrize("worker", ["runs", "is held before its Hello", "runs on"])
@pytest.mark.parametrize("point", ["worker-page-made", "worker-started", "worker-recorded"])
def test_the_next_manager_has_a_worker(pando, tmp_path, point, worker):
    path, held = tmp_path / "example.zone", tmp_path / "held"
    path.write_text(FILE)
    server = pando([{"name": "example", "file": str(path)}], workers=1)
    if worker != "runs":
        held.touch()
        server.pause_at = ("worker-started", held)
    server.crash_at = point
    with pytest.raises(AssertionError):
        server.start("example")
    assert server.process.wait(60) == -signal.SIGKILL
    server.crash_at = server.pause_at = None
    if worker == "runs on":  # comes while the next manager starts
        held.unlink()
    server.start("example", seconds=60)
    rows = server.workers().values()
    assert [row["state"] for row in rows] == ["serving"]
    assert server.ask("ns.example").answer
