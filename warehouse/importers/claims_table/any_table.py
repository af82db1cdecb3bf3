"""Tables as people hand them on, of any shape: a column for each metric, a row for each number, or names in the header.

One claim a row, or one for each GPU, precision or load that the header names. No cell is left out in silence: what is
not read is named with the name of ours that is nearest.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bench.audit.claim import Claim, NotRead, Pair, Remark
from bench.audit.column_relations import Miss
from bench.errors import UnreadableResultError
from catalog.read import read_names
from warehouse.importers.claims_table.arithmetic import misses_of
from warehouse.importers.claims_table.budgets import budgets_of
from warehouse.importers.claims_table.claimed_metrics import Slot, slot_of
from warehouse.importers.claims_table.columns import COLUMNS
from warehouse.importers.claims_table.described import claims_without_metric, has_digit, of_table
from warehouse.importers.claims_table.facets import llama_test
from warehouse.importers.claims_table.facts import states_facts, wrong_facts
from warehouse.importers.claims_table.plan import LONG, Measure, Plan, plan_of
from warehouse.importers.claims_table.ratios import states_ratio
from warehouse.importers.claims_table.table import Numbered, claims_of_rows, without_rows
from warehouse.importers.claims_table.vocabulary import OF_UNIT, column_of
from warehouse.importers.claims_table.words import names_speed
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.printed import read_quantity
from warehouse.importers.parsing.printed_units import split_name, unit_of
from warehouse.importers.tables.cells import as_meant, is_comparison, is_summary, printed_column
from warehouse.importers.tables.table import Row, Table

# Columns of which one makes a text with columns a table of results; a page says by its marks that it has tables.
_SUBJECT = frozenset({"model", "gpu", "concurrency", "batch", "isl", "osl", "tp", "precision", "num_prompts"})
_MEASURES_MIN = 2


def _recognises(document: Document) -> bool:
    try:
        plans = [plan_of(as_meant(table), document.mapped) for table in document.tables]
    except UnreadableResultError:
        return False
    return any(
        _is_of_results(plan)
        or _is_about_speed(plan.table)
        or states_ratio(plan.table)
        or states_facts(plan.table)
        or budgets_of(plan, of_table(plan))
        for plan in plans
    )


def _is_about_speed(table: Table) -> bool:
    """Whether a table of a page or report is about speed, although no header names a number of ours: each is named."""
    said = f"{table.caption} {table.heading}"
    has_numbers = any(has_digit(cell) for row in table.rows for cell in row.cells[1:])
    has_subject = bool(said.strip()) or any(_SUBJECT & set(column_of(name)) for name in table.header)
    return has_subject and has_numbers and (names_speed(" ".join((said, *table.header))) or _has_rate(table))


def _has_rate(table: Table) -> bool:
    """Whether a header ends with a unit of speed or time, or its cells do, whatever it is of."""
    for at, name in enumerate(table.header):
        beside = {_unit_in(row.cells[at]) for row in table.rows if row.cells[at]}
        units = [split_name(name)[1], *([unit_of(beside.pop())] if len(beside) == 1 else [])]
        if any(unit is not None and (unit.dimension in OF_UNIT or unit.dimension == "s") for unit in units):
            return True
    return False


def _unit_in(cell: str) -> str:
    quantity = read_quantity(cell)
    return quantity.unit if quantity else ""


def _is_of_results(plan: Plan) -> bool:
    is_sure = len(plan.measures) >= _MEASURES_MIN or bool(plan.table.caption or plan.table.heading)
    return plan.worth > 0 and (plan.is_long or plan.is_turned or is_sure or bool(_SUBJECT & plan.columns.keys()))


def _read(document: Document, this: Format) -> Iterator[Claim]:
    if not any(table.rows for table in document.tables):
        raise without_rows(document)
    for at, printed in enumerate(document.tables):
        plan = plan_of(as_meant(printed), document.mapped)
        if plan.worth:
            yield from _Reading(document, this, at, plan).claims()
        elif any(has_digit(cell) for row in printed.rows for cell in row.cells):
            yield from claims_without_metric(document, this, at, plan)


class _Reading:
    """One table being read."""

    def __init__(self, document: Document, this: Format, at: int, plan: Plan) -> None:
        self.document, self.format, self.at, self.plan = document, this, at, plan
        table = plan.table
        self.is_turned = plan.is_turned
        self.of_table = of_table(plan)
        self.misses: dict[int, list[Miss]] = defaultdict(list)
        for miss in misses_of(table):
            self.misses[miss.row].append(miss)
        self.facts: dict[int, list[Miss]] = defaultdict(list)
        for miss in wrong_facts(plan):
            self.facts[miss.row].append(miss)
        # A row has one budget; tables with a metric have no other.
        self.budgets = {place[0]: each for each in budgets_of(plan, self.of_table) for place in each.cells.values()}

    def claims(self) -> Iterator[Claim]:
        if self.plan.is_long:
            yield from self._long()
            return
        for down, row in enumerate(self.plan.table.rows):
            if is_summary(row) or is_comparison(row):
                yield self._summary(down, row)
                continue
            for stated, measures in self._by_statement():
                yield from self._of_row(down, row, stated, measures)

    def _by_statement(self) -> list[tuple[dict[str, str], list[Measure]]]:
        grouped: dict[tuple[tuple[str, str], ...], list[Measure]] = {}
        for measure in self.plan.measures:
            grouped.setdefault(tuple(sorted(measure.stated.items())), []).append(measure)
        return [(dict(stated), measures) for stated, measures in grouped.items()]

    def _of_row(self, down: int, row: Row, stated: dict[str, str], measures: list[Measure]) -> Iterator[Claim]:
        base = self._configuration(row) | stated
        measures = self._of_test(row, measures, base)
        cells: list[Numbered] = [
            (row.line, {**base, "metric": each.name, "value": row.cells[each.at], "unit": _unit_of(each, row)})
            for each in measures
        ]
        # A row without any number is a claim too, of which nothing can be checked.
        filled = [cell for cell in cells if cell[1]["value"]] or (cells[:1] if not stated else [])
        if not filled:
            return
        others = tuple(self._not_read(down, row))
        for claim in claims_of_rows(filled, others, self.document, self.format):
            places = {name: self._place(down, each.at) for each in measures for name in _names_of(each, row)}
            if claim.said.duration_s is None and "duration_s" in places:  # the latency of one batch
                places["e2el_median"] = places.pop("duration_s")
            yield self._completed(claim, down, places, self._conflicts(row))

    def _of_test(self, row: Row, measures: list[Measure], base: dict[str, str]) -> list[Measure]:
        """The measures of a row of llama-bench, whose column `test` names the tokens; `base` gets the lengths."""
        header = [name.lower() for name in self.plan.table.header]
        test = llama_test(row.cells[header.index("test")]) if "test" in header else None
        if test is None:
            return measures
        base.update(test[1])
        return [replace(each, name=test[0], unit="tok/s") if each.name.lower() == "t/s" else each for each in measures]

    def _long(self) -> Iterator[Claim]:
        """Rows of one configuration are one claim: each number in its own row."""
        grouped: dict[tuple[str, ...], list[Numbered]] = defaultdict(list)
        others: dict[tuple[str, ...], tuple[NotRead, ...]] = {}
        varied = LONG | {"unit", "notes", "spread", "n"}
        for down, row in enumerate(self.plan.table.rows):
            base = self._configuration(row)
            key = tuple(value for name, value in base.items() if name not in varied)
            grouped[key].append((row.line, base))
            others.setdefault(key, tuple(self._not_read(down, row)))
        for key, rows in grouped.items():
            yield from claims_of_rows(rows, others[key], self.document, self.format)

    def _configuration(self, row: Row) -> dict[str, str]:
        own = {name: row.cells[at] for name, at in self.plan.columns.items()}
        for at, name in self.plan.twins.items():
            own[name] = own[name] or row.cells[at]
        stated = {name: value for name, value in self.of_table.items() if not own.get(name)}
        return dict.fromkeys(COLUMNS, "") | own | stated

    def _conflicts(self, row: Row) -> tuple[Pair, ...]:
        """Two columns of one meaning whose cells do not agree."""
        pairs = []
        for at, name in self.plan.twins.items():
            first = self.plan.columns[name]
            one, other = row.cells[first], row.cells[at]
            header = self.plan.table.header
            is_of_two = _is_limit(header[first]) != _is_limit(header[at]) or (
                name == "precision" and _is_of_compute((header[first], one), (header[at], other))
            )
            if one and other and not is_of_two and not _agree(name, one, other):
                pairs.append(Pair("label", one, other, f"columns {header[first]} / {header[at]}"))
        return tuple(pairs)

    def _not_read(self, down: int, row: Row) -> Iterator[NotRead]:
        budgeted = set(self.budgets[down].cells.values()) if down in self.budgets else set()
        for at, each in self.plan.others.items():
            if row.cells[at] and (down, at) not in budgeted:
                yield replace(each, value=row.cells[at])

    def _summary(self, down: int, row: Row) -> Claim:
        """A row of totals, means or ratios: no measurement; its numbers are held against the other rows."""
        header = self.plan.table.header
        does = "sums up" if is_summary(row) else "compares"
        why = f"the row {row.cells[0]!r} {does} other rows, and is held against them"
        cells = [NotRead("value", header[at], cell, why) for at, cell in enumerate(row.cells) if has_digit(cell)]
        lineage = self.format.lineage(self.document, f"line {row.line}")
        claim = Claim(lineage, label=row.cells[0], not_read=tuple(cells), required=self.format.required)
        return self._completed(claim, down, {}, ())

    def _completed(
        self, claim: Claim, down: int, places: Mapping[str, tuple[int, int, int]], pairs: tuple[Pair, ...]
    ) -> Claim:
        lineage = claim.lineage
        sheet = f"{self.plan.table.place} " if self.plan.table.place else ""
        title = f" {self.plan.table.rows[down].cells[0]}" if self.is_turned else ""
        missed = tuple(
            Remark(code, f"{self.document.name} {lineage.place}{title}: {miss.arithmetic}")
            for code, misses in (("table_arithmetic", self.misses), ("fact_conflict", self.facts))
            for miss in misses.get(down, ())
        )
        budget = self.budgets.get(down)
        budgeted = {name: self._place(*place) for name, place in budget.cells.items()} if budget else {}
        return replace(
            claim,
            lineage=replace(lineage, place=f"{sheet}{lineage.place}{title}"),
            remarks=(*claim.remarks, *missed),
            pairs=(*claim.pairs, *pairs),
            budget=budget.lines if budget else (),
            cells={**places, **self._missed(down), **budgeted},
        )

    def _missed(self, down: int) -> dict[str, tuple[int, int, int]]:
        """Where the numbers of a row stand that do not follow from the others."""
        return {f"table_arithmetic {miss.column}": self._place(down, miss.column) for miss in self.misses.get(down, ())}

    def _place(self, down: int, at: int) -> tuple[int, int, int]:
        if self.is_turned:
            return (self.at, at - 1, down + 1)
        return (self.at, down, printed_column(self.plan.table, at))


def _agree(name: str, one: str, other: str) -> bool:
    """Whether two cells of one meaning say the same: `FP8` and `fp8 (W8A8)`, `1` and `1.0`."""
    names = read_names()
    find = {"precision": names.precisions_called, "gpu": names.gpus_called}.get(name)
    if find is not None:
        first, second = find(one), find(other)
        return not first or not second or bool({str(each) for each in first} & {str(each) for each in second})
    if name == "model":
        return not names.model(one) or not names.model(other) or names.model(one) == names.model(other)
    first_number, second_number = read_quantity(one), read_quantity(other)
    if first_number and second_number and None not in (first_number.number, second_number.number):
        return first_number.number == second_number.number
    return name not in {"tp", "pp", "gpu_count", "concurrency", "batch", "isl", "osl"} or one == other


def _is_limit(header: str) -> bool:
    """Whether a header is of the most that a setting may be: `Max concurrency` beside `Concurrency`."""
    return bool(re.match(r"max(?:imum)?(?:\b|_)", header, re.IGNORECASE))


def _is_of_compute(*columns: tuple[str, str]) -> bool:
    """Whether, of two headers with their cells, one names a quantization and the other 16 bits to compute in.

    `Quantization: AWQ` and `dtype: float16` are two options of one engine.
    """
    quantized = [bool(re.match(r"quant", header, re.IGNORECASE)) for header, _ in columns]
    is_type = [
        bool(re.search(r"d(?:ata[ _]?)?type", header, re.IGNORECASE)) and "16" in cell for header, cell in columns
    ]
    return quantized in ([True, False], [False, True]) and is_type == [not each for each in quantized]


def _names_of(measure: Measure, row: Row) -> Iterator[str]:
    """The name of a measure's number as the coverage has it."""
    quantity = read_quantity(row.cells[measure.at])
    slot = slot_of(measure.name, _unit_of(measure, row) or (quantity.unit if quantity else ""))
    if isinstance(slot, Slot):
        bare = slot.part == "latency" and "." not in slot.field
        yield slot.field.replace(".", "_") + ("_median" if bare else "")


def _unit_of(measure: Measure, row: Row) -> str:
    return measure.unit if measure.unit_at is None else row.cells[measure.unit_at]


FORMAT = Format("table", 1, _recognises, _read, frozenset({"failed_not_zero"}))
