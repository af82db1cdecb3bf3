"""The tables of the load clients' benchmark."""

from collections.abc import Iterable, Sequence

from benchmarks.client_faults import ROLE_FIRST, TRUTH
from benchmarks.client_result import CellBar, FaultRun, Row, Spread, error_ratio, judge, ratio
from benchmarks.clients import CLIENTS
from benchmarks.clients.client import MEANS
from benchmarks.clients.meter import KERNEL
from benchmarks.table import MISSING, Table

ROWS = tuple(name for client in CLIENTS for name in client.rows)
OURS = tuple(name for client in CLIENTS if client.name.startswith("meter") for name in client.rows)
EARLY = 0.9  # share of the true TTFT; an earlier one was reported before any token came
OTHER_METRIC = "\\*"  # beside an ITL that is a percentile of per-request means

# number, heading, format, what it is multiplied with
COLUMNS = (
    ("ttft_mean_error_ms", "TTFT mean error, ms", "+.2f", 1),
    ("ttft_p99_error_ms", "TTFT p99 error, ms", "+.2f", 1),
    ("itl_p50_error_ms", "ITL p50 error, ms", "+.3f", 1),
    ("itl_p99_error_ms", "ITL p99 error, ms", "+.3f", 1),
    ("live_streams", "live streams", ",.0f", 1),
    ("live_by_client", "live by client", ",.0f", 1),
    ("load_share", "load, %", ".1f", 100),
    ("cpu_us_per_token", "CPU, µs a token", ".1f", 1),
    ("core_share", "core, %", ".0f", 100),
    ("server_late_p99_ms", "server late p99, ms", ".2f", 1),
    ("server_core_share", "server core, %", ".0f", 100),
)
RATIOS = (
    ("ttft_mean_error_ms", "TTFT mean error", True),
    ("ttft_p99_error_ms", "TTFT p99 error", True),
    ("itl_p99_error_ms", "ITL p99 error", True),
    ("cpu_us_per_token", "CPU a token", False),
    ("load_share", "load", False),
)
ITL = ("itl_p50_error_ms", "itl_p99_error_ms")
WORDS = {number: (heading, form, scale) for number, heading, form, scale in COLUMNS}


def cell_tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    """One table per cell: every client's error, load and cost."""
    head = ("client", "runs", *(heading for _number, heading, _form, _scale in COLUMNS))
    tables = []
    for cell in _cells_of(rows):
        here = [row for row in rows if row.cell == cell]
        notes = tuple(f"{row.name}: {remark}" for row in here for remark in row.remarks)
        tables.append(Table(cell, head, tuple(_cells(row) for row in here), notes))
    return tuple(tables)


def _cells_of(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.cell for row in rows))


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (_number(row, number, form, scale) for number, _heading, form, scale in COLUMNS)
    return (row.name, str(row.runs), *numbers)


def _number(row: Row, number: str, form: str, scale: float) -> str:
    spread = row.spreads.get(number)
    if spread is None:
        return MISSING
    mark = OTHER_METRIC if number in ITL and row.itl_metric == MEANS else ""
    return f"{spread.median * scale:{form}}{mark}{_range(spread, form, scale) if row.runs > 1 else ''}"


def _range(spread: Spread, form: str, scale: float) -> str:
    return f" [{spread.low * scale:{form}}, {spread.high * scale:{form}}]"


def ratio_tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    """One table per cell: each other client's values over the meter's by kernel timestamps."""
    head = ("client", *(heading for _number, heading, _is_error in RATIOS))
    tables = []
    for cell in _cells_of(rows):
        here = {row.name: row for row in rows if row.cell == cell}
        ours = here.get(KERNEL)
        peers = [row for name, row in here.items() if name not in OURS]
        if ours is not None and peers:
            tables.append(Table(f"{cell}: peer / meter", head, tuple(_ratios(row, ours) for row in peers)))
    return tuple(tables)


