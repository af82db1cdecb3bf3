"""A table of published numbers: a CSV with one number per row, and its configuration and source in the other columns.

Rows of one configuration form one claim, so that their numbers can be compared. If a metric occurs twice for one
configuration, its rows are distinguished by their notes, then by their order.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from bench.audit.claim import Claim, ClaimedTotals, Kind, Metric, NotRead, Outcome
from bench.errors import UnreadableResultError
from warehouse.importers.claims_table.asked import asked_of
from warehouse.importers.claims_table.claimed_metrics import Slot, slot_of
from warehouse.importers.claims_table.columns import COLUMNS, KEPT, Header, read_header
from warehouse.importers.claims_table.kinds import kind_said_in
from warehouse.importers.claims_table.numbers import Numbers
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.printed import engine_of

ALWAYS = frozenset({"metric", "value"})
_NUMBER_COLUMNS = ("metric", "value", "unit", "notes", "spread", "n")

# With one of these, a time beside them is that of all requests.
_COUNTED = frozenset({"completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput_per_s"})

Row = Mapping[str, str]
Numbered = tuple[int, Row]


def _recognises(document: Document) -> bool:
    return set(read_header(document.header()).columns.values()) >= ALWAYS


def _read(document: Document, this: Format) -> Iterator[Claim]:
    grouped: dict[tuple[str, ...], list[Numbered]] = defaultdict(list)
    others: dict[int, tuple[NotRead, ...]] = {}
    header: Header | None = None
    for line, row in document.numbered_table:
        header = header or read_header(tuple(row))
        grouped[tuple(cell for name, cell in row.items() if header.columns.get(name) not in _NUMBER_COLUMNS)].append(
            (line, dict.fromkeys(COLUMNS, "") | header.rename(row))
        )
        others[line] = tuple(header.not_read(row))
    if not grouped:
        raise without_rows(document)
    for rows in grouped.values():
        yield from claims_of_rows(rows, others[rows[0][0]], document, this)


def without_rows(document: Document) -> UnreadableResultError:
    """The error for a table that has a header only."""
    return UnreadableResultError(f"{document.name} has a header and no row: add the measurements below it")


def claims_of_rows(
    rows: list[Numbered], others: tuple[NotRead, ...], document: Document, this: Format
) -> Iterator[Claim]:
    """The claims of the rows of one configuration; `others` are the cells of its unknown columns."""
    for single in _without_twins(rows):
        yield _claim(single, others, document, this)


def _without_twins(rows: list[tuple[int, Row]]) -> Iterable[list[tuple[int, Row]]]:
    """The rows of one configuration, split so that each metric occurs once per part."""
    if _largest(rows) == 1:
        return [rows]
    noted: dict[str, list[tuple[int, Row]]] = defaultdict(list)
    for line, row in rows:
        noted[row.get("notes", "")].append((line, row))
    return [part for same in noted.values() for part in _by_order(same)]


def _largest(rows: Iterable[tuple[int, Row]]) -> int:
    return max(Counter(_metric_key(row) for _, row in rows).values())


def _metric_key(row: Row) -> str:
    slot = slot_of(row["metric"], row["unit"])
    return f"{slot.part}.{slot.field}" if isinstance(slot, Slot) else row["metric"]


def _by_order(rows: list[tuple[int, Row]]) -> list[list[tuple[int, Row]]]:
    seen: Counter[str] = Counter()
    parts: list[list[tuple[int, Row]]] = [[] for _ in range(_largest(rows))]
    for line, row in rows:
        key = _metric_key(row)
        parts[seen[key]].append((line, row))
        seen[key] += 1
    return parts


def _claim(rows: list[Numbered], others: tuple[NotRead, ...], document: Document, this: Format) -> Claim:
    numbers = Numbers()
    for line, row in rows:
        numbers.add(row, f"{document.name} line {line}")
    first = rows[0][1]
    _move_latency(rows, numbers)
    asked = asked_of(first, numbers, _words(rows, others))
    return Claim(
        lineage=this.lineage(
            document,
            _place(sorted({line for line, _ in rows})),
            engine_of(first["framework"]),
            first["framework_version"] or None,
        ),
        asked=asked,
        said=ClaimedTotals(**numbers.said(), stated_cause=numbers.cause),  # type: ignore[arg-type]  # slots name fields of their type
        latency_s=_latency_s(numbers.parts["latency"]),
        remarks=tuple(numbers.remarks),
        kind=_kind(rows),
        outcome=_outcome(numbers),
        label=_label(first),
        unread=_unread(first, others, numbers),
        not_read=(*others, *numbers.not_read),
        bounds=tuple(numbers.bounds),
        required=this.required,
    )


def _move_latency(rows: Iterable[Numbered], numbers: Numbers) -> None:
    """Take a time for that of one batch or request: neither a count of requests nor a load makes it that of a run."""
    said = numbers.parts["said"]
    names = " ".join(row["metric"].lower() for _, row in rows if _metric_key(row) == "said.duration_s")
    is_loaded = any(row["concurrency"] or row["concurrency_or_batch"] for _, row in rows)
    is_of_one = "latency" in names or any(row["batch"] for _, row in rows) or not is_loaded
    if is_of_one and "duration_s" in said and not _COUNTED & said.keys() and not any(r["num_prompts"] for _, r in rows):
        numbers.parts["latency"].setdefault("e2el.", said.pop("duration_s"))


def _words(rows: Iterable[Numbered], others: Iterable[NotRead]) -> str:
    """All that these rows say beside their numbers; a cell that denies its column stands right behind its name."""
    names = ("model", "framework", "system", "notes", "metric", "url_or_title")
    cells = dict.fromkeys(row[name] for _, row in rows for name in names if row.get(name))
    return "; ".join((*cells, *(f"{each.name}: {each.value}" for each in others)))


def _latency_s(numbers: Mapping[str, float]) -> dict[Metric, dict[str, float]]:
    found: dict[Metric, dict[str, float]] = {}
    for name, value in numbers.items():
        metric, _, statistic = name.partition(".")
        found.setdefault(metric, {})[statistic] = value  # type: ignore[arg-type]  # claimed_metrics names no others
    return {metric: _with_statistic(known) for metric, known in found.items()}


def _with_statistic(known: Mapping[str, float]) -> dict[str, float]:
    """A latency without a statistic is the median, of which the rules ask least, or the mean if it cannot be that."""
    bare = known.get("")
    stated = {name: value for name, value in known.items() if name}
    if bare is None:
        return stated
    above = [value for name, value in stated.items() if name.startswith("p") and value < bare]
    name = next((name for name in ("median", "mean") if name not in stated and not (name == "median" and above)), None)
    return stated if name is None else {**stated, name: bare}


def _kind(rows: list[tuple[int, Row]]) -> Kind:
    """How a claim came about, by the words of its metrics and notes."""
    return kind_said_in(" ".join(f"{row['metric']} {row.get('notes', '')}" for _, row in rows))


def _outcome(numbers: Numbers) -> Outcome:
    has_number = any(numbers.parts[part] for part in ("said", "latency"))
    return "failed" if numbers.cause and not has_number else "measured"


def _label(row: Row) -> str:
    lengths = f"{row['isl']}/{row['osl']}" if row["isl"] else ""
    load = row["concurrency_or_batch"] or row["concurrency"] or row["batch"]
    words = (row["source"], row["model"], row["gpu"], row["precision"], lengths, f"at {load}" if load else "")
    return " ".join(word for word in words if word)


def _unread(row: Row, others: Iterable[NotRead], numbers: Numbers) -> dict[str, object]:
    kept = {name: row[name] for name in row if row[name] and (name in KEPT or name == "notes")}
    return {**kept, **{each.name: each.value for each in others}, **numbers.printed}


def _place(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    if lines == list(range(lines[0], lines[-1] + 1)):
        return f"lines {lines[0]}-{lines[-1]}"
    return "lines " + ", ".join(map(str, lines))


FORMAT = Format("claims-table", 2, _recognises, _read, frozenset({"failed_not_zero"}))
