"""MAD and madengine: perf.csv, CSV with one row per metric, and legacy latency, throughput and training reports.

A status of SUCCESS means that the command ended well and printed a number, no more.
"""

from collections.abc import Callable, Iterator

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals
from warehouse.importers.format import Format
from warehouse.importers.mad.metrics import Reading
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.printed import printed_precision
from warehouse.importers.parsing.tree import Tree

MS = 1e-3
_VALUE = ("performance", "metric", "unit")  # columns that differ between the rows of one run
_Row = Callable[[Document, Format, str, Tree], Claim]


def _has(*names: str) -> Callable[[Document], bool]:
    return lambda document: set(document.header()) >= set(names)


def _read_with(row: _Row) -> Callable[[Document, Format], Iterator[Claim]]:
    def read(document: Document, form: Format) -> Iterator[Claim]:
        for at, cells in enumerate(document.table, start=1):
            yield row(document, form, f"row {at}", Tree(cells, f"{document.name} row {at}"))

    return read


def _claim(document: Document, form: Format, place: str, row: Tree, asked: ClaimedConfig, reading: Reading) -> Claim:
    return Claim(
        lineage=form.lineage(document, place, "mad"),
        asked=asked,
        said=reading.said,
        latency_s=reading.latency_s,
        remarks=row.all_remarks(),
        outcome="measured" if reading.said.stated_cause is None else "failed",
        label=row.text("model") or "",
        unread=row.all_unread(),
        required=form.required,
    )


def _asked(row: Tree) -> ClaimedConfig:
    return ClaimedConfig(
        model=row.text("model"),
        precision=printed_precision(row.text("dtype", "training_precision")),
        kv_precision=printed_precision(row.text("kv_cache_dtype")),
        gpu_count=row.count("n_gpus"),
        tp_size=row.count("tp"),
        isl=row.amount("input_len", "inp"),
        osl=row.positive("output_len", "out"),
        batch=row.count("batch_size", "bs"),
        concurrency=row.count("max_concurrency"),
        request_count=row.count("requests", "num_prompts"),
        image=row.text("docker_image"),
    )


def _perf(document: Document, form: Format, place: str, row: Tree) -> Claim:
    reading = Reading()
    status, value = row.text("status"), row.positive("performance")
    if value is not None:
        reading = reading.with_metric(row, row.text("metric") or "", "", value)
    is_success = (status or "").upper() == "SUCCESS"
    if not is_success or (value is None and row.number("performance") is None):
        reading = reading.failed_with(f"status {status or 'is empty'}" + (", without a number" if is_success else ""))
    return _claim(document, form, place, row, _asked(row), reading)


def _latency(document: Document, form: Format, place: str, row: Tree) -> Claim:
    """Both times in ms, as the header states; their ratio shows if they are seconds."""
    whole = row.positive("latency (ms)", scale=MS)
    said = ClaimedTotals(latency_per_token_s=row.positive("latency_per_tkn (ms)", scale=MS))
    reading = Reading(said, {"e2el": {"mean": whole}} if whole is not None else {})
    return _claim(document, form, place, row, _asked(row), reading)


def _throughput(document: Document, form: Format, place: str, row: Tree) -> Claim:
    said = ClaimedTotals(
        total_throughput_tok_per_s=row.positive("throughput_tot (tok/sec)"),
        output_throughput_tok_per_s=row.positive("throughput_gen (tok/sec)"),
    )
    return _claim(document, form, place, row, _asked(row), Reading(said))


def _training(document: Document, form: Format, place: str, row: Tree) -> Claim:
    value = row.positive("performance")
    reading = Reading().with_metric(row, row.text("metric") or "", "", value) if value is not None else Reading()
    return _claim(document, form, place, row, _asked(row), reading)


def read_pivot(document: Document, form: Format) -> Iterator[Claim]:
    """One claim for all rows that differ only in metric, unit and value; of a metric's rows, the last one counts."""
    groups: dict[tuple[str, ...], list[tuple[int, dict[str, str]]]] = {}
    for at, cells in enumerate(document.table, start=1):
        key = tuple(value for name, value in cells.items() if name not in _VALUE)
        groups.setdefault(key, []).append((at, cells))
    for rows in groups.values():
        place = "row " + ", ".join(str(at) for at, _ in rows)
        about = {name: value for name, value in rows[0][1].items() if name not in _VALUE}
        asked_row = Tree(about, f"{document.name} row {rows[0][0]}")
        asked, reading = _asked(asked_row), Reading()
        stated: dict[tuple[str, str], tuple[int, float]] = {}
        for at, cells in rows:
            one = asked_row.branch(f"row {at}", {name: cells.get(name) for name in _VALUE})
            value = one.positive("performance")
            if value is not None:
                metric, unit = one.text("metric") or "", one.text("unit") or ""
                earlier, other = stated.get((metric, unit), (at, value))
                if other != value:
                    said = f"{metric} = {other:g} of row {earlier} ignored: this row says {value:g}"
                    one.remark("unreadable_value", said)
                stated[metric, unit] = at, value
                reading = reading.with_metric(one, metric, unit, value)
        yield _claim(document, form, place, asked_row, asked, reading)


REQUIRED = frozenset({"failed_not_zero"})
PIVOT = Format("mad-metrics", 2, _has("benchmark", "performance", "metric", "unit", "cmd"), read_pivot, REQUIRED)
PERF = Format("mad", 1, _has("model", "performance", "metric", "status"), _read_with(_perf), REQUIRED)
LATENCY = Format("mad-latency", 1, _has("model", "latency (ms)"), _read_with(_latency), REQUIRED | {"unit_suspect"})
THROUGHPUT = Format("mad-throughput", 1, _has("model", "throughput_tot (tok/sec)"), _read_with(_throughput), REQUIRED)
TRAINING = Format("mad-training", 1, _has("model", "performance", "metric", "mode"), _read_with(_training), REQUIRED)
MAD_FORMATS = (PIVOT, PERF, LATENCY, THROUGHPUT, TRAINING)
