"""Import histories: keep the file by its SHA-256, write its values and what is doubtful about them.

`imports/<sha256>/` holds the original file and history.json with its name and the options. Importing a file again
changes nothing, unless its options are other ones; a rebuild reads these copies.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.errors import UnreadableResultError
from bench.trends.judgement import NightJudgement
from bench.trends.series import STACK_FIELDS, SeriesKey
from nights.durable import make_folder, sync_all, write_bytes, write_json, write_text
from warehouse.importers.history.action_benchmark import is_action_benchmark, read_action_benchmark
from warehouse.importers.history.check import HistoryCheck, Remark
from warehouse.importers.history.dated_results import read_dated_results
from warehouse.importers.history.long_table import HistoryOptions, is_long_table, read_table
from warehouse.importers.history.row import HistoryRow
from warehouse.importers.history.sqlite_table import is_sqlite, read_sqlite
from warehouse.importers.history.titled_blocks import is_titled_blocks, read_titled_blocks
from warehouse.importers.parsing.document import Document, read_document, too_large_for_memory
from warehouse.importers.parsing.error_text import storable
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import IMPORTS, STAGING, PartWriter, one_loader, write_rows, writing
from warehouse.lake.swap import moves_of_import, swap_in
from warehouse.schema.columns import arrow_schema
from warehouse.schema.row import Row
from warehouse.trends.history_series import keys_of_history
from warehouse.trends.judge import judge_history
from warehouse.trends.kept import OF_HISTORIES, history_file, read_kept, stage_judgement

ABOUT, RAW = "history.json", "raw"
CHUNK_ROWS = 50_000
_STATED = (
    "series",
    "metric",
    "unit",
    "measured_at",
    "value",
    "source",
    "run_id",
    "repeat",
    "spread",
    "is_lower_better",
    "place",
)


@dataclass(frozen=True)
class ImportedHistory:
    """The result of importing one file of a history."""

    name: str
    point_count: int
    series_count: int
    remarks: tuple[Remark, ...]
    is_new: bool
    sha256: str


def import_history(data: Path, path: Path, options: HistoryOptions) -> ImportedHistory:
    """Add the values of a file to the warehouse tables history_points and history_remarks.

    Raises UnreadableResultError if it cannot be read, UsageError if the options do not fit it; then nothing is kept.
    """
    raw = _bytes_of(path)
    document = read_document(str(path), raw, lambda _name: None, [])
    partition = partition_of(document.sha256)
    about = {"name": str(path), "sha256": document.sha256, "options": asdict(options)}
    kept = data / IMPORTS / document.sha256 / ABOUT
    with writing(data / IMPORTS), one_loader(data) as lake:
        is_new = not kept.exists() or json.loads(kept.read_bytes()) != json.loads(json.dumps(about))
        found = _stage(lake / STAGING, document, options, is_new=is_new)
        folder = data / IMPORTS / STAGING / document.sha256
        write_bytes(folder / RAW, raw)
        write_json(folder / ABOUT, about)
        sync_all(folder.parent)
        stage_judgement(lake / STAGING, partition, _said_before(data, partition))
        swap_in(lake, imported=moves_of_import(folder))
        build_warehouse(data)
    return found


def files_of(path: Path) -> list[Path]:
    """The file itself, or the files below a folder in the order of their paths, without hidden ones."""
    if not path.is_dir():
        return [path]
    below = (each for each in path.rglob("*") if each.is_file())
    return sorted(each for each in below if not any(part.startswith(".") for part in each.relative_to(path).parts))


def judge_imported(data: Path, sha256s: Iterable[str]) -> None:
    """Judge the series of imported histories and store the judgements: one file each, and rows of the lake.

    A series that several of them have is judged once, with the first.
    """
    judged = set[SeriesKey]()
    for partition in map(partition_of, dict.fromkeys(sha256s)):
        here = set(keys_of_history(data, partition)) - judged
        if not here:
            continue
        judged |= here
        before = _said_before(data, partition)
        said = judge_history(data, partition, datetime.now(UTC), here).with_earlier(before)
        with writing(data / OF_HISTORIES), one_loader(data) as lake:
            make_folder(data / OF_HISTORIES)
            write_text(history_file(data, partition), said.model_dump_json(indent=1) + "\n")
            stage_judgement(lake / STAGING, partition, said)
            swap_in(lake)


def _said_before(data: Path, partition: str) -> NightJudgement | None:
    file = history_file(data, partition)
    return read_kept(file) if file.exists() else None


def stage_histories(data: Path, staging: Path) -> None:
    """Write every kept history into the staging folder."""
    for about in _kept(data):
        told = json.loads(about.read_bytes())
        document = read_document(told["name"], (about.parent / RAW).read_bytes(), lambda _name: None, [])
        said = told["options"]
        _stage(staging, document, HistoryOptions(tuple(map(tuple, said.pop("columns"))), **said), is_new=False)
        partition = partition_of(about.parent.name)
        stage_judgement(staging, partition, _said_before(data, partition))


def kept_histories(data: Path) -> set[str]:
    """The lake's partitions of the histories that this data folder keeps."""
    return {partition_of(about.parent.name) for about in _kept(data)}


