"""Horizontal bars beside a label each, which stay legible on a telephone."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from warehouse.report.markup import NOTHING, joined
from warehouse.report.plot import WIDTH, Scale, picture, shortened, text

LEFT, RIGHT, ROW, TOP = 130, WIDTH - 150, 22, 10
LABEL = 19  # letters left of the bars
_BAR = Markup('<rect x="{x}" y="{y}" width="{width:.1f}" height="13" class="{kind}"/>')
_LIMIT = Markup('<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" class="limit"/>')


@dataclass(frozen=True)
class Measure:
    """One bar; `said` is its number in words, `kind` the class of its colour."""

    label: str
    value: float
    said: str
    kind: str = "bar"


def bars(measures: Sequence[Measure], limit: tuple[float, str] | None = None) -> Markup:
    """The picture; `limit` is a value with a line of its own and what it is."""
    highest = max([*(one.value for one in measures), limit[0] if limit else 0.0]) or 1.0
    along, top = Scale(0.0, highest, LEFT, RIGHT), TOP + (16 if limit else 0)
    # A label stands once for the bars that share it.
    shown = ["" if at and one.label == measures[at - 1].label else one.label for at, one in enumerate(measures)]
    ends = [max(along.at(one.value), along.at(limit[0]) if limit else 0.0) for one in measures]
    rows = joined(_row(one, shown[at], ends[at], along, top + ROW * at) for at, one in enumerate(measures))
    bottom = top + ROW * len(measures)
    line = NOTHING
    if limit is not None:
        x = along.at(limit[0])
        line = _LIMIT.format(x=x, top=top - 4, bottom=bottom) + text(x, top - 8, limit[1], "middle")
    return picture(bottom + 6, rows, line)


def _row(one: Measure, shown: str, end: float, along: Scale, top: int) -> Markup:
    """A label, its bar, and behind both bar and limit its number."""
    label = text(LEFT - 6, top + 13, shortened(shown, LABEL), "end")
    bar = _BAR.format(x=LEFT, y=top + 2, width=max(0.5, along.at(one.value) - LEFT), kind=one.kind)
    return label + bar + text(end + 6, top + 13, one.said)
