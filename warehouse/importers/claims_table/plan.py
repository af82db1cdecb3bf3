"""What each column of a table holds: a part of the configuration, a number of ours, or neither."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from bench.audit.claim import NotRead
from warehouse.importers.claims_table.claimed_metrics import NoSlot, Slot, slot_of
from warehouse.importers.claims_table.columns import COLUMNS
from warehouse.importers.claims_table.facets import facets_of, llama_test
from warehouse.importers.claims_table.kinds import kind_said_in
from warehouse.importers.claims_table.numbers import zero_is_measured
from warehouse.importers.claims_table.ratios import RATIO
from warehouse.importers.claims_table.vocabulary import STATISTICS, column_of, metric_of, nearest
from warehouse.importers.claims_table.words import percentile_in, without_ignored
from warehouse.importers.parsing.printed import read_quantity, whole
from warehouse.importers.parsing.printed_units import split_name
from warehouse.importers.tables.table import Row, Table

_PHRASE_MAX = 7  # words of a caption that name a metric
LONG = frozenset({"metric", "value"})
# llama.cpp's benchmarks name lengths so; elsewhere PP is pipeline parallel.
_LLAMA = {"pp": "isl", "tg": "osl", "b": "batch"}
# `Offline Performance` beside `Offline Metric`, as MLPerf prints them: a number and its unit.
_PERFORMANCE, _ITS_UNIT = ("performance", "result"), ("metric", "units", "unit")


# A table with one of these is of training, where tokens per second and GPU are neither of prompts nor of answers.
_TRAINING = frozenset({"gbs", "mbs", "global batch size", "micro batch size"})
_TRAINED = "train_tok_per_s_per_gpu"
# Columns whose values the header may have: `Batch size | 1 | 8 | 64`.
_AXES = frozenset({"isl", "osl", "batch", "concurrency", "concurrency_or_batch", "tp", "gpu_count", "request_rate"})
_VALUES_MIN = 2


@dataclass(frozen=True)
class Measure:
    """A column of numbers: the metric's name and unit as slot_of reads them, and what its header states beside."""

    at: int
    name: str
    unit: str = ""
    stated: Mapping[str, str] = field(default_factory=dict)
    unit_at: int | None = None  # the column that holds the unit of each cell
    is_statistic: bool = False  # its header is `p99` and nothing else: of the one metric of the table


@dataclass(frozen=True)
class Plan:
    """How a table is read; `table` is turned on its side where its first column holds the names."""

    table: Table
    columns: Mapping[str, int]  # our column: where it stands
    twins: Mapping[int, str]  # a further column of the same meaning
    measures: tuple[Measure, ...]
    others: Mapping[int, NotRead]
    is_turned: bool = False

    @property
    def is_long(self) -> bool:
        """Whether each row is one number with its name beside it."""
        return self.columns.keys() >= LONG

    @property
    def worth(self) -> int:
        """How many columns are numbers of ours."""
        return 1 if self.is_long else len(self.measures)


def plan_of(table: Table, mapped: Mapping[str, str]) -> Plan:
    """The plan that reads most of this table, as it stands or on its side.

    `mapped` says what the reader of the table knows of its headers: `their name` is `our name` or `our name[unit]`.
    """
    upright = _Planner(table, mapped).plan()
    if upright.worth and upright.columns:
        return upright
    side = _on_its_side(table)
    turned = None if side is None else replace(_Planner(side, mapped).plan(), is_turned=True)
    return turned if turned is not None and turned.worth > upright.worth else upright


def _on_its_side(table: Table) -> Table | None:
    """The table with its first column as header: `Metric | MI300X | H100` has a row for each GPU."""
    names = [row.cells[0] for row in table.rows]
    if not names or len(set(names)) < len(names) or not all(names) or len(names) > 200:  # noqa: PLR2004 - no header is as long
        return None
    header = ("system", *names)
    line = table.rows[0].line
    rows = tuple(
        Row(line, (title, *(row.cells[at] for row in table.rows))) for at, title in enumerate(table.header[1:], start=1)
    )
    return replace(table, header=header, rows=rows)


