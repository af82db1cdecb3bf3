"""Write a data folder of a history of releases, in the order of the releases, judge its series, and write its site."""

import csv
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.errors import UsageError
from nights.durable import write_text
from warehouse.demo.write import NIGHT_PAGES, begin_demo, judge_nights
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import STAGING, PartWriter, one_loader, writing
from warehouse.lake.swap import swap_in
from warehouse.report.figures import csv_text
from warehouse.report.simulated import HISTORY_MARK
from warehouse.schema.columns import COLUMNS, PARTITION, Table, arrow_schema, with_columns
from warehouse.site.write import write_site

HISTORY = Path(__file__).parents[2] / "catalog" / "history"
NIGHTS = "nights.csv"
_NAME = "%Y-%m-%dT%H%M%SZ"
_NAMED = r"\d{4}-\d\d-\d\dT\d{6}Z"  # what has the name of a night in it
_TEXT = "The nights of the history {digest}, in the order of its releases, that `nightbench demo` wrote.\n"
Night = Mapping[str, str]  # a row of nights.csv


def write_history_demo(folder: Path, history: Path = HISTORY) -> Path:
    """Write the folder with its site and return the site's start page; a folder that is whole already stays as it is.

    Raises UsageError if the folder holds something else or the history cannot be read, LoadIntoWarehouseError if the
    folder cannot be written.
    """
    start = folder / "site" / "index.html"
    nights = read_nights(history)
    if begin_demo(folder, HISTORY_MARK, history_mark(history)):
        return start
    shown = load_history(folder, history)
    with writing(folder):
        write_text(folder / NIGHTS, csv_text([night | {"shown_as": shown.get(night["night"], "")} for night in nights]))
    judge_nights(folder, {name: _time_of(name) + timedelta(hours=1) for name in shown.values()}, {})
    return write_site(folder, start.parent, NIGHT_PAGES).index


def history_mark(history: Path) -> str:
    """What the mark of its demo says; another one for another history."""
    return _TEXT.format(digest=hashlib.sha256((history / NIGHTS).read_bytes()).hexdigest()[:16])


def read_nights(history: Path) -> list[dict[str, str]]:
    """Every night of a history, in the order in which they ended. Raises UsageError."""
    try:
        with (history / NIGHTS).open(encoding="utf-8") as lines:
            return list(csv.DictReader(lines))
    except OSError as error:
        raise UsageError(f"{history} has no history: {error}; `make history` measures one") from error


def load_history(folder: Path, history: Path) -> dict[str, str]:
    """Load a history into an empty data folder; the name of each night there by its own, in the order of releases.

    The nights stand one a day until the day of the last one, and all their times move with them.
    """
    names = shown_names(read_nights(history))
    load_nights(folder, history, names)
    return names


def load_nights(folder: Path, history: Path, names: Mapping[str, str]) -> None:
    """Load those nights of a history that have a name here, each under this name and at its time."""
    with writing(folder / "lake"), one_loader(folder) as lake:
        for path in sorted(history.glob("*.parquet")):
            if path.stem in COLUMNS:
                _stage(lake / STAGING, path, names)
        swap_in(lake)
        build_warehouse(folder)


def shown_names(nights: Sequence[Night]) -> dict[str, str]:
    """What each night is called in the order of releases, by its own name, in that order."""
    placed = sorted((night for night in nights if night["place"]), key=lambda night: int(night["place"]))
    last = max(_time_of(night["night"]) for night in placed).replace(hour=1, minute=0, second=0)
    first = last - timedelta(days=len(placed) - 1)
    return {night["night"]: f"{first + timedelta(days=at):{_NAME}}" for at, night in enumerate(placed)}


def _time_of(name: str) -> datetime:
    return datetime.strptime(name, _NAME).replace(tzinfo=UTC)


def _stage(staging: Path, path: Path, names: Mapping[str, str]) -> None:
    """Write a table's rows of each night under its new name; a column that the history is too old to have is NULL."""
    table: Table = path.stem  # type: ignore[assignment]
    schema, found = arrow_schema(table), pq.read_table(path)
    rows = with_columns(found, schema)
    named = {field.name for field in schema if pa.types.is_string(field.type) and _has_names(rows[field.name])}
    for night, name in names.items():
        own = rows.filter(pc.equal(found[PARTITION], night))
        if len(own):
            columns = [_moved(own[field.name], field.name in named, night, name) for field in schema]
            with PartWriter(staging, table, name) as part:
                part.add(pa.table(columns, schema=schema))


def _has_names(values: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, _NAMED)).as_py())


def _moved(values: pa.ChunkedArray, is_named: bool, night: str, name: str) -> Any:
    """Values of one night with their times moved, and its name replaced where they name it."""
    if pa.types.is_timestamp(values.type):
        return pc.add(values, pa.scalar(_time_of(name) - _time_of(night), pa.duration("us")))
    return pc.replace_substring(values, night, name) if is_named else values
