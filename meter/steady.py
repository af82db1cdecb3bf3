"""The steady window of a closed loop: from the ramp's end to the beginning of the drain."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

SHARE = 0.99
RULE = "from the first measured send to the last moment with 99 % of the requested streams in flight, once they were"


@dataclass(frozen=True, slots=True)
class Window:
    """Nanoseconds since the origin, and the number of streams live in between, weighted by time."""

    begin_ns: int
    end_ns: int
    live_mean: float
    live_asked: int
    rule: str = RULE

    def describe(self) -> dict[str, Any]:
        """Return the window as meter.json holds it."""
        return asdict(self)

    def name(self, row: dict[str, Any]) -> str | None:
        """Place a request: "ramp" if sent before the window, "steady" if ended in it, else "drain"."""
        if row["phase"] != "measured" or row["send_start_ns"] is None:
            return None
        if row["send_start_ns"] < self.begin_ns:
            return "ramp"
        is_inside = row["done_at_ns"] is not None and row["done_at_ns"] <= self.end_ns
        return "steady" if is_inside else "drain"


def steady_window(rows: Sequence[dict[str, Any]], asked: int, ended_ns: int) -> Window | None:
    """Find the window from the rows of all requests, warm-up included; None if too few streams were ever live.

    A stream is live from the sending of its request to the end of the answer, or to `ended_ns` without one.
    """
    spans = [
        (row["send_start_ns"], ended_ns if row["done_at_ns"] is None else row["done_at_ns"])
        for row in rows
        if row["send_start_ns"] is not None
    ]
    first_measured = min((row["send_start_ns"] for row in rows if _is_measured(row)), default=None)
    if first_measured is None:
        return None
    steps = sorted([(begin, 1) for begin, _end in spans] + [(end, -1) for _begin, end in spans])
    enough = math.ceil(SHARE * asked)
    reached = [live >= enough for live in accumulate(step for _at, step in steps)]
    if True not in reached:
        return None
    begin_ns = max(steps[reached.index(True)][0], first_measured)
    # Enough are live up to the step after the last moment at which they were.
    last = len(reached) - 1 - reached[::-1].index(True)
    end_ns = steps[last + 1][0] if last + 1 < len(steps) else steps[last][0]
    if end_ns <= begin_ns:
        return None
    overlap = sum(max(min(end, end_ns) - max(begin, begin_ns), 0) for begin, end in spans)
    return Window(begin_ns, end_ns, overlap / (end_ns - begin_ns), asked)


def _is_measured(row: dict[str, Any]) -> bool:
    return row["phase"] == "measured" and row["send_start_ns"] is not None
