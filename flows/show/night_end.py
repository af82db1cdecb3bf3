"""Prints the end of a night: its runs, what they mean, three numbers, its page, and what to do next."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.closing import Doubt, closing
from bench.night_progress import clock
from bench.repeats import NightPrecision
from flows.show.console import line, panel, table, width
from infra.storage import store
from tasks.kept_progress import read_stages
from warehouse.lake.database import opened_once
from warehouse.lake.query import ask

WIDE = 140  # columns, from which a table also has the reasons
NARROW = ("scenario", "repeat", "verdict", "tok_per_s", "ttft_p50_ms")

RESULTS = """
SELECT standing.scenario, standing."repeat", standing.verdict, completed AS ok, failed,
       output_throughput_tok_per_s AS tok_per_s, ttft_p50_ms, tpot_p50_ms, e2el_p50_ms,
       coalesce(reason, code || ': ' || message) AS reason
FROM standing LEFT JOIN findings_worst USING (night, run_id)
WHERE night = ? ORDER BY standing.scenario, standing.scenario_id, standing."repeat"
"""


VERDICTS = "SELECT verdict, count(*) FROM measurements WHERE night = ? GROUP BY ALL"
DOUBTS = """
SELECT verdict, code, count(DISTINCT run_id), arg_max(message, observed)
FROM findings JOIN (SELECT night, run_id, verdict FROM measurements) USING (night, run_id)
WHERE night = ? AND severity <> 'info' GROUP BY ALL ORDER BY 3 DESC, code
"""
NUMBERS = """
SELECT scenario, coalesce(any_value(concurrency_asked), 1e9), avg(output_throughput_tok_per_s), avg(ttft_p50_ms),
       avg(ttft_p99_ms), avg(itl_p50_ms)
FROM standing WHERE night = ? AND verdict IN ('accepted', 'suspect') GROUP BY scenario ORDER BY 2, scenario
"""
COST = "SELECT sum(usd) FROM leases WHERE night = ?"
BEFORE = (
    "SELECT max(night) FROM measurements WHERE night < ? AND suite IN (SELECT suite FROM measurements WHERE night = ?)"
)


def show_night(data: Path, night: str) -> None:
    """Print a row per run with its verdict and the worst reason for doubt, and a panel of what to know and to do."""
    data = data.absolute()
    with opened_once(data):
        _show_runs(data, night)
        reached = store.repeats_file(data, night)
        if reached.exists():
            for one in NightPrecision.model_validate_json(reached.read_bytes()).reached:
                line(str(one))
        verdicts = dict(ask(data, VERDICTS, (night,)).rows)
        doubts = [Doubt(*row) for row in ask(data, DOUBTS, (night,)).rows]
        pages = [f"report: {data / 'reports' / f'{night}.html'}"]
        pages += [f"report of the suite: {page}" for page in sorted((data / "reports" / night).glob("*.html"))]
        following = [f"  {command}" for command in commands(data, night, verdicts)]
        told = (closing(night, verdicts, doubts), list(_numbers(data, night)), pages, following)
        panel([text for part in told if part for text in (*part, "")][:-1], f"night {night}")


def _show_runs(data: Path, night: str) -> None:
    """The table; a narrow terminal gets fewer columns, and the reasons below."""
    rows = ask(data, RESULTS, (night,)).dicts()
    if width() >= WIDE:
        table(rows, f"night {night}")
        return
    names = NARROW if width() < WIDE // 2 else [name for name in rows[0] if name != "reason"] if rows else ()
    table([{name: row[name] for name in names} for row in rows], f"night {night}")
    for alike in _alike(rows):
        of_more = f", and {len(alike) - 1} more alike" if len(alike) > 1 else ""
        first = alike[0]
        line(f"{first['scenario']} #{first['repeat']}{of_more}, {first['verdict']}: {first['reason']}")


def _alike(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows with a reason, those of one verdict and code together."""
    found = defaultdict[tuple[str, str], list[dict[str, Any]]](list)
    for row in rows:
        if row["reason"] is not None:
            found[row["verdict"], row["reason"].partition(": ")[0]].append(row)
    return list(found.values())


def _numbers(data: Path, night: str) -> Iterator[str]:
    """What people ask first: how much it serves, how long a lone user waits, and what the night took.

    The throughput is that of the scenario with the highest; the latency that of the lightest load, which has no queue.
    """
    rows = ask(data, NUMBERS, (night,)).rows
    if rows:
        name, _load, rate, *_times = max(rows, key=lambda row: row[2] or 0.0)
        yield f"output:   {rate or 0.0:,.0f} tok/s ({name})"
        name, _load, _rate, p50, p99, itl = rows[0]
        times = {"TTFT p50": p50, "TTFT p99": p99, "ITL p50": itl}
        shown = ", ".join(f"{what} {ms:,.1f} ms" for what, ms in times.items() if ms is not None)
        yield f"latency:  {shown} ({name})"
    stages = read_stages(store.stages_file(data, night)).stages
    usd = ask(data, COST, (night,)).rows[0][0]
    if stages:
        began = min(one.began_at for one in stages)
        took = max((one.began_at - began).total_seconds() + one.seconds for one in stages)
        yield f"the night: {clock(took)}" + ("" if usd is None else f", {usd:.2f} USD")


def commands(data: Path, night: str, verdicts: dict[str, int]) -> list[str]:
    """Three commands to go on with; the second by what the night lacks."""
    before = ask(data, BEFORE, (night, night)).rows[0][0]
    second = f"`nightbench compare {before} {night}`" if before else "`nightbench run` for a night to compare it with"
    if "not-run" in verdicts:
        second = f"`nightbench run --resume {night}`"
    query = "SELECT scenario, verdict, ttft_p99_ms FROM results"
    return [f"`nightbench open {night}`", second, f'`nightbench sql "{query}"`']
