"""The stored judgements of series: files, which are the truth, and their rows in the lake.

`runs/<night>/judgement.json` is that of a night, `judgements/<partition>.json` that of an imported history, and
`acknowledged/<time>-<event>.json` is one acknowledgement each. No later night deletes or changes such a file.
"""

from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from bench.errors import UnreadableResultError
from bench.trends.judgement import Acknowledgement, NightJudgement, SaidChange, SeriesVerdict
from warehouse.lake.lake import partition as partition_folder
from warehouse.lake.lake import write_rows
from warehouse.lake.query import ask
from warehouse.schema.columns import PARTITION
from warehouse.schema.row import Row
from warehouse.sql import sql
from warehouse.views.tables import PART, LakePath

JUDGEMENT = "judgement.json"
OF_HISTORIES = "judgements"  # folder
ACKNOWLEDGED = "acknowledged"  # folder, and partition of the lake
_Value = TypeVar("_Value", bound=BaseModel)


def history_file(data: Path, partition: str) -> Path:
    """The file with the judgement of an imported history."""
    return data / OF_HISTORIES / f"{partition}.json"


def parse_judgement(text: bytes) -> NightJudgement:
    """The judgement of a night, from its file's text. Raises UnreadableResultError."""
    return _parsed(text, NightJudgement)


def read_kept(path: Path) -> NightJudgement:
    """The judgement of a night or a history. Raises UnreadableResultError with the file and what to do."""
    return _read(path, NightJudgement)


def stage_judgement(staging: Path, partition: str, said: NightJudgement | None) -> None:
    """Write the rows of the judgement of a night or a history into the staging folder.

    Where this data folder has no judgement, the lake keeps the one that another computer loaded.
    """
    if said is None and partition_folder(staging.parent, "series_verdicts", partition).exists():
        return
    verdicts: list[dict[str, Any]] = []
    changes: list[dict[str, Any]] = []
    if said is not None:
        head = {"night": partition, "said_at": said.said_at}
        judge = {"judge_version": said.judge_version, "rerun_of": said.rerun_of}
        verdicts = [
            head | judge | {"judged_night": one.night} | one.model_dump(exclude={"night"}) for one in said.verdicts
        ]
        changes = [head | one.model_dump() for one in said.changes]
    write_rows(staging, "series_verdicts", partition, verdicts)
    write_rows(staging, "change_points", partition, changes)


def stage_acknowledgements(data: Path, staging: Path, *, are_others_kept: bool = True) -> None:
    """Write the rows of every acknowledgement into the staging folder, with those that only the lake has."""
    rows = _acknowledged_here(data)
    others = acknowledgements_elsewhere(data, staging.parent)
    if rows or others:
        whole = [*rows, *(others if are_others_kept else ())]
        write_rows(staging, "acknowledgements", ACKNOWLEDGED, sorted(whole, key=_time_and_event))


def acknowledgements_elsewhere(data: Path, lake: LakePath) -> list[Row]:
    """The acknowledgements in the lake that have no file in this data folder: other computers loaded them."""
    part = lake / "acknowledgements" / f"{PARTITION}={ACKNOWLEDGED}" / PART
    if not part.is_file():
        return []
    here = {_time_and_event(row) for row in _acknowledged_here(data)}
    with part.open("rb") as stored, pq.ParquetFile(stored) as file:
        rows: list[Row] = file.read().to_pylist()
    return [{"night": ACKNOWLEDGED} | row for row in rows if _time_and_event(row) not in here]


def _acknowledged_here(data: Path) -> list[Row]:
    paths = sorted((data / ACKNOWLEDGED).glob("*.json"))
    return [{"night": ACKNOWLEDGED} | _read(path, Acknowledgement).model_dump() for path in paths]


def _time_and_event(row: Row) -> tuple[datetime, str]:
    return row["acknowledged_at"], row["event_id"]


def read_said(data: Path, but: str | None = None) -> tuple[list[SaidChange], list[SeriesVerdict]]:
    """Every reported change, with its state of today, and every host outlier; without those of one partition."""
    changes = ask(data, sql(_CHANGES, columns=SaidChange.model_fields), (but,)).dicts()
    verdicts = ask(data, sql(_OUTLIERS, columns=SeriesVerdict.model_fields), (but,)).dicts()
    return [SaidChange(**row) for row in changes], [SeriesVerdict(**row) for row in verdicts]


_CHANGES = """
SELECT {{ columns | reject("in", ["state", "cause_value"]) | name }},
    coalesce(acknowledged.state, change_points.state) AS state, coalesce(cause_value, '') AS cause_value
FROM change_points
LEFT JOIN (
    SELECT event_id, arg_max(state, acknowledged_at) AS state FROM acknowledgements WHERE state IS NOT NULL GROUP BY 1
) AS acknowledged USING (event_id)
WHERE night IS DISTINCT FROM ? ORDER BY said_at, first_bad_at, series, metric
"""
_OUTLIERS = """
SELECT {{ columns | reject("eq", "night") | name }}, judged_night AS night
FROM series_verdicts
WHERE judgement = 'host outlier' AND series_verdicts.night IS DISTINCT FROM ?
"""


def _read(path: Path, kind: type[_Value]) -> _Value:
    try:
        return _parsed(path.read_bytes(), kind)
    except (OSError, UnreadableResultError) as error:
        raise UnreadableResultError(f"{path}: {error}; move it away, then load again") from error


def _parsed(text: bytes, kind: type[_Value]) -> _Value:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnreadableResultError(f"it cannot be read: {where}: {first['msg']}") from error
