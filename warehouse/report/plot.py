"""Parts of a picture as SVG: axes with round ticks. Its colours are those of the page, in light and in dark."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from warehouse.report.markup import joined

WIDTH = 480  # of every picture, so that its letters stay legible on a telephone
TICKS = 5
_X_TICK = Markup('<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" class="grid"/>'
                 '<text x="{x:.1f}" y="{text_y}" text-anchor="middle">{text}</text>')  # fmt: skip
_Y_TICK = Markup('<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
                 '<text x="{text_x}" y="{text_y:.1f}" text-anchor="end">{text}</text>')  # fmt: skip
_TITLE = Markup('<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="title">{text}</text>')
_SVG = Markup('<svg viewBox="0 0 {} {}" class="plot">{}</svg>')


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """About five round values inside the scale."""
        step = _round_step((self.high - self.low) / TICKS)
        first = math.ceil(self.low / step - 1e-9)
        return [at * step for at in range(first, math.floor(self.high / step + 1e-9) + 1)]


def scale(values: Iterable[float], start: float, end: float, *, from_zero: bool = True) -> Scale:
    """A scale that holds these values with some room above, and below where it does not begin at 0."""
    known = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(known), max(known)
    room = 0.08 * ((high - (0.0 if from_zero else low)) or abs(high) or 1.0)
    return Scale(min(0.0, low) if from_zero else low - room, high + room, start, end)


def picture(height: float, *parts: Markup) -> Markup:
    """The whole picture."""
    return _SVG.format(WIDTH, math.ceil(height), joined(parts))


def x_axis(along: Scale, top: float, bottom: float, title: str) -> Markup:
    """Ticks with grid lines, and the title below them."""
    ticks = (
        _X_TICK.format(x=along.at(one), top=top, bottom=bottom, text_y=bottom + 14, text=number(one))
        for one in along.ticks()
    )
    return joined(ticks) + text((along.start + along.end) / 2, bottom + 30, title, anchor="middle")


def y_axis(up: Scale, left: float, right: float, title: str) -> Markup:
    """The same of the other axis; its title stands above it."""
    ticks = (
        _Y_TICK.format(y=up.at(one), left=left, right=right, text_x=left - 5, text_y=up.at(one) + 4, text=number(one))
        for one in up.ticks()
    )
    return joined(ticks) + text(4, up.end - 8, title)


def text(x: float, y: float, said: str, anchor: str = "start") -> Markup:
    """A text at a place."""
    return _TITLE.format(x=x, y=y, anchor=anchor, text=said)


def shortened(said: str, most: int) -> str:
    """A text that fits; its end is the part that tells scenarios apart."""
    return said if len(said) <= most else f"…{said[1 - most :]}"


def number(value: float) -> str:
    """A round number as short as it goes."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004 - with a comma


def _round_step(least: float) -> float:
    """The next of 1, 2, 5, 10 and so on."""
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next(one * power for one in (1, 2, 5, 10) if one * power >= least * (1 - 1e-9)) if least > 0 else power
