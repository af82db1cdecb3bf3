"""The results of the load clients' benchmark: every run with its numbers or its reason, medians, and bars."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict

from benchmarks.bars import Bar, Host
from benchmarks.clients import CLIENTS
from benchmarks.clients.meter import KERNEL, OWN, WITHOUT

# The method's resolution: on loopback the kernel's receive timestamp is 3 to 7 microseconds after the server's.
FLOOR_MS = 0.005


class Written(BaseModel):
    """Base of values stored as JSON: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ClientHost(Host):
    """The host of the measurement, with the Python that the clients ran on."""

    python: str


class Numbers(Written):
    """One row of one run. An error is the client's value minus the true one; None is an unknown value."""

    ttft_mean_error_ms: float | None
    ttft_p99_error_ms: float | None
    itl_p50_error_ms: float | None
    itl_p99_error_ms: float | None
    itl_metric: str
    live_streams: float
    live_by_client: float | None
    load_share: float
    cpu_us_per_token: float | None
    core_share: float | None
    server_late_p99_ms: float
    server_core_share: float
    true_ttft_mean_ms: float
    true_itl_p99_ms: float
    ok: int
    failed: int


class Run(Written):
    """One client's run of a cell: rows of numbers, or the reason why there are none."""

    client: str
    streams: int
    ttft_ms: float
    itl_ms: float
    output_tokens: int
    repeat: int
    place: int  # position in the shuffled order of its repeat
    wall_s: float | None
    rows: dict[str, Numbers]
    remark: str | None  # a problem of a run that has numbers
    reason: str | None  # why the run has no numbers

    @property
    def cell(self) -> str:
        """The cell's name: its streams and their rate."""
        return cell_words(self.streams, self.itl_ms)


class FaultRun(Written):
    """One client's count of one fault; the true count has the client `truth`."""

    fault: str
    client: str
    ok: int | None
    failed: int | None
    output_tokens: int | None
    ttft_mean_ms: float | None
    itl_mean_ms: float | None
    reason: str | None


class Result(Written):
    """All results of one benchmark run."""

    made_at: AwareDatetime
    command: str
    seed: int
    host: ClientHost
    versions: dict[str, str]
    runs: tuple[Run, ...] = ()
    faults: tuple[FaultRun, ...] = ()

    def with_faults(self, found: Iterable[FaultRun]) -> "Result":
        """A copy with these counts, each replacing the same client's count of the same fault."""
        every = {(run.fault, run.client): run for run in (*self.faults, *found)}
        return self.model_copy(update={"faults": tuple(every.values())})

    def save(self, file: Path) -> None:
        """Write the file atomically."""
        partial = file.with_name(f".{file.name}.tmp")
        partial.write_text(self.model_dump_json(indent=1) + "\n")
        partial.replace(file)


class Spread(Written):
    """The median, lowest and highest value over the runs."""

    median: float
    low: float
    high: float


MEASURED = tuple(name for name, field in Numbers.model_fields.items() if field.annotation in (float, float | None))


class Row(Written):
    """A line of the table: a cell, a row name of a client, and the spread of each number over the runs."""

    cell: str
    streams: int
    itl_ms: float
    name: str
    runs: int
    itl_metric: str | None
    spreads: dict[str, Spread]
    remarks: tuple[str, ...]

    def median(self, number: str) -> float | None:
        """The median of a number; None if it was not measured."""
        spread = self.spreads.get(number)
        return None if spread is None else spread.median


def cell_words(streams: int, itl_ms: float) -> str:
    """A cell's name: its streams and their rate."""
    return f"{streams:,} x {1000 / itl_ms:g} tok/s"


def summarise(runs: Iterable[Run], order: tuple[str, ...]) -> list[Row]:
    """One row per cell and row name, in this order; a client without numbers has a row with its reasons."""
    every = list(runs)
    cells = sorted({(run.itl_ms, run.streams) for run in every})
    rows = []
    for itl_ms, streams in cells:
        here = [run for run in every if (run.itl_ms, run.streams) == (itl_ms, streams)]
        found = {name: _row(here, name) for name in dict.fromkeys(name for run in here for name in names_of(run))}
        rows += [found[name] for name in sorted(found, key=order.index)]
    return rows


def names_of(run: Run) -> tuple[str, ...]:
    """The row names of a run; without numbers, its client's first."""
    return tuple(run.rows) or next(client.rows[:1] for client in CLIENTS if client.name == run.client)


