"""Fixtures of the differential suite."""

import pytest

import serving


@pytest.fixture(scope="session")
def suite(tmp_path_factory):
    """All servers with all zones, for all tests of this folder."""
    made = serving.Suite(tmp_path_factory.mktemp("differential"))
    try:
        made.start()
        yield made
    finally:
        made.stop()
