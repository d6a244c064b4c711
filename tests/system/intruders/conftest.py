"""A hijacked worker meets the collector of the tests of dnstap."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "dnstap"))
