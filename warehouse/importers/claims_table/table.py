"""A table of published numbers: a CSV with one number per row, and its configuration and source in the other columns.

Rows of one configuration form one claim, so that their numbers can be compared. If a metric occurs twice for one
configuration, its rows are distinguished by their notes, then by their order.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, Kind, Metric, Outcome, Remark
from warehouse.importers.claims_table.claimed_metrics import Slot, slot_of
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.printed import engine_of, printed_precision, read_quantity, version_in, whole

_ALWAYS = frozenset({"source", "metric", "value", "unit"})
_NUMBER_COLUMNS = ("metric", "value", "unit", "notes")
_READ = frozenset({"model", "precision", "gpu", "gpu_count", "framework", "tp", "isl", "osl", "num_prompts"})
# With these metrics of a closed loop, `concurrency_or_batch` is a concurrency.
_SERVING = frozenset({"output_throughput_tok_per_s", "request_throughput_per_s", "per_user_tok_per_s"})

# What the metric or the notes of a number that nobody measured as it stands say.
_KINDS: Mapping[str, Kind] = {
    "interpolated": "interpolated",
    "extrapolated": "interpolated",
    "second-hand": "quoted",
    "expected": "expected",
    "theoretical": "expected",
    "projected": "expected",
    "estimated": "expected",
    "aggregate of two": "derived",
}
_BETWEEN_WORDS = re.compile(r"[^a-z0-9-]+")

Row = Mapping[str, str]


@dataclass
class _Numbers:
    """The numbers of one claim by part and field, and its remarks."""

    parts: dict[str, dict[str, float]] = field(default_factory=lambda: {"said": {}, "latency": {}, "asked": {}})
    remarks: list[Remark] = field(default_factory=list)
    printed: dict[str, object] = field(default_factory=dict)  # metrics without a field of ours, as printed
    cause: str | None = None  # of a failure

    def remark(self, code: str, place: str, said: str) -> None:
        self.remarks.append(Remark(code, f"{place}: {said}"))


def _recognises(document: Document) -> bool:
    return set(document.header()) >= _ALWAYS


def _read(document: Document, this: Format) -> Iterator[Claim]:
    grouped: dict[tuple[str, ...], list[tuple[int, Row]]] = defaultdict(list)
    for line, row in document.numbered_table:
        grouped[tuple(cell for name, cell in row.items() if name not in _NUMBER_COLUMNS)].append((line, row))
    for rows in grouped.values():
        for single in _without_twins(rows):
            yield _claim(single, document, this)


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
    return row["metric"] if slot is None else f"{slot.part}.{slot.field}"


def _by_order(rows: list[tuple[int, Row]]) -> list[list[tuple[int, Row]]]:
    seen: Counter[str] = Counter()
    parts: list[list[tuple[int, Row]]] = [[] for _ in range(_largest(rows))]
    for line, row in rows:
        key = _metric_key(row)
        parts[seen[key]].append((line, row))
        seen[key] += 1
    return parts


def _claim(rows: list[tuple[int, Row]], document: Document, this: Format) -> Claim:
    numbers = _Numbers()
    for line, row in rows:
        _add(numbers, row, f"{document.name} line {line}")
    first = rows[0][1]
    place = _place([line for line, _ in rows])
    return Claim(
        lineage=this.lineage(
            document, place, engine_of(first.get("framework")), first.get("framework_version") or None
        ),
        asked=_asked(first, numbers),
        said=ClaimedTotals(**numbers.parts["said"], stated_cause=numbers.cause),  # type: ignore[arg-type]  # slots name fields of float
        latency_s=_latency_s(numbers.parts["latency"]),
        remarks=tuple(numbers.remarks),
        kind=_kind(rows),
        outcome=_outcome(numbers),
        label=_label(first),
        unread=_unread(first, numbers),
        required=this.required,
    )


def _add(numbers: _Numbers, row: Row, place: str) -> None:
    quantity, slot = read_quantity(row["value"]), slot_of(row["metric"], row["unit"])
    if slot is None or quantity is None or quantity.qualifier is not None:
        numbers.printed[row["metric"]] = f"{row['value']} {row['unit']}".strip()
    if slot is None:
        return
    if quantity is None:
        numbers.remark("unreadable_value", place, f"{row['metric']} = {row['value'][:60]!r} is not a number")
    elif quantity.number is None:
        numbers.cause = numbers.cause or _cause(row, failed=quantity.qualifier == "failed")
    else:
        _put(numbers, row, place, slot, quantity.number)


def _put(numbers: _Numbers, row: Row, place: str, slot: Slot, number: float) -> None:
    if slot.remark or slot.scale is None:
        said = f"{row['metric']} = {row['value']} {row['unit']}".rstrip()
        numbers.remark(slot.remark or "unit_unknown", place, said)
    if number == 0:
        numbers.remark("failed_not_zero", place, f"{row['metric']} is 0 but must be positive")
    elif slot.scale is not None:
        numbers.parts[slot.part][slot.field] = number * slot.scale


def _cause(row: Row, *, failed: bool) -> str | None:
    """The table's text for a failure; None if nothing failed."""
    if failed:
        return row["value"].strip()
    notes = row.get("notes", "")
    return notes.partition("status=")[2].partition(";")[0].strip() or None