def _ratios(row: Row, ours: Row) -> tuple[str, ...]:
    return (row.name, *(_ratio(row, ours, number, is_error=is_error) for number, _heading, is_error in RATIOS))


def _ratio(row: Row, ours: Row, number: str, *, is_error: bool) -> str:
    found = (error_ratio if is_error else ratio)(row.median(number), ours.median(number))
    if found is None:
        return MISSING
    mark = OTHER_METRIC if number in ITL and row.itl_metric == MEANS else ""
    return f"{found:,.{0 if found >= 10 else 2}f} x{mark}"  # noqa: PLR2004 -- two digits that mean something


def bar_table(rows: Iterable[Row], faults: Sequence[FaultRun]) -> Table:
    """Each bar with its value, and whether it is met."""
    head = ("what", "cell", "row", "bar", "measured", "met")
    return Table("bars", head, (*(_bar(bar, value) for bar, value in judge(rows)), _fault_bar(faults)))


def _fault_bar(faults: Sequence[FaultRun]) -> tuple[str, ...]:
    right, count = recognised_faults(faults)
    what = ("broken answers recognised", "kinds of fault", KERNEL, "all")
    if not count:
        return (*what, MISSING, "not measured")
    return (*what, f"{right} of {count}", "yes" if right == count else "**no**")


def recognised_faults(faults: Sequence[FaultRun]) -> tuple[int, int]:
    """How many kinds of fault the meter counts correctly, and how many there are; a missing count is wrong."""
    truths = {run.fault: run for run in faults if run.client == TRUTH}
    ours = {run.fault: run for run in faults if run.client == "meter"}
    return sum(fault in truths and is_right(run, truths[fault]) for fault, run in ours.items()), len(ours)


def _bar(cell_bar: CellBar, value: float | None) -> tuple[str, ...]:
    heading, form, scale = WORDS[cell_bar.number]
    limit = f"{'≥' if cell_bar.bar.direction == 'at least' else '≤'} {cell_bar.bar.limit * scale:g}"
    what = (heading, cell_bar.cell, cell_bar.row, limit)
    if value is None:
        return (*what, MISSING, "not measured")
    return (*what, f"{value * scale:{form}}", "yes" if cell_bar.is_met(value) else "**no**")


def fault_cells(faults: Sequence[FaultRun]) -> Table:
    """A row per fault, a column per client: good and failed requests and tokens; wrong counts are bold."""
    judging = [client for client in CLIENTS if client.judges_answers]
    names = [client.rows[0] for client in judging]
    keys = [client.name for client in judging]
    found = {(run.fault, run.client): run for run in faults}
    rows = []
    for fault in dict.fromkeys(run.fault for run in faults):
        truth = found.get((fault, TRUTH))
        rows.append((fault, _account(truth, truth), *(_account(found.get((fault, key)), truth) for key in keys)))
    return Table("broken answers", ("fault", "truth", *names), tuple(rows))


def _account(run: FaultRun | None, truth: FaultRun | None) -> str:
    if run is None:
        return MISSING
    if run.ok is None:
        return run.reason or MISSING
    tokens = "" if run.output_tokens is None else f", {run.output_tokens:,} tokens"
    ttft = "" if run.ttft_mean_ms is None or run.fault != ROLE_FIRST else f", TTFT {run.ttft_mean_ms:,.0f} ms"
    words = f"{run.ok} good, {run.failed} failed{tokens}{ttft}"
    return words if truth is None or is_right(run, truth) else f"**{words}**"


def is_right(run: FaultRun, truth: FaultRun) -> bool:
    """Whether a client's counts of good and failed requests and of tokens are true, and its TTFT is possible.

    A busy host lengthens TTFT, so only a TTFT that ends before the first token is wrong here.
    """
    counts = (run.ok, run.failed, run.output_tokens) == (truth.ok, truth.failed, truth.output_tokens)
    return counts and (run.ttft_mean_ms or 0.0) > EARLY * (truth.ttft_mean_ms or 0.0)