def _kept(data: Path) -> list[Path]:
    """The description of every kept history, sorted."""
    return sorted(each for each in (data / IMPORTS).glob(f"*/{ABOUT}") if not each.parent.name.startswith("."))


def partition_of(sha256: str) -> str:
    """The lake's partition of a history."""
    return f"history-{sha256[:16]}"


def _bytes_of(path: Path) -> bytes:
    try:
        too_large_for_memory(str(path), path.stat().st_size)
        return path.read_bytes()
    except OSError as error:
        raise UnreadableResultError(f"{path} cannot be read: {error.strerror}") from error


def reader_of(
    document: Document, options: HistoryOptions
) -> Callable[[Document, HistoryOptions], Iterator[HistoryRow]]:
    """The function that yields every value of a history, chosen by what the file is."""
    if is_action_benchmark(document):
        return read_action_benchmark
    if is_sqlite(document):
        return read_sqlite
    if is_titled_blocks(document):
        return read_titled_blocks
    if document.path.suffix.lower() in {".csv", ".tsv"} and not _is_known_result(document, options):
        return read_table
    return read_dated_results


_OF_ONE_NIGHT = frozenset({read_titled_blocks, read_dated_results})


def _is_known_result(document: Document, options: HistoryOptions) -> bool:
    """Whether a CSV is a result of one run, in a format that the importer knows, and no history."""
    from warehouse.importers import FORMATS  # noqa: PLC0415 - the importers of single results
    from warehouse.importers.claims_table.any_table import FORMAT as WIDE_TABLE  # noqa: PLC0415

    if is_long_table(document):
        return False
    head = Document(document.name, document.data[: document.data.find(b"\n", 1 << 16) + 1 or None])
    # A table of claims with a column for each metric states no time; with one, it is a history.
    dated = (each for each in FORMATS if each is not WIDE_TABLE)
    return not options.columns and any(each.recognises(head) for each in dated)


def _stage(staging: Path, document: Document, options: HistoryOptions, *, is_new: bool) -> ImportedHistory:
    partition, read = partition_of(document.sha256), reader_of(document, options)
    check = HistoryCheck(is_one_night=read in _OF_ONE_NIGHT)
    with PartWriter(staging, "history_points", partition) as points:
        waiting: list[Row] = []
        for row, failure in check.passed(read(document, options)):
            waiting.append(_point_row(row, failure))
            if len(waiting) == CHUNK_ROWS:
                points.add(_table(waiting))
                waiting = []
        points.add(_table(waiting))
    if not check.kept:
        raise UnreadableResultError(f"{document.name} has no value with a time: it is not a history")
    remarks = check.remarks()
    write_rows(
        staging,
        "history_remarks",
        partition,
        [
            {"night": partition, "code": code, "count": count, "message": storable(text)}
            for code, count, text in remarks
        ],
    )
    return ImportedHistory(document.name, check.kept, check.series_count, tuple(remarks), is_new, document.sha256)


def _table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=arrow_schema("history_points"))


def _point_row(row: HistoryRow, failure: str | None) -> Row:
    values: dict[str, Any] = {name: getattr(row, name) for name in _STATED}
    values |= {name: row.stack.get(name) for name in STACK_FIELDS} | {"failure": failure, "note": row.note}
    return {name: storable(value) if isinstance(value, str) else value for name, value in values.items()}
