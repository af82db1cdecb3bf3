"""Facts of GPUs and models that a table states, against the catalogue: peaks, bandwidth, memory, power, layers."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from bench.audit.column_relations import Miss
from bench.catalog.rows import CatalogModel, Fact, Gpu
from catalog.read import read_facts, read_names
from warehouse.importers.claims_table.plan import Plan
from warehouse.importers.tables.table import Row, Table

_CELL = re.compile(r"[~≈]?\s*(\d[\d,]*(?:\.\d+)?)\s*([a-zA-Z/]*)(?:\s.*)?")
_LINK = "GB/s"  # a link between GPUs; memory is faster, and in TB/s
_UNITS: Mapping[str, tuple[str, float]] = {
    "tb/s": ("TB/s", 1.0),
    "gb/s": ("TB/s", 1e-3),
    "gbps": ("TB/s", 1e-3),
    "gb": ("GB", 1.0),
    "gib": ("GB", 1.0),
    "w": ("W", 1.0),
    "tflops": ("TFLOPS", 1.0),
    "tflop/s": ("TFLOPS", 1.0),
    "tops": ("TFLOPS", 1.0),
    "pflops": ("TFLOPS", 1e3),
    "b": ("B", 1.0),
}
_IN_BRACKETS = re.compile(r"[(\[]\s*([a-zA-Z/]+)\s*[)\]]")
_APART_MAX = 0.03  # makers round, and print GB where drivers count GiB
_SPARSE = 2.0  # datasheets print peaks with structured sparsity, twice the dense ones
_OF_HEADS = frozenset({"n_kv_heads", "head_dim"})  # of a latent KV cache, sources count them in several ways
_COUNTS = (1, 2, 4, 8)  # of a node's GPUs together


def wrong_facts(plan: Plan) -> list[Miss]:
    """Every cell of a table that states another fact than the catalogue; in tables that describe and do not measure.

    A table of results may have a column `Memory` of what was used, so only one on its side, or whose metrics are facts
    themselves (`FP8 TFLOPS`), is read for facts.
    """
    is_of_facts = all(_words(plan.table.header[each.at]) in _facts() for each in plan.measures)
    return list(_wrong(plan)) if plan.is_turned or is_of_facts else []


def states_facts(table: Table) -> bool:
    """Whether a column is a fact of the catalogue, and a row names a GPU or model of it beside a number."""
    return any(
        _subject_of(fact, row) is not None and _stated(row.cells[at], header, fact.unit) is not None
        for at, header in enumerate(table.header)
        if (fact := _facts().get(_words(header))) is not None
        for row in table.rows
    )


def _wrong(plan: Plan) -> Iterator[Miss]:
    table = plan.table
    for at, header in enumerate(table.header):
        fact = _facts().get(_words(header))
        if fact is None:
            continue
        for down, row in enumerate(table.rows):
            subject = _subject_of(fact, row)
            stated = _stated(row.cells[at], header, fact.unit)
            if subject is None or stated is None:
                continue
            own = _own(subject, fact)
            if own is not None and not _is_same(stated, own, fact) and not _is_of_distilled(row, stated, own, fact):
                name = subject.gpu if isinstance(subject, Gpu) else subject.model
                unit = f" {fact.unit}" if fact.unit else ""
                yield Miss(down, at, f"{header} of {name} is {stated:g}{unit}, and {own:g}{unit} in the catalogue")


def _words(header: str) -> str:
    words = _IN_BRACKETS.sub(" ", header.lower()).replace("_", " ").replace("-", " ").split()
    return " ".join(word for word in words if word not in {"tflops", "tops", "peak:", "gpu:"})


def _subject_of(fact: Fact, row: Row) -> Gpu | CatalogModel | None:
    """What the first cells of a row name."""
    return next((found for cell in row.cells[:2] if (found := _subject(fact, cell)) is not None), None)


def _subject(fact: Fact, cell: str) -> Gpu | CatalogModel | None:
    return read_names().gpu(cell) if fact.subject == "gpu" else read_names().model(cell)


def _stated(cell: str, header: str, unit: str | None) -> float | None:
    """The number of a cell in the unit of its fact; None without one, or in another unit."""
    found = _CELL.fullmatch(cell.strip())
    if found is None:
        return None
    in_header = _IN_BRACKETS.search(header)
    printed = (found[2] or (in_header[1] if in_header else "")).lower()
    number = float(found[1].replace(",", ""))
    if unit is None:
        return number if not printed else None
    known = _UNITS.get(printed) or (("TFLOPS", 1.0) if "tflops" in header.lower() else None)
    if unit == _LINK and known and known[0] == "TB/s":
        return number * known[1] * 1e3
    return number * known[1] if known and known[0] == unit else None


def _own(subject: Gpu | CatalogModel, fact: Fact) -> float | None:
    is_latent = isinstance(subject, CatalogModel) and subject.mla_kv_lora is not None
    value = None if is_latent and fact.column in _OF_HEADS else getattr(subject, fact.column)
    return None if value is None else float(value) / (1e9 if fact.unit == "B" else 1.0)


def _is_of_distilled(row: Row, stated: float, own: float, fact: Fact) -> bool:
    """Whether a smaller count of parameters is that of a model distilled from the one named: `DeepSeek R1 | 7 B`."""
    return fact.unit == "B" and stated < own / 2 and any(map(read_names().has_distilled, row.cells[:2]))


def _is_same(stated: float, own: float, fact: Fact) -> bool:
    """Whether they agree within what is printed: of one GPU or of a node, dense or sparse."""
    several = _COUNTS if fact.subject == "gpu" and fact.unit != _LINK else (1,)
    sparse = {"TFLOPS": (1.0, _SPARSE), _LINK: (1.0, 0.5)}.get(fact.unit or "", (1.0,))  # a link: in one direction too
    half = 0.5 * 10.0 ** -len(f"{stated:g}".partition(".")[2])
    return any(
        abs(stated - own * count * factor) <= half + _APART_MAX * own * count * factor
        for count in several
        for factor in sparse
    )


@cache
def _facts() -> Mapping[str, Fact]:
    return {fact.words: fact for fact in read_facts()}