def _asked(row: Row, numbers: _Numbers) -> ClaimedConfig:
    load = whole(row.get("concurrency_or_batch", ""))
    is_batch = "e2el.mean" in numbers.parts["latency"] and "ttft.mean" not in numbers.parts["latency"]
    is_serving = bool(_SERVING & set(numbers.parts["said"])) or bool(numbers.parts["latency"])
    isl, osl = (read_quantity(row.get(name, "")) for name in ("isl", "osl"))
    return ClaimedConfig(
        model=row.get("model") or None,
        precision=printed_precision(row.get("precision")),
        gpu=row.get("gpu") or None,
        gpu_count=whole(row.get("gpu_count", "")),
        tp_size=whole(row.get("tp", "")),
        engine=engine_of(row.get("framework")),
        engine_version=version_in(row.get("framework_version")) or version_in(row.get("framework")),
        isl=isl.number if isl else None,
        osl=osl.number if osl else None,
        batch=load if is_batch else None,
        concurrency=load if is_serving and not is_batch else None,
        request_count=whole(row.get("num_prompts", "")),
        usd_per_hour=numbers.parts["asked"].get("usd_per_hour"),
        weights_gib=numbers.parts["asked"].get("weights_gib"),
    )


def _latency_s(numbers: Mapping[str, float]) -> dict[Metric, dict[str, float]]:
    found: dict[Metric, dict[str, float]] = {}
    for name, value in numbers.items():
        metric, _, statistic = name.partition(".")
        found.setdefault(metric, {})[statistic] = value  # type: ignore[arg-type]  # claimed_metrics names no others
    return found


def _kind(rows: list[tuple[int, Row]]) -> Kind:
    """How a claim came about, by the words of its metrics and notes; `unexpected` is not the word `expected`."""
    text = " ".join(f"{row['metric']} {row.get('notes', '')}" for _, row in rows).lower()
    words = f" {_BETWEEN_WORDS.sub(' ', text)} "
    return next((kind for said, kind in _KINDS.items() if f" {said} " in words), "measured")


def _outcome(numbers: _Numbers) -> Outcome:
    has_number = any(numbers.parts[part] for part in ("said", "latency"))
    return "failed" if numbers.cause and not has_number else "measured"


def _label(row: Row) -> str:
    lengths = f"{row['isl']}/{row.get('osl', '')}" if row.get("isl") else ""
    load = f"at {row['concurrency_or_batch']}" if row.get("concurrency_or_batch") else ""
    words = (row["source"], row.get("model", ""), row.get("gpu", ""), row.get("precision", ""), lengths, load)
    return " ".join(word for word in words if word)


def _unread(row: Row, numbers: _Numbers) -> dict[str, object]:
    left = {name: cell for name, cell in row.items() if cell and name not in _READ and name not in _NUMBER_COLUMNS}
    return {**left, **numbers.printed, **({"notes": row["notes"]} if row.get("notes") else {})}


def _place(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    if lines == list(range(lines[0], lines[-1] + 1)):
        return f"lines {lines[0]}-{lines[-1]}"
    return "lines " + ", ".join(map(str, lines))


FORMAT = Format("claims-table", 1, _recognises, _read, frozenset({"failed_not_zero"}))
