"""Statistics of interleaved turns: medians, spreads, and whether two servers are told apart.

Turn i of each server ran next to turn i of the others, so a busy minute hits all of them. Hence servers are compared by
the ratios of such pairs, and not by the ratio of their medians."""

import math
from typing import NamedTuple

FEWEST = 3  # pairs: with fewer there is no spread to speak of


def quantile(values, share):
    """By linear interpolation between neighbours."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


class Spread(NamedTuple):
    """The median, and the ends of the middle 80 % of the values."""

    median: float
    low: float
    high: float


def spread(values):
    return Spread(quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9))


class Comparison(NamedTuple):
    """The ratio of a server's figure to the reference's; `apart`: whether it may be claimed."""

    ratio: Spread
    apart: bool


def compare(reference, other):
    """Compares two lists of turns, in which None stands for a turn that failed. None without a common turn.

    The servers are told apart if the median ratio is further from 1 than the ends of the ratios are from each other.
    Ratios are compared as logarithms, so that it does not matter which server is the reference."""
    ratios = [b / a for a, b in zip(reference, other) if a is not None and b is not None and a > 0]
    if not ratios:
        return None
    found = spread(ratios)
    certain = len(ratios) >= FEWEST and found.low > 0
    return Comparison(found, certain and abs(math.log(found.median)) > math.log(found.high / found.low))
