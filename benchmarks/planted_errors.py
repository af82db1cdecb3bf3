"""Which errors in published tables the audit names, and which right numbers it doubts.

`python -m benchmarks.planted_errors FOLDER` prints both.

FOLDER holds pages, reports, workbooks and CSV files as they were published; they are not part of the project. Each
table of results gets one error of each of twelve kinds in turn, in what the table says itself or in a column or row
that is computed from it. An error is named if more fails than in the same table without it. What is added beside the
error does not contradict the table: its own precision is repeated, and a metric that it has is not added again.
"""

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from bench.errors import NightbenchError
from benchmarks.accounted_tables import tables_about_speed
from warehouse.audit import AuditOptions, audit
from warehouse.importers.claims_table.plan import plan_of
from warehouse.importers.parsing.document import read_document
from warehouse.importers.parsing.printed import read_quantity
from warehouse.importers.tables.cells import as_meant, is_summary
from warehouse.importers.tables.table import Row, Table

ROWS_MIN, ROWS_MAX, TABLES_MAX = 5, 60, 3
Numbers = list[float]
_FIRST_TOKEN = re.compile(r"ttft|first token|\bftl\b", re.IGNORECASE)
Planted = tuple[Table, Table]  # without and with the error


@dataclass(frozen=True)
class Tally:
    """What was found over all files."""

    tables: int
    accounted: int
    numbers: int
    doubted: int
    planted: Counter[str]
    named: Counter[str]


def measure(folder: Path) -> Tally:
    """Audit every file of a folder as it is, and its tables with errors."""
    tables = accounted = numbers = doubted = 0
    planted: Counter[str] = Counter()
    named: Counter[str] = Counter()
    for path in sorted(folder.iterdir()):
        try:
            found = with_numbers(path)
        except NightbenchError:
            found = []
        judged = audit([str(path)], AuditOptions()).judged
        about_speed = list(tables_about_speed(str(path), path.read_bytes(), judged))
        tables += len(about_speed)
        accounted += sum(about_speed)
        numbers += sum(len(each.coverage.read) for each in judged)
        doubted += sum(len(each.coverage.read) for each in judged if _fails(each.findings))
        for table in found[:TABLES_MAX]:
            for kind, pair in plants(table):
                planted[kind] += 1
                named[kind] += len(_codes(pair[1])) > len(_codes(pair[0]))
    return Tally(tables, accounted, numbers, doubted, planted, named)


def with_numbers(path: Path) -> list[Table]:
    """The tables of a file with a column of ours and rows enough to plant an error in."""
    document = read_document(str(path), path.read_bytes())
    plans = (plan_of(as_meant(table), {}) for table in document.tables)
    return [plan.table for plan in plans if plan.measures and _series(plan.table)]


def _series(table: Table) -> tuple[int, Numbers] | None:
    """The first measure whose cells are all numbers above 0, as printed to four digits."""
    rows = [row for row in table.rows if not is_summary(row)]
    if len(rows) != len(table.rows) or not ROWS_MIN <= len(rows) <= ROWS_MAX:
        return None
    for each in plan_of(table, {}).measures:
        quantities = [read_quantity(row.cells[each.at]) for row in rows]
        values = [each.number for each in quantities if each is not None and each.number]
        if len(values) == len(rows) and min(values) > 0 and len(set(values)) > ROWS_MIN - 1:
            return each.at, values
    return None


def _of_percentiles(table: Table, at: int, size: int) -> Planted:
    """Of a latency that the table does not have."""
    latency = "ITL" if _FIRST_TOKEN.search(" ".join(table.header)) else "TTFT"
    ladder = _add(_add(table, f"Median {latency} (ms)", ["80"] * size), f"Max {latency} (ms)", ["150"] * size)
    return _with_column(ladder, f"P99 {latency} (ms)", ["120"] * size, at, lambda _: "480")


def _of_labels(table: Table, at: int, size: int) -> Planted:
    """The precision of the weights said twice: the table's own, where it has one. A compute type is another thing."""
    stated = plan_of(table, {}).columns.get("precision")
    labels = _add(table, "Quantization", ["FP8"] * size) if stated is None else table
    again = ["fp8"] * size if stated is None else [row.cells[stated] for row in table.rows]
    return _with_column(labels, "Weights Precision", again, at, lambda own: "int4" if "8" in own else "fp8")


