"""The numbers of one claim of a table, and what of its rows was not read."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from bench.audit.claim import Bound, NotRead, Remark
from bench.repeats import LEAST
from bench.student import t_975
from warehouse.importers.claims_table.claimed_metrics import COUNTS, Slot, slot_of
from warehouse.importers.claims_table.vocabulary import context_in
from warehouse.importers.parsing.latencies import may_be_zero
from warehouse.importers.parsing.printed import Quantity, read_quantity, whole, why_no_number
from warehouse.importers.parsing.printed_units import split_unit, unit_of

Row = Mapping[str, str]

BARE = "median"  # what a latency without a statistic is, if another row does not state the median
_WHOLE = COUNTS | {"printed_kv_cache_tokens"}
_LIMITS = frozenset({"range", "below", "above"})
_IN_THOUSANDS = re.compile(r"\d[kKMB](?![A-Za-z])")
_COARSE = 1e-3  # as a share: from here on half a unit of the last digit is more than the identities of totals allow


@dataclass
class Numbers:
    """The numbers of one claim by part and field, its remarks, and the metrics and values that were not read."""

    parts: dict[str, dict[str, float]] = field(default_factory=lambda: {"said": {}, "latency": {}, "asked": {}})
    remarks: list[Remark] = field(default_factory=list)
    printed: dict[str, object] = field(default_factory=dict)  # metrics without a field of ours, as printed
    not_read: list[NotRead] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)  # numbers that are a range, a limit or a rough one
    cause: str | None = None  # of a failure
    longest: int | None = None  # the maximum context that the name of a metric states

    def add(self, row: Row, place: str) -> None:
        """Add the number of one row; `place` names it in remarks."""
        quantity = read_quantity(row["value"])
        self.longest = self.longest or context_in(row["metric"])
        slot = slot_of(row["metric"], row["unit"] or (quantity.unit if quantity else ""))
        if not isinstance(slot, Slot) or quantity is None or quantity.qualifier is not None:
            self.printed[row["metric"]] = _printed(row)
        if not isinstance(slot, Slot):
            self.not_read.append(NotRead("metric", row["metric"], _printed(row), slot.why, slot.nearest))
        elif quantity is None:
            why = why_no_number(row["value"])
            self._remark("unreadable_value", place, f"{row['metric']} = {row['value'][:60]!r}: {why}")
            self._leave(row, why)
        elif quantity.number is None and not (quantity.qualifier in _LIMITS and _is_bounded(slot)):
            self.cause = self.cause or _cause(row, failed=quantity.qualifier == "failed")
            self._leave(row, _why_none(row["value"], quantity))
        else:
            self._put(row, place, slot, quantity)

    def said(self) -> dict[str, float | int]:
        """The totals and rates; counts are whole."""
        return {name: round(value) if name in _WHOLE else value for name, value in self.parts["said"].items()}

    def _put(self, row: Row, place: str, slot: Slot, quantity: Quantity) -> None:
        number = quantity.number or 0.0
        in_cell, of_row = unit_of(quantity.unit), split_unit(row["unit"])[1]
        if in_cell and of_row and not in_cell.agrees(of_row):
            slot = Slot(slot.part, slot.field, None, "unit_unknown")
        if slot.remark or slot.scale is None:
            self._remark(slot.remark or "unit_unknown", place, f"{row['metric']} = {_printed(row)}")
        if slot.scale is None:
            self._leave(row, "its unit is unknown, or is not that of its metric")
        elif quantity.number is None:
            self._put_bound(row, slot, (quantity.low, quantity.high))
        elif number == 0 and slot.part == "latency" and "." in row["value"] and not zero_is_measured(slot.field):
            self._leave(row, "it is rounded to 0")
        elif number == 0 and not zero_is_measured(slot.field):
            self._remark("failed_not_zero", place, f"{row['metric']} is 0 but must be positive")
        else:
            # A latency without a statistic ends with its point.
            name = slot.field if slot.part != "latency" or "." in slot.field else f"{slot.field}."
            self.parts[slot.part][name] = number * slot.scale
            self._add_interval(row, slot, quantity)
            is_rough = quantity.qualifier == "about" or _is_coarse(number, slot.scale, row["value"])
            if is_rough and _is_bounded(slot):
                self._put_bound(row, slot, _around(number))

    def _put_bound(self, row: Row, slot: Slot, ends: tuple[float | None, float | None]) -> None:
        """Keep a range, a limit, or what a rough number may be rounded from."""
        low, high = (None if end is None else end * (slot.scale or 1.0) for end in ends)
        if low is not None and high is not None:
            low, high = min(low, high), max(low, high)
        name = slot.field if slot.part != "latency" or "." in slot.field else f"{slot.field}.{BARE}"
        bound = Bound(name, low, high, _printed(row))
        self.bounds.append(bound)
        if bound.generous is None:
            self._leave(row, "it is a limit on the side on which no rule limits it")

    def _add_interval(self, row: Row, slot: Slot, value: Quantity) -> None:
        """The half width of the 95 % interval of a throughput, from its spread over repeats."""
        in_column, repeats = read_quantity(row["spread"]) or Quantity(), whole(row["n"])
        spread = value.spread if in_column.number is None else in_column.number
        if spread is None or repeats is None or repeats < LEAST or not slot.field.endswith("throughput_tok_per_s"):
            why = f"an interval needs a throughput, its spread and at least {LEAST} repeats in the column n"
            found = {"spread": row["spread"] or (f"± {spread:g}" if spread is not None else ""), "n": row["n"]}
            self.not_read += [NotRead("value", name, cell, why) for name, cell in found.items() if cell]
            return
        share = spread / 100 if in_column.unit == "%" else spread / (value.number or math.nan)
        self.parts["said"]["interval_half_width_share"] = t_975(repeats - 1) * share / math.sqrt(repeats)

    def _remark(self, code: str, place: str, said: str) -> None:
        self.remarks.append(Remark(code, f"{place}: {said}"))

    def _leave(self, row: Row, why: str) -> None:
        self.not_read.append(NotRead("value", row["metric"], _printed(row), why))


def zero_is_measured(name: str) -> bool:
    """Whether 0 is a value of this field, as it is of `failed`; a speed of 0 is none."""
    metric, _, statistic = name.partition(".")
    return name == "failed" or may_be_zero(metric, statistic)


def _is_bounded(slot: Slot) -> bool:
    """Whether physics limits this number: a rate from above, a latency from below."""
    return slot.part == "latency" or "_per_s" in slot.field or slot.field.startswith("train_")


def _around(number: float) -> tuple[float, float]:
    """The numbers that are rounded to a rough one: `~900` is 850 to 950, `~33` is 32.5 to 33.5."""
    exponent = Decimal(f"{number:.12g}").normalize().as_tuple().exponent
    half = 0.5 * 10.0**exponent if isinstance(exponent, int) else 0.0
    return number - half, number + half


def _is_coarse(number: float, scale: float, text: str) -> bool:
    """Whether a number stands in thousands, in its cell or its unit, and so has fewer digits than it seems to have."""
    low, high = _around(number)
    return bool(_IN_THOUSANDS.search(text) or scale > 1) and high - low > _COARSE * abs(number)


def _printed(row: Row) -> str:
    return f"{row['value']} {row['unit']}".strip()


def _why_none(text: str, quantity: Quantity) -> str:
    if quantity.qualifier in _LIMITS:
        return "it is a bound, not a number"
    return "it is a failure" if quantity.qualifier == "failed" else why_no_number(text)


def _cause(row: Row, *, failed: bool) -> str | None:
    """The table's text for a failure; None if nothing failed."""
    if failed:
        return row["value"].strip()
    return row["notes"].partition("status=")[2].partition(";")[0].strip() or None