@dataclass(frozen=True)
class _Planner:
    table: Table
    mapped: Mapping[str, str]

    def plan(self) -> Plan:
        columns: dict[str, int] = {}
        twins: dict[int, str] = {}
        measures: list[Measure] = []
        others: dict[int, NotRead] = {}
        for at, header in enumerate(self.table.header):
            meaning = self._meaning(at, header)
            if isinstance(meaning, Measure) and not (meaning.is_statistic and self._has_own_metrics):
                measures.append(meaning)
            elif isinstance(meaning, Measure):
                others[at] = NotRead("column", header, "", "it names a statistic and not of what")
            elif isinstance(meaning, NotRead):
                others[at] = meaning
            elif meaning in columns:
                twins[at] = meaning
            else:
                columns[meaning] = at
        measures, unmeasured = self._measured(measures)
        return Plan(self.table, columns, twins, tuple(measures), others | unmeasured)

    def _measured(self, measures: list[Measure]) -> tuple[list[Measure], dict[int, NotRead]]:
        """The columns without those of 0 in all rows, where others have numbers: they were not filled in."""
        empty = [each for each in measures if self._is_zero(each)]
        if len(self.table.rows) == 1 or len(empty) == len(measures):
            return measures, {}
        why = "it is 0 in every row, beside other numbers: it was not measured"
        unmeasured = {each.at: NotRead("column", self.table.header[each.at], "", why) for each in empty}
        return [each for each in measures if each not in empty], unmeasured

    def _is_zero(self, measure: Measure) -> bool:
        """Whether each of its numbers is 0, of a metric that has no such value."""
        slot = slot_of(measure.name, measure.unit)
        if not isinstance(slot, Slot) or zero_is_measured(slot.field):
            return False
        numbers = (read_quantity(row.cells[measure.at]) for row in self.table.rows)
        return all(each is not None and each.number == 0 for each in numbers)

    def _meaning(self, at: int, header: str) -> str | Measure | NotRead:
        name = self.mapped.get(header, header)
        if header in self.mapped:
            return name if name in COLUMNS else Measure(at, *_with_unit(name))
        if at == 0 and self._axis:
            return "system"
        if name.lower() in _LLAMA and self._is_llama:
            return _LLAMA[name.lower()]
        return self._named(at, name)

    def _named(self, at: int, name: str) -> str | Measure | NotRead:
        """The meaning of a header by its words."""
        slot, means = slot_of(name, ""), column_of(name)
        # `Output tok/s` is a metric and `Output` a length.
        is_rate = isinstance(slot, Slot) and slot.scale is not None and split_name(name)[1] is not None
        if means and not is_rate and not self._is_measured(at, name):
            return means[0]
        kind = kind_said_in(name)
        if kind != "measured":
            return NotRead("column", name, "", f"it is {kind}, not measured")
        if isinstance(slot, Slot) and (self._has_digit(at) or self._is_empty(at)):
            return Measure(at, name)
        if isinstance(slot, NoSlot) and self._is_of_training and _TRAINED in getattr(metric_of(name), "candidates", ()):
            return Measure(at, _TRAINED)
        other = self._beside_unit(at, name) or self._pivoted(at, name)
        if other is None and RATIO.search(name):
            return NotRead("column", name, "", "it states a ratio, held against the other numbers where they give it")
        why = slot.why if isinstance(slot, NoSlot) else "no cell of it has a number"
        return other or NotRead("column", name, "", why, nearest(name, "metric", "column"))

    @cached_property
    def _is_of_training(self) -> bool:
        return bool(_TRAINING & {split_name(name)[0] for name in self.table.header})

    @cached_property
    def _axis(self) -> str:
        """The column that the first header names and whose values are the other headers; empty if it is none."""
        first, *others = self.table.header
        means = column_of(first)[:1]
        values = [whole(name) for name in others]
        is_axis = len(others) >= _VALUES_MIN and None not in values and len(set(values)) == len(values)
        return means[0] if is_axis and set(means) & _AXES and self._common[0] else ""

    @cached_property
    def _is_llama(self) -> bool:
        return {"pp", "tg"} <= {name.lower() for name in self.table.header}

    def _beside_unit(self, at: int, header: str) -> Measure | None:
        """A number whose unit stands in the column beside it."""
        *first, last = header.lower().split() or [""]
        if last not in _PERFORMANCE:
            return None
        of_unit = {" ".join((*first, word)) for word in _ITS_UNIT}
        unit_at = next((place for place, name in enumerate(self.table.header) if name.lower() in of_unit), None)
        return None if unit_at is None else Measure(at, "throughput", unit_at=unit_at)

    def _is_measured(self, at: int, name: str) -> bool:
        """Whether a header of a length has fractions below it: `Output tokens` as a rate is not a length."""
        return "tok/s" in self._common[0] and column_of(name)[:1] in {("isl",), ("osl",)} and self._has_fraction(at)

    def _has_digit(self, at: int) -> bool:
        return any(any(letter.isdigit() for letter in row.cells[at]) for row in self.table.rows)

    def _is_empty(self, at: int) -> bool:
        return not any(row.cells[at] for row in self.table.rows)

    def _has_fraction(self, at: int) -> bool:
        return any("." in row.cells[at] for row in self.table.rows)

    def _pivoted(self, at: int, header: str) -> Measure | None:
        """A column of the table's one metric, for the GPU, precision, load or statistic that its header states."""
        test = llama_test(header)
        if test is not None:
            return Measure(at, test[0], "tok/s", test[1])
        stated, rest = ({self._axis: header}, "") if self._axis else facets_of(header)
        words, unit = split_name(rest)
        words = without_ignored(words)
        if not words and unit is None and column_of(self.table.header[0])[:1] == ("metric",):
            return None  # each row names its own metric
        if not stated:
            return self._of_statistic(at, words)
        own = slot_of(rest, "") if rest and unit is not None else None
        if words and not isinstance(own, Slot):
            return None
        if words or (unit is not None and not self._fits(unit.dimension)):
            return Measure(at, rest, "", stated)
        name, of_table = self._common
        name = name or self._unit_below(at)
        return Measure(at, name, of_table, stated) if name else None

    def _unit_below(self, at: int) -> str:
        """The unit that every number of a column has beside it: `4,336 tok/s`; empty if they have none, or several."""
        quantities = [read_quantity(row.cells[at]) for row in self.table.rows if row.cells[at]]
        units = {None if quantity is None else quantity.unit for quantity in quantities}
        unit = units.pop() if len(units) == 1 else None
        return unit if unit and isinstance(slot_of(unit, ""), Slot) else ""

    @cached_property
    def _has_own_metrics(self) -> bool:
        """Whether a column of the table names its metric itself."""
        slots = (slot_of(header, "") for header in self.table.header if not column_of(header))
        return any(isinstance(slot, Slot) and slot.scale is not None for slot in slots)

    def _of_statistic(self, at: int, words: str) -> Measure | None:
        name, unit = self._common
        if not name or not (words in STATISTICS or percentile_in(words)):
            return None
        slot = slot_of(name, unit)
        is_mean = STATISTICS.get(words) == "mean"
        if isinstance(slot, Slot) and slot.part == "latency" and "." not in slot.field:
            bare, stated = split_name(name)
            return Measure(
                at, f"{words} {bare} ({_word_of(name, bare)})" if stated else f"{words} {bare}", unit, is_statistic=True
            )
        return Measure(at, name, unit, is_statistic=True) if is_mean else None

    def _fits(self, dimension: str) -> bool:
        """Whether the table's one metric has this dimension."""
        name, unit = self._common
        stated = split_name(f"{name} ({unit})" if unit else name)[1]
        return bool(name) and stated is not None and stated.dimension.startswith(dimension)

    @cached_property
    def _common(self) -> tuple[str, str]:
        """Name and unit of the metric that caption or heading name; empty if they name none."""
        for text in (self.table.caption, self.table.heading, self.table.header[0]):
            found = next(_metrics_in(text), None)
            if found:
                return found
        return "", ""


def _word_of(name: str, bare: str) -> str:
    """The unit of a name as it is printed there."""
    return "".join(name.lower().replace("(", " ").replace(")", " ").split()[len(bare.split()) :])


def _metrics_in(text: str) -> Iterator[tuple[str, str]]:
    """The phrases of a text that name a metric with its unit, the longest first."""
    words = text.replace(",", " ").replace(":", " ").split()
    for count in range(min(_PHRASE_MAX, len(words)), 0, -1):
        for at in range(len(words) - count + 1):
            phrase = " ".join(words[at : at + count]).strip(".;*")
            phrase = phrase if "(" in phrase else phrase.rstrip(")")  # `(unit: tokens/s)`
            if metric_of(phrase) is None:  # slot_of would look for the nearest name, which takes long
                continue
            slot = slot_of(phrase, "")
            if not isinstance(slot, NoSlot) and slot.scale is not None and slot.part != "asked":
                yield phrase, ""


def _with_unit(text: str) -> tuple[str, str]:
    """Name and unit of `output_throughput[tok/s]`."""
    name, _, unit = text.partition("[")
    return name.strip(), unit.rstrip("] ").strip()
