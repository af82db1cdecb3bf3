"""The memory budgets of a table: a column for each part, `Weights | KV cache | Total`, or a row for each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from bench.audit.claim import BudgetLine
from bench.audit.memory_budget import UNITS, Entry, Known, Part, lines_of
from bench.catalog.names import count_of_gpus
from bench.catalog.precisions import WEIGHT_BYTES
from catalog.read import read_memory_words, read_names
from warehouse.importers.claims_table.facets import facets_of
from warehouse.importers.claims_table.plan import Plan
from warehouse.importers.claims_table.vocabulary import column_of
from warehouse.importers.parsing.printed import whole
from warehouse.importers.tables.cells import is_summary
from warehouse.importers.tables.table import Table

_UNIT = re.compile(r"(?<![a-z])([GMT]i?B|%)(?![a-z])", re.IGNORECASE)
_NUMBER = re.compile(r"(?P<about>[~≈])?\s*(?P<number>[-+−]?\s*\d[\d,]*(?:\.(?P<decimals>\d+))?)")  # noqa: RUF001 - as printed
_BEHIND = re.compile(r"\s*(?:\([^()]*\)|/ ?gpu|per gpu)\s*$", re.IGNORECASE)
_BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")
_COUNTED = re.compile(
    r"[(\[]\s*(?:[bm]|bn|billions?|millions?|#|counts?|bits?|param(?:eter)?s?)\s*[)\]]", re.IGNORECASE
)
_PLAIN = re.compile(r"[^a-z0-9+/]+")
_PASSED_OVER = frozenset(
    {"size", "memory", "vram", "gpu", "est", "estimated", "approx", "usage", "per", "each", "total"}
)
_ABOUT_MEMORY = re.compile(r"memory|vram|\bhbm\b|\bg(?:i)?b\b", re.IGNORECASE)
_HELD = frozenset({"weights", "kv"})  # one of which makes a table a budget
_CONTEXT = re.compile(
    r"(\d[\d,.]*\s?k?)[\s-]*(?:ctx|context|tokens?)\b|(?:ctx|context)[\s=:]*(\d[\d,.]*\s?k?)", re.IGNORECASE
)
_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)

_OF_WHOLE = re.compile(r"\bof (\d[\d.]*\s*[GMT]i?B)", re.IGNORECASE)  # `Free (of 192 GB)`

_SUMS = frozenset({"memory_used", "memory_total", "memory_free"})
_SEVERAL = 3

Place = tuple[int, int]


@dataclass(frozen=True)
class Budget:
    """One budget: its lines of arithmetic, and where each number stands, by row and column of the table as read."""

    title: str
    lines: tuple[BudgetLine, ...]
    cells: Mapping[str, Place]

    def of_its_lines(self) -> "Budget":
        """With the places of those numbers only that a line holds."""
        used = {name for line in self.lines for name in line.names}
        return replace(self, cells={name: place for name, place in self.cells.items() if name in used})


def budgets_of(plan: Plan, stated: Mapping[str, str]) -> list[Budget]:
    """Every budget of a table of which a number can be recomputed; `stated` is what caption and heading say."""
    table = plan.table
    parts = {
        at: part for at, name in enumerate(table.header) if at not in plan.columns.values() and (part := part_of(name))
    }
    if _HELD & set(parts.values()):
        rows = (_of_row(plan, parts, down, stated) for down in range(len(table.rows)))
        return _without_hidden_parts([budget for budget in rows if budget])
    if plan.measures:
        return []
    by_row = {down: part for down, row in enumerate(table.rows) if (part := part_of(row.cells[0]))}
    if not _HELD & set(by_row.values()):
        return []
    columns = (_of_column(table, by_row, at, stated) for at in range(1, len(table.header)))
    return _without_hidden_parts([budget for budget in columns if budget])


def _without_hidden_parts(budgets: list[Budget]) -> list[Budget]:
    """The budgets without sums that fit in none of several: the table does not show all that they are of."""
    sums: dict[str, list[bool]] = {}
    for line in (line for budget in budgets for line in budget.lines if line.names[0] in _SUMS):
        sums.setdefault(line.names[0], []).append(line.is_wrong)
    hidden = {name for name, wrong in sums.items() if len(wrong) >= _SEVERAL and all(wrong)}
    kept = (replace(each, lines=tuple(line for line in each.lines if line.names[0] not in hidden)) for each in budgets)
    return [each.of_its_lines() for each in kept if each.lines]


@lru_cache(maxsize=4096)
def part_of(name: str) -> Part | None:
    """The part of a budget that these words name, whatever model, precision or load they state beside.

    None for one that counts and does not weigh: `Weights (B)` are billions of parameters.
    """
    if _COUNTED.search(name):
        return None
    plain = _words(_UNIT.sub(" ", _BRACKETS.sub(" ", name)))
    found = _parts().get(plain) or _parts().get(_shortened(plain))
    if found is None and plain:
        rest = _words(facets_of(_BRACKETS.sub(" ", name))[1])
        found = _parts().get(rest) or _parts().get(_shortened(rest))
    return found


def _words(text: str) -> str:
    return " ".join(_PLAIN.sub(" ", text.lower()).split()).strip("+/ ")


def _shortened(plain: str) -> str:
    return " ".join(word for word in plain.split() if word not in _PASSED_OVER)


def _of_row(plan: Plan, parts: Mapping[int, Part], down: int, stated: Mapping[str, str]) -> Budget | None:
    table = plan.table
    row = table.rows[down]
    if is_summary(row):
        return None
    own = dict(facets_of(row.cells[0])[0])
    own |= {name: row.cells[at] for name, at in plan.columns.items() if row.cells[at]}
    labels = [(part, table.header[at], row.cells[at], (down, at)) for at, part in parts.items()]
    return _budget(table, row.cells[0], labels, {**stated, **own})


def _of_column(table: Table, parts: Mapping[int, Part], at: int, stated: Mapping[str, str]) -> Budget | None:
    own = dict(facets_of(table.header[at])[0])
    for row in table.rows:
        name = column_of(row.cells[0])
        if name and row.cells[at]:
            own[name[0]] = row.cells[at]
    labels = [(part, table.rows[down].cells[0], table.rows[down].cells[at], (down, at)) for down, part in parts.items()]
    if "%" in table.header[at]:
        return None
    return _budget(table, table.header[at], labels, {**stated, **own}, table.header[at])


def _budget(
    table: Table,
    title: str,
    labels: Sequence[tuple[Part, str, str, Place]],
    stated: Mapping[str, str],
    column: str = "",
) -> Budget | None:
    """The budget of these parts, each with its name, its cell and place; None if nothing of it can be recomputed."""
    around = " ".join((table.header[0], table.caption, table.heading))
    if not any(
        _ABOUT_MEMORY.search(text) for text in (around, column, *(f"{name} {cell}" for _, name, cell, _ in labels))
    ):
        return None
    entries: list[Entry] = []
    cells: dict[str, Place] = {}
    is_complete = True
    for part, name, cell, place in labels:
        entry = _entry(part, name, cell, (name, column, around))
        is_complete = is_complete and (entry is not None or part not in {"weights", "kv", "other"})
        if entry is not None:
            entry = replace(entry, key=_untaken(entry.key, cells))
            entries.append(entry)
            cells[entry.key] = place
            of_whole = _OF_WHOLE.search(name)
            whole_of = _entry("capacity", of_whole[0], of_whole[1], ()) if of_whole and part == "free" else None
            entries += [whole_of] if whole_of else []
            stated = {**facets_of(f"{name} {cell}")[0], **stated}
    words = " ".join((*stated.values(), *(name for _, name, _, _ in labels)))
    lines = tuple(lines_of(entries, known_of(stated, words), is_complete=is_complete))
    return Budget(title, lines, cells) if lines else None


def _entry(part: Part, name: str, cell: str, around: Sequence[str]) -> Entry | None:
    """The number of a cell with the unit of the cell, else of its name, its column, or the text around the table."""
    text = _BEHIND.sub("", cell)
    own = _UNIT.search(text)
    found = _NUMBER.fullmatch((text[: own.start()] if own else text).strip())
    if found is None or (own and text[own.end() :].strip()):
        return None
    printed = own or next(filter(None, map(_UNIT.search, around)), None)
    number = float(re.sub(r"[,\s]", "", found["number"]).replace("−", "-"))  # noqa: RUF001 - as printed
    half = 0.5 * 10.0 ** -len(found["decimals"] or "") * (10.0 if found["about"] else 1.0)
    unit = next((each for each in UNITS if printed and each.lower() == printed[1].lower()), "")
    return Entry(part, _BRACKETS.sub("", name).strip(" :*"), number, half, unit, f"memory_{part}")


def _untaken(key: str, taken: Mapping[str, object]) -> str:
    return next(
        name for count in range(1, len(taken) + 2) if (name := key if count == 1 else f"{key}_{count}") not in taken
    )


def known_of(stated: Mapping[str, str], words: str) -> Known:
    """What the columns and words of a table say of the GPUs, the model and the load; `words` may state a context."""
    names = read_names()
    named = stated.get("model", "")
    model = names.model(named) or names.model(names.model_in(named) or "")
    size = _SIZE.search(stated.get("model", ""))
    precisions = [each for each in names.precisions_called(stated.get("precision", "")) if each in WEIGHT_BYTES]
    of_name = names.precision_in(stated.get("model", ""))
    count = whole(stated.get("gpu_count", "")) or count_of_gpus(stated.get("gpu", ""))
    counts = {1} | {each for each in (count, whole(stated.get("tp", ""))) if each and each > 0}
    sequences = whole(stated.get("batch", "")) or whole(stated.get("concurrency", ""))
    return Known(
        gpus=names.gpus_called(stated["gpu"]) if stated.get("gpu") else (),
        counts=sorted(counts),
        model=model,
        named_params=float(size[1]) * 1e9 if size else None,
        precisions=precisions or ([of_name] if of_name else []),
        kv_bytes=_kv_bytes(stated.get("kv_precision", "")),
        tokens=tuple(_tokens(stated, words)),
        sequences=sequences,
    )


def _kv_bytes(precision: str) -> tuple[float, ...]:
    """Bytes of an element; unstated, and `auto`, either of 16 and 8 bits."""
    found = [WEIGHT_BYTES[each] for each in read_names().precisions_called(precision) if each in WEIGHT_BYTES]
    return tuple(found) if precision and found else (2.0, 1.0)


def _tokens(stated: Mapping[str, str], words: str) -> Iterator[float]:
    """Lengths that a sequence of the KV cache may have."""
    isl, osl, longest = (whole(stated.get(name, "")) for name in ("isl", "osl", "max_model_len"))
    yield from (float(each) for each in (isl and osl and isl + osl, isl, longest) if each)
    for one, other in _CONTEXT.findall(words):
        number = (one or other).lower().replace(",", "").replace(" ", "").rstrip(".")
        if number.rstrip("k").replace(".", "", 1).isdigit():
            yield float(number.rstrip("k")) * (1024 if number.endswith("k") else 1)


@cache
def _parts() -> Mapping[str, Part]:
    return {row.words: row.part for row in read_memory_words()}
