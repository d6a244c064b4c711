"""The system tests of pando-http use the processes of the folder above."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
