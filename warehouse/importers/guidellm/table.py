"""guidellm's CSV: three lines of header (group, name, unit or statistic), then a line per benchmark."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bench.errors import UnreadableResultError
from warehouse.importers.parsing.document import Document

HEADER = 3  # lines
GROUPS = frozenset({"Run Info", "Benchmark", "Timings", "Request Counts", "Request Latency"})
# What guidellm lists under "Percentiles", in this order: without median and p999, and with the ends.
LISTED = ("min", "p001", "p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "max")
# By group and the end of the column's name: the metric of the JSON.
METRICS: Mapping[tuple[str, str], str] = {
    ("Request Latency", "Sec"): "request_latency",
    ("Time to First Token", "ms"): "time_to_first_token_ms",
    ("Inter Token Latency", "ms"): "inter_token_latency_ms",
    ("Server Throughput", "Requests/Sec"): "requests_per_second",
    ("Token Metrics", "Input Tokens"): "prompt_token_count",
    ("Token Metrics", "Output Tokens"): "output_token_count",
    ("Token Throughput", "Input Tokens/Sec"): "prompt_tokens_per_second",
    ("Token Throughput", "Output Tokens/Sec"): "output_tokens_per_second",
    ("Token Throughput", "Total Tokens/Sec"): "tokens_per_second",
}
STATISTICS = {"Mean": "mean", "Median": "median", "Std Dev": "std_dev"}
GOOD = "Successful "
COUNTS = {"Successful": "successful", "Errored": "errored", "Incomplete": "incomplete", "Total": "total"}
TIMINGS = {"Duration": "duration", "Warmup": "warmup_duration", "Cooldown": "cooldown_duration"}
LOADS = {"concurrent": "streams", "throughput": "max_concurrency", "constant": "rate", "poisson": "rate"}


def is_table(header: Iterable[str]) -> bool:
    """Whether the first line names guidellm's groups."""
    return set(header) >= GROUPS


def benchmarks_of_table(document: Document) -> dict[str, Any]:
    """The report as the JSON has it, without the requests; raises UnreadableResultError for a broken line or cell."""
    rows = list(_rows(document))
    if not rows:
        raise UnreadableResultError(f"{document.name} has no line below its {HEADER} lines of header")
    return {
        "metadata": rows[0].json("Runtime Info", "Metadata"),
        "config": rows[0].json("Runtime Info", "Arguments"),
        "benchmarks": [row.benchmark() for row in rows],
    }


def _rows(document: Document) -> Iterator["_Row"]:
    reader = csv.reader(io.StringIO(document.text))
    try:
        lines = [(reader.line_num, line) for line in reader if line]
    except csv.Error as error:
        raise UnreadableResultError(f"{document.name} is not valid CSV: {error}") from error
    columns = list(zip(*(line for _at, line in lines[:HEADER]), strict=False))
    twins = {column for column in columns if columns.count(column) > 1}
    if twins:
        raise UnreadableResultError(f"{document.name}: two columns are named {' '.join(min(twins))!r}")
    for at, line in lines[HEADER:]:
        if len(line) != len(columns):
            raise UnreadableResultError(
                f"{document.name} line {at} has {len(line)} cells but the header has {len(columns)}"
            )
        yield _Row(dict(zip(columns, line, strict=True)), f"{document.name} line {at}")


class _Row:
    """A line of the table; cells that were not read are kept as they are."""

    def __init__(self, cells: dict[tuple[str, ...], str], place: str) -> None:
        self.cells = cells
        self.place = place

    def take(self, group: str, name: str) -> str:
        """The cell of a column with this group and name, and no statistic; empty if it is missing."""
        found = next((column for column in self.cells if column[:2] == (group, name)), None)
        return "" if found is None else self.cells.pop(found)

    def json(self, group: str, name: str) -> dict[str, Any]:
        """A cell that holds a JSON object; empty if the cell is."""
        value = self._parsed(self.take(group, name) or "{}", f"{group} {name}")
        return value if isinstance(value, dict) else {}

    def benchmark(self) -> dict[str, Any]:
        """The benchmark of this line, with what is left under `table`."""
        how, _at, load = self.take("Benchmark", "Strategy").partition("@")
        strategy = {"type_": how, **({LOADS[how]: load} if load and how in LOADS else {})}
        found = {
            "type_": self.take("Benchmark", "Type"),
            "config": {
                "id_": self.take("Benchmark", "ID"),
                "strategy": strategy,
                "constraints": self.json("Benchmark", "Constraints"),
                "backend": self.json("Run Info", "Backend"),
            },
            **{name: self.take("Timings", title) for title, name in TIMINGS.items()},
            "metrics": {
                "request_totals": {name: self.take("Request Counts", title) for title, name in COUNTS.items()},
                **self._metrics(),
            },
        }
        return {**found, "table": {" ".join(filter(None, column)): cell for column, cell in self.cells.items() if cell}}

    def _metrics(self) -> dict[str, dict[str, dict[str, Any]]]:
        found: dict[str, dict[str, Any]] = {}
        for column in list(self.cells):
            group, name, statistic = column
            metric = METRICS.get((group, name.removeprefix(GOOD))) if name.startswith(GOOD) else None
            if metric is not None and (read := _STATISTIC.get(statistic)) is not None:
                found.setdefault(metric, {}).update(read(self, statistic, self.cells.pop(column)))
        return {metric: {"successful": statistics} for metric, statistics in found.items()}

    def percentiles(self, title: str, cell: str) -> dict[str, Any]:
        """The list of a cell under the names of its entries; a list of another length has an unknown order."""
        value = self._parsed(cell or "[]", title)
        if not isinstance(value, list) or len(value) != len(LISTED):
            return {}
        named = dict(zip(LISTED, value, strict=True))
        return {**{end: named.pop(end) for end in ("min", "max")}, "percentiles": named}

    def plain(self, title: str, cell: str) -> dict[str, Any]:
        """A number."""
        return {STATISTICS[title]: cell}

    def _parsed(self, cell: str, what: str) -> Any:
        try:
            return json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise UnreadableResultError(f"{self.place}: {what} is not valid JSON: {error}") from error


_STATISTIC: Mapping[str, Callable[[_Row, str, str], dict[str, Any]]] = {
    **dict.fromkeys(STATISTICS, _Row.plain),
    "Percentiles": _Row.percentiles,
}
