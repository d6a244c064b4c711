"""Bar charts as SVG, readable in light and dark mode, without a library.

A chart has groups with a title and a unit of their own scale, and in each one a bar per server."""

from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH = 860
GUTTER = 40
MARGIN = 20
HEAD = 62
ROW = 20
GROUP_HEAD = 26
GROUP_GAP = 14
NAMES = 52  # width of the servers' names
FIGURES = 128  # width of the figures behind the bars

STYLE = """
  .ground { fill: #ffffff }
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 }
  .group { font-weight: 600 }
  .quiet { fill: #59636e; font-size: 12px }
  .ours { fill: #0969da }
  .ours.part { fill: #80b3ee }
  .theirs { fill: #848d97 }
  .theirs.part { fill: #c3c9d0 }
  .spread { stroke: #1f2328; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 }
    text { fill: #e6edf3 }
    .quiet { fill: #9198a1 }
    .ours { fill: #4493f8 }
    .ours.part { fill: #1f4f8f }
    .theirs { fill: #7d8590 }
    .theirs.part { fill: #3d444d }
    .spread { stroke: #e6edf3 }
  }
"""


class Bar(NamedTuple):
    """`parts`: lengths that follow each other; `low` and `high`: the spread of their sum; `figure`: its text."""

    name: str
    parts: tuple
    low: float
    high: float
    figure: str
    ours: bool = False


class Group(NamedTuple):
    title: str
    bars: list


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


def draw_bar(bar, x, y, scale):
    kind = "ours" if bar.ours else "theirs"
    lines = [f'<text x="{x}" y="{y + 13}">{escape(bar.name)}</text>']
    at = x + NAMES
    for i, part in enumerate(bar.parts):
        width = max(part * scale, 0.5)
        lines.append(f'<rect class="{kind}{" part" if i else ""}" x="{number(at)}" y="{y + 2}" width="{number(width)}" '
                     f'height="{ROW - 6}"/>')
        at += width
    left, right = (x + NAMES + end * scale for end in (bar.low, bar.high))
    if right - left >= 1:
        middle = y + 2 + (ROW - 6) / 2
        lines.append(f'<path class="spread" d="M{number(left)} {number(middle)}H{number(right)}"/>')
    lines.append(f'<text class="quiet" x="{number(max(at, right) + 6)}" y="{y + 13}">{escape(bar.figure)}</text>')
    return lines


def draw_group(group, x, y, width):
    longest = max(max(sum(bar.parts), bar.high) for bar in group.bars)
    scale = (width - NAMES - FIGURES) / longest if longest else 0
    lines = [f'<text class="group" x="{x}" y="{y + 15}">{escape(group.title)}</text>']
    for i, bar in enumerate(group.bars):
        lines += draw_bar(bar, x, y + GROUP_HEAD + i * ROW, scale)
    return lines


def height_of(group):
    return GROUP_HEAD + len(group.bars) * ROW + GROUP_GAP


def columns_of(groups):
    """Two columns in reading order, as equal in height as that allows."""
    heights = [height_of(group) for group in groups]
    cut = min(range(1, len(groups) + 1), key=lambda at: (max(sum(heights[:at]), sum(heights[at:])), -at))
    return [groups[:cut], groups[cut:]]


def draw(title, subtitle, groups):
    """The chart's text; each group has the scale of its longest bar."""
    columns = columns_of(groups)
    height = HEAD + max(sum(map(height_of, column)) for column in columns) + MARGIN - GROUP_GAP
    width = (WIDTH - 2 * MARGIN - GUTTER) // 2
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
             f'height="{height}" role="img">', f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
             f'<rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>',
             f'<text class="title" x="{MARGIN}" y="28">{escape(title)}</text>',
             f'<text class="quiet" x="{MARGIN}" y="47">{escape(subtitle)}</text>']
    for i, column in enumerate(columns):
        y = HEAD
        for group in column:
            lines += draw_group(group, MARGIN + i * (width + GUTTER), y, width)
            y += height_of(group)
    return "\n".join([*lines, "</svg>"]) + "\n"
