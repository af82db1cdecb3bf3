"""The judgement of each series of one night, and its changes."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.errors import UsageError
from warehouse.lake.query import ask

_VERDICTS = """
SELECT source, series, metric, unit, judged_night, judgement, reason, baseline_nights, last_good, effect_pct, ci_lo,
    ci_hi, p, mde_pct, min_effect_pct, control_slope, rerun, rerun_of
FROM series_verdicts WHERE night = ?
ORDER BY judgement NOT IN ('suspect', 'confirmed'), abs(effect_pct) DESC NULLS LAST, series, metric
"""
_CHANGES = """
SELECT * FROM changes
WHERE $1 IN (night, first_bad)
ORDER BY direction = 'better', event_id, series, metric
"""
_NIGHTS = "SELECT DISTINCT night FROM series_verdicts ORDER BY night DESC LIMIT 3"
_WORDS = {
    "confirmed": "confirmed",
    "suspect": "suspect",
    "host outlier": "host outlier",
    "inconclusive": "inconclusive",
    "equivalent": "equivalent",
    "insufficient": "with too few nights before them",
}


def said_of_night(data: Path, night: str, pattern: str | None = None) -> list[dict[str, Any]]:
    """The verdict on each series of a night whose name or metric matches; those that need attention first.

    Raises UsageError if that night was not judged.
    """
    rows = verdicts_of(data, night)
    if not rows:
        known = ", ".join(row[0] for row in ask(data, _NIGHTS).rows) or "none yet"
        raise UsageError(f"no series was judged in night {night!r}; the latest judged nights: {known}")
    wanted = re.compile(pattern or "", re.IGNORECASE)
    return [row for row in rows if wanted.search(f"{row['source']} {row['series']} {row['metric']}")]


def verdicts_of(data: Path, night: str) -> list[dict[str, Any]]:
    """The verdict on each series of a night, those that need attention first; empty if it was not judged."""
    return ask(data, _VERDICTS, (night,)).dicts()


def changes_of_night(data: Path, night: str) -> list[dict[str, Any]]:
    """What a night reported, and what later nights reported of it."""
    return ask(data, _CHANGES, (night,)).dicts()


def summary_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """A night's verdicts in one line; "no regression" means that all are equivalent."""
    listed = list(rows)
    counts = Counter(row["judgement"] for row in listed)
    parts = [f"{counts[judgement]} {words}" for judgement, words in _WORDS.items() if counts[judgement]]
    blind = [row["mde_pct"] for row in listed if row["judgement"] == "inconclusive" and row["mde_pct"] is not None]
    unseen = f"; in the inconclusive ones changes up to {max(blind):.1f} % would not be seen" if blind else ""
    return f"{len(listed)} series: {', '.join(parts) or 'none judged'}{unseen}"
