"""Read a record by the table of its tool's field names (catalog/record_fields.csv).

A record is a JSON object, one of a list or of JSON lines, or a row of CSV; fields of nested objects are named by path.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, get_args, get_type_hints

from bench.audit.claim import ClaimedConfig, ClaimedTotals, Metric
from bench.audit.evidence.rounding import rel
from bench.catalog.rows import RecordField
from bench.metrics import Floats
from catalog.read import read_record_fields
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields
from warehouse.importers.parsing.printed import printed_precision

_SCALES = {"ns": 1e-9, "ms": 1e-3, "bytes": 2.0**-30, None: 1.0}
_DEPTH_MAX = 4  # of nested objects whose fields are named
APART_MAX = 0.01  # tools round to a few digits
_PRECISIONS = frozenset({"precision", "kv_precision"})
_METRICS: tuple[Metric, ...] = ("ttft", "tpot", "itl", "e2el")


@dataclass(frozen=True)
class Relation:
    """A number of a record that its tool computes from others: the product of `of` over that of `over`."""

    result: str
    of: tuple[str, ...]
    over: tuple[str, ...]


@dataclass(frozen=True)
class Read:
    """What a record says in our words."""

    asked: ClaimedConfig
    said: ClaimedTotals
    latency_s: dict[Metric, dict[str, float]]
    iteration_s: Floats | None


@cache
def fields_of(form: str) -> tuple[RecordField, ...]:
    """The known fields of a form, in the order in which they are tried."""
    return tuple(row for row in read_record_fields() if row.form == form)


def is_of(form: str, document: Document) -> bool:
    """Whether its first record has every field that this form always has; never raises."""
    first = document.first_object
    names = flattened(first).keys() if first else document.header()
    return all(row.field in names for row in fields_of(form) if row.is_mark)


def records(document: Document) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every record with its location."""
    if document.first_object:
        yield from ((place, flattened(values)) for place, values in document.objects)
        return
    yield from ((f"line {line}", row) for line, row in document.numbered_table)


def flattened(values: Mapping[str, Any], depth: int = _DEPTH_MAX) -> dict[str, Any]:
    """The fields with those of nested objects, named by their path."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and depth:
            found |= {f"{name}.{inner}": each for inner, each in flattened(value, depth - 1).items()}
        else:
            found[name] = value
    return found


def read_record(form: str, fields: Fields) -> Read:
    """The numbers of a record; of two fields that mean the same the first counts, and one that differs is a remark."""
    found: dict[str, Any] = {}
    names: dict[str, str] = {}
    for row in fields_of(form):
        if row.means is None or row.field not in fields:
            continue
        value = _value(fields, row)
        if value is None:
            continue
        if row.means in found and _differ(found[row.means], value):
            fields.remark("table_arithmetic", f"{row.field} is {value:g}, and {names[row.means]} {found[row.means]:g}")
        found.setdefault(row.means, value)
        names.setdefault(row.means, row.field)
    return Read(
        ClaimedConfig(**_under("asked", found)),
        ClaimedTotals(**_under("said", found)),
        {metric: statistics for metric in _METRICS if (statistics := _under(metric, found))},
        found.get("series.iteration_s"),
    )


def _under(part: str, found: Mapping[str, Any]) -> dict[str, Any]:
    return {name.partition(".")[2]: value for name, value in found.items() if name.partition(".")[0] == part}


def _differ(one: Any, other: Any) -> bool:
    return isinstance(one, float) and isinstance(other, float) and rel(one, other) > APART_MAX


def _value(fields: Fields, row: RecordField) -> Any:
    """A field by the type of ours; times and rates must be above 0, deviations and counts at least 0."""
    part, _, name = (row.means or "").partition(".")
    scale = _SCALES[row.unit]
    if part == "series":
        values = fields.numbers(row.field)
        return None if values is None or not len(values) else values * scale
    kind = _kind(part, name)
    if kind is str:
        text = fields.text(row.field)
        return printed_precision(text) if name in _PRECISIONS else text
    value = fields.integer(row.field) if kind is int else fields.number(row.field, scale=scale)
    if value is not None and value < 0:
        # Tools write -1 for what they did not measure.
        return None
    if value == 0 and kind is float and name != "std":
        return fields.positive(row.field)
    return value


def _kind(part: str, name: str) -> type:
    hints = {"asked": ClaimedConfig, "said": ClaimedTotals}
    if part not in hints:
        return float
    kinds = get_args(_hints(hints[part])[name])
    return next(kind for kind in (int, float, str) if kind in kinds)


@cache
def _hints(of: type) -> Mapping[str, Any]:
    return get_type_hints(of)


def hold(fields: Fields, relations: Sequence[Relation]) -> None:
    """A remark for each number that does not follow from those that its tool computes it from."""
    for relation in relations:
        names = (relation.result, *relation.of, *relation.over)
        if not all(name in fields for name in names):
            continue
        result, *rest = (fields.number(name) for name in names)
        of, over = rest[: len(relation.of)], rest[len(relation.of) :]
        known = [value for value in (result, *of, *over) if value is not None and value > 0]
        if len(known) < len(names) or result is None:
            continue
        computed = prod(known[1 : 1 + len(of)]) / prod(known[1 + len(of) :])
        if rel(result, computed) > APART_MAX:
            formula = f"{' x '.join(relation.of)} / {' x '.join(relation.over)}"
            fields.remark("table_arithmetic", f"{relation.result} is {result:g}, and {formula} = {computed:g}")
