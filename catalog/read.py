"""The files of this folder as values; each is read once, on first use.

CatalogError names file, line and column of an invalid cell.
"""

from functools import cache
from pathlib import Path
from typing import TypeVar

from bench.catalog.catalog import Catalog
from bench.catalog.csv_rows import CsvRow
from bench.catalog.names import Name, Names
from bench.catalog.published import PastPrice, Published
from bench.catalog.rows import (
    CanaryFloor,
    CatalogModel,
    Fact,
    Gpu,
    HeaderWord,
    MachineKind,
    MemoryWord,
    RecordField,
    Speed,
    Spelling,
)
from bench.catalog.works import Work, WorkTable
from bench.engines.profiler import Profiler
from bench.engines.rules import EngineRule
from bench.suite.machine import hardware_of

_Row = TypeVar("_Row", bound=CsvRow)


@cache
def read_gpus() -> tuple[Gpu, ...]:
    """Every GPU."""
    return _rows(Gpu, "gpus.csv")


@cache
def read_models() -> tuple[CatalogModel, ...]:
    """Every model."""
    return _rows(CatalogModel, "models.csv")


@cache
def read_catalog() -> Catalog:
    """GPUs, models, sizes and paces."""
    return Catalog(read_gpus(), read_models(), _rows(MachineKind, "sizes.csv"), _rows(Speed, "paces.csv"), read_names())


@cache
def read_names() -> Names:
    """The names of GPUs, models and precisions."""
    return Names.of(read_gpus(), read_models(), _rows(Name, "names.csv"))


@cache
def read_canary_floors() -> tuple[CanaryFloor, ...]:
    """What the canary must reach on each GPU."""
    return _rows(CanaryFloor, "canary_floors.csv")


@cache
def read_engine_rules() -> tuple[EngineRule, ...]:
    """The engine rules, with the versions that they hold for."""
    return _rows(EngineRule, "engine_rules.csv")


@cache
def read_profilers() -> tuple[Profiler, ...]:
    """How the server of an engine gets its profiler, by the engine's version."""
    return _rows(Profiler, "profilers.csv")


@cache
def read_published() -> tuple[Published, ...]:
    """Published numbers, in the order of their sources."""
    return _rows(Published, "published.csv")


@cache
def read_prices() -> tuple[PastPrice, ...]:
    """Prices of earlier days and of other providers; sizes.csv has the current prices of our clouds."""
    return _rows(PastPrice, "prices.csv")


@cache
def read_spellings() -> tuple[Spelling, ...]:
    """What published tables call their metrics and columns."""
    return _rows(Spelling, "spellings.csv")


@cache
def read_facts() -> tuple[Fact, ...]:
    """What published tables call the facts of GPUs and models."""
    return _rows(Fact, "facts.csv")


@cache
def read_header_words() -> tuple[HeaderWord, ...]:
    """The words of which the headers of published tables are made."""
    return _rows(HeaderWord, "header_words.csv")


@cache
def read_memory_words() -> tuple[MemoryWord, ...]:
    """What published tables call the parts of a memory budget."""
    return _rows(MemoryWord, "memory_words.csv")


@cache
def read_record_fields() -> tuple[RecordField, ...]:
    """What the tools call the fields of their result records."""
    return _rows(RecordField, "record_fields.csv")


@cache
def read_works() -> tuple[Work, ...]:
    """The published works that `nightbench reproduce` runs."""
    return _rows(Work, "works.csv")


@cache
def read_work_tables() -> tuple[WorkTable, ...]:
    """Every published table of the works."""
    return _rows(WorkTable, "work_tables.csv")


def machine_size(target: str | None, kind: str) -> MachineKind | None:
    """A machine of this kind of one cloud, or of any, spot or not; None if the catalogue has none."""
    return read_catalog().size(target, kind) or read_catalog().size(target, hardware_of(kind))


def find_gpu(text: str) -> Gpu | None:
    """The GPU of this name; None if the catalogue has none, or it could be two."""
    return read_names().gpu(text)


def find_model(text: str) -> CatalogModel | None:
    """The model of this name; None if the catalogue has none, or it could be two."""
    return read_names().model(text)


def precision_of(text: str) -> str | None:
    """The precision in this text, a key of WEIGHT_BYTES; None if it names none or two."""
    return read_names().precision(text)


def _rows(row: type[_Row], name: str) -> tuple[_Row, ...]:
    # A path beside this file: importing importlib.resources takes longer than reading all files.
    return row.table(Path(__file__).with_name(name).read_text("utf-8"), f"catalog/{name}")