def plants(table: Table) -> Iterator[tuple[str, Planted]]:
    """The table with each kind of error, beside the same table without it."""
    series = _series(table)
    if series is None:
        return
    _, values = series
    at, size = len(values) * 2 // 3, len(values)
    yield "total", _with_row(table, series, "Total", sum(values), 1.17)
    yield "mean", _with_row(table, series, "Average", sum(values) / size, 1.17)
    yield (
        "speed-up",
        _with_column(table, "Speedup", [f"{value / values[0]:.3f}x" for value in values], at, _times(1.21)),
    )
    change = [f"{100 * (value / values[0] - 1):.2f}%" for value in values]
    yield "percent", _with_column(table, "Change %", change, at, _times(1.21))
    hourly = [f"{3600 * value:.1f}" for value in values]
    yield "transposed digits", _with_column(table, "Hourly", hourly, at, _transposed)
    yield "factor of 1,000", _with_column(table, "Hourly", hourly, at, _times(1000))
    prices = [2.0 + place % 3 for place in range(size)]
    priced = _add(table, "Machine price", [f"{price:g}" for price in prices])
    costs = [f"{1e6 * price / value / 3600:.5g}" for price, value in zip(prices, values, strict=True)]
    yield "cost", _with_column(priced, "Cost", costs, at, _times(1.4))
    gpus = [2 ** (place % 4) for place in range(size)]
    by_gpu = _add(table, "Boards", [str(count) for count in gpus])
    shares = [f"{value / count:.5g}" for value, count in zip(values, gpus, strict=True)]
    whole = at if gpus[at] > 1 else at - 1
    yield "system for GPU", _with_column(by_gpu, "Each", shares, whole, lambda _: f"{values[whole]:.5g}")
    yield "percentile order", _of_percentiles(table, at, size)
    yield "label", _of_labels(table, at, size)
    yield "faster than memory", _physics("240", "24.1")
    yield "larger than memory", _physics("8.1", "24.1", gpu="L4", other="H100 SXM")


def _physics(wrong: str, right: str, gpu: str = "H100 SXM", other: str = "H100 SXM") -> Planted:
    """One row on a GPU, of which bandwidth and memory are known."""
    header = ("Model", "GPU", "Precision", "TP", "ISL", "OSL", "Concurrency", "Output tok/s")
    cells = ("Llama-3.1-70B", "1", "1024", "1024", "1")
    rows = [Row(3, (cells[0], name, "fp8", *cells[1:], rate)) for name, rate in ((other, right), (gpu, wrong))]
    return Table(header, (rows[0],)), Table(header, (rows[1],))


def _add(table: Table, name: str, cells: Sequence[str]) -> Table:
    rows = tuple(replace(row, cells=(*row.cells, cell)) for row, cell in zip(table.rows, cells, strict=True))
    return replace(table, header=(*table.header, name), rows=rows)


def _with_column(table: Table, name: str, cells: list[str], at: int, wrong: Callable[[str], str]) -> Planted:
    spoilt = [wrong(cell) if place == at else cell for place, cell in enumerate(cells)]
    return _add(table, name, cells), _add(table, name, spoilt)


def _with_row(table: Table, series: tuple[int, Numbers], word: str, value: float, off: float) -> Planted:
    """A last row of this word, in the first other column, and of this value below the numbers."""
    column, _ = series
    place = 0 if column else 1
    texts = [["" for _ in table.header] for _ in range(2)]
    for text, number in zip(texts, (value, value * off), strict=True):
        text[place], text[column] = word, f"{number:.5g}"
    both = [replace(table, rows=(*table.rows, Row(table.rows[-1].line + 1, tuple(text)))) for text in texts]
    return both[0], both[1]


def _times(factor: float) -> Callable[[str], str]:
    def wrong(cell: str) -> str:
        unit = cell[-1] if cell[-1] in "x%" else ""
        return f"{(float(cell.rstrip('x%')) or 1.0) * factor:.4g}{unit}"

    return wrong


def _transposed(cell: str) -> str:
    """The number with its first two digits that differ exchanged."""
    digits = [at for at, letter in enumerate(cell) if letter.isdigit()]
    for first, second in pairwise(digits):
        if cell[first] != cell[second] and abs(int(cell[first]) - int(cell[second])) > 1:
            return cell[:first] + cell[second] + cell[first] + cell[second + 1 :]
    return f"{float(cell) * 1.1:.1f}"


def _codes(table: Table) -> list[str]:
    """What fails in a table, written as a report."""
    lines = [f"# {table.heading}", "", table.caption, "", _line(table.header), _line(["---"] * len(table.header))]
    text = "\n".join([*lines, *(_line(row.cells) for row in table.rows), ""])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.md"
        path.write_text(text)
        return [code for each in audit([str(path)], AuditOptions()).judged for code in _fails(each.findings)]


def _fails(findings: Sequence[object]) -> list[str]:
    return [each.code for each in findings if each.status == "FAIL"]  # type: ignore[attr-defined]  # they are findings


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def main() -> None:
    """Print what was found in a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    tally = measure(parser.parse_args().folder)
    for kind, count in tally.planted.items():
        print(f"{kind:20} {tally.named[kind]:4} of {count:4} named")
    named, planted = tally.named.total(), tally.planted.total()
    print(f"tables with every number read or named: {tally.accounted} of {tally.tables}")
    print(f"numbers in rows that were rejected: {tally.doubted} of {tally.numbers}")
    print(f"planted errors named: {named} of {planted}, {named / max(1, planted):.1%}")


if __name__ == "__main__":
    main()