def _row(here: list[Run], name: str) -> Row:
    mine = [run for run in here if name in names_of(run)]
    numbers = [run.rows[name] for run in mine if name in run.rows]
    remarks = [text for run in mine for text in (run.remark, run.reason) if text is not None]
    return Row(
        cell=mine[0].cell,
        streams=mine[0].streams,
        itl_ms=mine[0].itl_ms,
        name=name,
        runs=len(numbers),
        itl_metric=numbers[0].itl_metric if numbers else None,
        spreads={key: spread for key in MEASURED if (spread := _spread(getattr(one, key) for one in numbers))},
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _spread(values: Iterable[float | None]) -> Spread | None:
    there = [value for value in values if value is not None]
    return Spread(median=statistics.median(there), low=min(there), high=max(there)) if there else None


def error_ratio(theirs_ms: float | None, ours_ms: float | None) -> float | None:
    """Another client's error over ours, each at least FLOOR_MS; None if either is missing."""
    if theirs_ms is None or ours_ms is None:
        return None
    return max(abs(theirs_ms), FLOOR_MS) / max(abs(ours_ms), FLOOR_MS)


def ratio(theirs: float | None, ours: float | None) -> float | None:
    """Another client's number over ours; None if either is missing."""
    return None if theirs is None or not ours else theirs / ours


@dataclass(frozen=True)
class CellBar:
    """A bar on one number of one row of one cell; an error counts with either sign."""

    row: str
    streams: int
    itl_ms: float
    number: str
    bar: Bar

    @property
    def cell(self) -> str:
        """The cell's name: its streams and their rate."""
        return cell_words(self.streams, self.itl_ms)

    def is_met(self, value: float) -> bool:
        """Whether the limit is kept."""
        return self.bar.is_met(abs(value))


HEADINGS = {
    "itl_p99_error_ms": ("ITL p99 error", "ms", FLOOR_MS),
    "ttft_mean_error_ms": ("TTFT mean error", "ms", FLOOR_MS),
    "live_streams": ("live streams", "streams", 0.0),
    "live_by_client": ("live streams by client", "streams", 0.0),
    "cpu_us_per_token": ("CPU per token", "µs", 0.0),
    "load_share": ("share of the planned load", "%", 0.0),
}
SLUGS = {KERNEL: "kernel", OWN: "own", WITHOUT: "plain"}


def _bar(row: str, streams: int, number: str, limit: float, *, itl_ms: float = 20, is_least: bool = False) -> CellBar:
    heading, unit, floor = HEADINGS[number]
    bar = Bar(
        name=f"client_error.{SLUGS[row]}_{streams}_{number}",
        what=f"{heading}; {row}; {cell_words(streams, itl_ms)}",
        unit=unit,
        limit=limit,
        direction="at least" if is_least else "at most",
        floor=floor,
    )
    return CellBar(row, streams, itl_ms, number, bar)


BARS = (
    _bar(KERNEL, 1000, "itl_p99_error_ms", 0.05),
    _bar(OWN, 1000, "itl_p99_error_ms", 0.3),
    _bar(KERNEL, 1000, "ttft_mean_error_ms", 1.0),
    _bar(OWN, 1000, "ttft_mean_error_ms", 1.0),
    _bar(KERNEL, 100, "ttft_mean_error_ms", 0.2),
    _bar(OWN, 100, "ttft_mean_error_ms", 0.2),
    _bar(KERNEL, 1000, "live_streams", 990, is_least=True),
    _bar(KERNEL, 1000, "live_by_client", 990, is_least=True),
    _bar(KERNEL, 1000, "cpu_us_per_token", 12),
    _bar(WITHOUT, 1000, "cpu_us_per_token", 10),
    _bar(KERNEL, 2000, "load_share", 0.99, is_least=True),
    _bar(KERNEL, 4000, "load_share", 0.99, itl_ms=50, is_least=True),
)


def judge(rows: Iterable[Row]) -> list[tuple[CellBar, float | None]]:
    """Each bar with the median that it limits; None where that was not measured."""
    found = {(row.name, row.streams, row.itl_ms): row for row in rows}
    lines = ((bar, found.get((bar.row, bar.streams, bar.itl_ms))) for bar in BARS)
    return [(bar, None if row is None else row.median(bar.number)) for bar, row in lines]
