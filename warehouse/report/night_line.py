"""A night in one line: the verdicts on its series, its runs, its audit, and its cost."""

from collections import Counter
from pathlib import Path

from warehouse.lake.query import ask
from warehouse.trends.of_night import summary_of, verdicts_of

_RUNS = """
SELECT count(*) AS runs, count(*) FILTER (verdict = 'failed') AS failed,
    count(*) FILTER (verdict = 'rejected') AS rejected, count(*) FILTER (verdict = 'suspect') AS suspect,
    count(*) FILTER (verdict = 'not-run') AS "not run"
FROM measurements WHERE night = ?
"""
_FINDINGS = "SELECT status, count(*) FROM findings WHERE night = ? AND severity <> 'info' GROUP BY status"
_USD = "SELECT usd FROM night_costs WHERE night = ? AND usd IS NOT NULL"


def night_line(data: Path, night: str) -> str:
    """The line as text."""
    verdicts = verdicts_of(data, night)
    runs = ask(data, _RUNS, (night,)).dicts()[0]
    total = runs.pop("runs")
    counts = "".join(f", {count} {name}" for name, count in runs.items() if count)
    found = Counter(dict(ask(data, _FINDINGS, (night,)).rows))
    usd = [f"${row[0]:,.2f}" for row in ask(data, _USD, (night,)).rows]
    said = summary_of(verdicts) if verdicts else "no series judged yet"
    audit = f"audit: {found['FAIL']} FAIL {found['WARN']} WARN"
    return " · ".join([said, ("1 run" if total == 1 else f"{total} runs") + counts, audit, *usd])
