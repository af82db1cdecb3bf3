"""The verdict on a night in one sentence: its runs, its fastest load, and what changed."""

from pathlib import Path

from bench.wording import counted
from warehouse.lake.query import ask
from warehouse.report.plot import number
from warehouse.schema.row import Row
from warehouse.trends.of_night import verdicts_of

_RUNS = """
SELECT verdict, scenario, "repeat", reason, concurrency_asked, output_throughput_tok_per_s, ttft_p50_ms
FROM results WHERE night = ?
"""
_CHANGED = "SELECT DISTINCT event_id, direction FROM changes WHERE night = $1 OR first_bad = $1"


def sentence(data: Path, night: str) -> str:
    """The sentence."""
    runs = ask(data, _RUNS, (night,)).dicts()
    fastest = _fastest(runs)
    parts = [_verdicts(runs), fastest, _changes(data, night) if fastest else ""]
    return "; ".join(part for part in parts if part) + "."


def _verdicts(runs: list[Row]) -> str:
    if not runs:
        return "Nothing was planned"
    accepted, total = sum(row["verdict"] == "accepted" for row in runs), counted(len(runs), "run")
    if accepted == len(runs):
        return f"All {total} were measured and accepted" if len(runs) > 1 else "The one run was measured and accepted"
    worst = max(runs, key=lambda row: _WORST.index(row["verdict"]))
    why = f" ({worst['scenario']}, repeat {worst['repeat']}: {worst['reason']})" if worst["reason"] else ""
    counts = {name: sum(row["verdict"] == name for row in runs) for name in _WORST}
    said = [f"{count} {_SAID[name][count > 1]}" for name, count in counts.items() if count]
    listed = " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)
    return f"Of {total}, {listed}{why}"


# A night's runs by what happened to them, of one and of several, the worst last.
_SAID = {
    "accepted": ("is accepted", "are accepted"),
    "unchecked": ("is unchecked", "are unchecked"),
    "suspect": ("is suspect", "are suspect"),
    "not-run": ("did not run", "did not run"),
    "rejected": ("is rejected", "are rejected"),
    "failed": ("failed", "failed"),
}
_WORST = tuple(_SAID)


def _fastest(runs: list[Row]) -> str:
    """The scenario with the highest throughput, by its best run that is not rejected."""
    known = [row for row in runs if row["output_throughput_tok_per_s"] and row["verdict"] in ("accepted", "suspect")]
    if not known:
        return ""
    best = max(known, key=lambda row: row["output_throughput_tok_per_s"])
    wait = f" at a median time to first token of {number(best['ttft_p50_ms'])} ms" if best["ttft_p50_ms"] else ""
    return f"the highest throughput was {number(best['output_throughput_tok_per_s'])} tok/s in {best['scenario']}{wait}"


def _changes(data: Path, night: str) -> str:
    judged = [row for row in verdicts_of(data, night) if row["judgement"] != "insufficient"]
    events = [row[1] for row in ask(data, _CHANGED, (night,)).rows]
    if events:
        worse = events.count("worse")
        return f"{counted(len(events), 'change')} against earlier nights, {worse} for the worse"
    if judged:
        return "nothing changed against earlier nights"
    return "there are too few earlier nights to compare with"
