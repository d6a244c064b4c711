"""Fixtures of the differential suite."""

import pytest

import serving


@pytest.fixture(scope="session")
def suite(tmp_path_factory):
    """All servers with all zones, for all tests of this folder."""
    folder = tmp_path_factory.mktemp("differential")
    made = serving.Suite(folder, serving.all_zones(folder))
    try:
        made.start()
        yield made
    finally:
        made.stop()
