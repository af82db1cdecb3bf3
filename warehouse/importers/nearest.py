"""Name the format that an unknown file is nearest to, and the columns that an importer does not read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from bench.audit.claim import Claim, NotRead
from warehouse.importers.claims_table.claimed_metrics import Slot, slot_of
from warehouse.importers.claims_table.columns import read_header
from warehouse.importers.claims_table.vocabulary import nearest
from warehouse.importers.parsing.document import Document

# Keys of a JSON object by which a reader knows the format; a test holds them against the twins of each.
MARKS: Mapping[str, tuple[str, ...]] = {
    "vllm-serve": ("num_prompts", "duration", "completed", "request_throughput"),
    "sglang-serve": ("dataset_name", "duration", "completed", "output_throughput"),
    "vllm-throughput": ("elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second"),
    "vllm-latency": ("avg_latency", "latencies", "percentiles"),
    "inferencex-agg": ("conc", "tput_per_gpu", "isl", "osl"),
    "inferencex-evals": ("task", "score", "score_name"),
    "guidellm": ("benchmarks",),
    "inference-perf": ("load_summary", "successes", "failures"),
    "llm-d": ("version", "run", "results"),
    "mlperf-results": ("Performance_Result", "Performance_Units"),
}
_COLUMNS_MIN = 2  # a first line with fewer cells is not a table's
_NAMED_MAX = 3


def what_is_missing(document: Document) -> str | None:
    """The nearest format and what the file lacks, as the end of a sentence; None if it is like no format."""
    names = document.first_object.keys()
    if names:
        return _of_keys({name: [key for key in marks if key not in names] for name, marks in MARKS.items()})
    header = document.header()
    return _of_columns(header) if len(header) >= _COLUMNS_MIN and document.data.lstrip()[:1] not in b"{[" else None


def _of_keys(missing: Mapping[str, list[str]]) -> str | None:
    name = min(missing, key=lambda each: len(missing[each]) / len(MARKS[each]))
    lacking = missing[name]
    if len(lacking) == len(MARKS[name]):
        return None
    if not lacking:
        return f"the nearest is {name}, whose keys it has; their values are not of that format"
    keys = "keys" if len(lacking) > 1 else "key"
    return f"the nearest is {name}, which also has the {keys} {', '.join(lacking)}"


def _of_columns(header: tuple[str, ...]) -> str:
    columns = read_header(header)
    known = set(columns.columns.values())
    metrics = [name for name in columns.others if isinstance(slot_of(name, ""), Slot)]
    unknown = [name for name in columns.others if name not in metrics]
    if known & {"metric", "value"}:
        lacking = f"a column {'value' if 'metric' in known else 'metric'}"
    elif metrics:
        lacking = "a column model or gpu"
    elif known & {"model", "gpu"}:
        lacking = "a column for a metric, such as 'Output token throughput (tok/s)'"
    else:
        lacking = "the columns metric and value, or model and one for each metric"
    near = [(name, nearest(name, "column", "metric")) for name in unknown]
    hints = [f"{name!r} is like {other!r}" for name, other in near if other][:_NAMED_MAX]
    return f"the nearest is claims-table, which also has {lacking}{''.join(f'; {hint}' for hint in hints)}"


def with_unread_columns(document: Document, claims: Iterable[Claim]) -> Iterator[Claim]:
    """The claims of a CSV file, each with the filled cells that it does not read, unless it names them already."""
    columns = frozenset(document.header())
    for claim in claims:
        left = {name: value for name, value in claim.unread.items() if name in columns and value not in ("", None)}
        named = tuple(_not_read(name, value, claim.lineage.format) for name, value in left.items())
        yield claim if claim.not_read or not named else replace(claim, not_read=named)


def _not_read(name: str, value: object, form: str) -> NotRead:
    return NotRead("column", name, str(value), f"{form} has no field for it", nearest(name, "metric", "column"))
