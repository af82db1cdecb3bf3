"""Scores of lm-eval tasks as rows, and how far each fell against earlier nights.

The same nights count as in answer_history.py: those with an earlier name whose run folders still exist.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
from pydantic import ValidationError

from bench import evidence_columns as ev
from bench.audit.rules.answers import WORSE_SE
from bench.errors import UnreadableResultError
from bench.quality.lm_eval import EarlierScore, Score, fall_se, read_scores, standard_error
from bench.record import AskedTask, LmEvalRecord
from warehouse.judging.answer_history import NIGHTS, file_of, if_there
from warehouse.lake.lake import partition
from warehouse.rows.run_folder import RECORD, lm_eval_folders, nights, read_lm_eval
from warehouse.schema.columns import COLUMNS
from warehouse.schema.row import Row
from warehouse.views.tables import PART

# Equal values identify the same questions, put in the same way to the same weights.
_SERIES = (
    *("quality_id", "task", "task_version", "metric", "filter"),
    *("few_shot", "limit", "sample_count", "folder_sha256", "is_higher_better"),
)
_READ = [*_SERIES, "value", "stderr", "fall_se"]
FIRST = "first night with these weights, this task and this number of questions"
NOT_ASKED = "no server of this night ran the tasks: the server had stopped, or the night ended before"
Series = tuple[object, ...]


def score_rows(folder: Path, measurements: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """The rows of every task that a night's servers ran, and warnings; not compared yet."""
    ids = {row["server_id"]: row["quality_id"] for row in measurements if row["quality_id"] is not None}
    rows: list[Row] = []
    warnings = []
    for place in lm_eval_folders(folder):
        try:
            rows += _rows_of(folder.name, read_lm_eval(place), ids)
        except UnreadableResultError as error:
            warnings.append(f"runs/{folder.name}/{place.parent.name}/{place.name}: {error}; its scores are unknown")
    return rows, warnings


def _rows_of(night: str, files: Mapping[str, bytes], quality_ids: Mapping[str, str]) -> list[Row]:
    try:
        record = LmEvalRecord.model_validate_json(files[RECORD])
    except ValidationError as error:
        raise UnreadableResultError(f"{RECORD} is not a record of lm-eval: {error.errors()[0]['msg']}") from error
    about = dict.fromkeys(column.name for column in COLUMNS["quality_scores"]) | {
        "night": night,
        **record.model_dump(include={"suite", "server_id", "started_at", "folder_sha256"}),
        "limit": record.asked.limit,
        "quality_id": quality_ids.get(record.server_id),
        "not_compared": "no earlier night was compared",
    }
    floors = record.asked.floors
    return [
        row
        for asked in record.tasks
        for row in _rows_of_task(about, asked, files.get(f"{asked.task}.json"), floors.get(asked.task, {}))
    ]


def _rows_of_task(about: Row, asked: AskedTask, results: bytes | None, floors: Mapping[str, float]) -> list[Row]:
    told = about | asked.model_dump(include={"task", "outcome", "reason", "duration_s"})
    if asked.outcome != "measured":
        return [told | {"not_compared": f"{asked.task}: {asked.reason}"}]
    if results is None:
        raise UnreadableResultError(f"{asked.task}.json is missing")
    return [
        told | _scored(score) | {"floor": floors.get(f"{score.metric},{score.filter}")}
        for score in read_scores(results)
    ]


def _scored(score: Score) -> Row:
    return {name: getattr(score, name) for name in score.__dataclass_fields__}


def compare_scores(rows: Sequence[Row], files: Iterable[Path]) -> list[Row]:
    """The rows, compared with the scores of earlier nights; `files` are those nights' scores, latest first."""
    before: dict[Series, list[EarlierScore]] = {_series(row): [] for row in rows if _lacking(row) is None}
    for path in files:
        if all(len(found) == NIGHTS for found in before.values()):
            break
        for series, score in _sound(path).items():
            if series in before and len(before[series]) < NIGHTS:
                before[series].append(score)
    return [row | _compared(row, before.get(_series(row), [])) for row in rows]


def _series(row: Row) -> Series:
    return tuple(row[name] for name in _SERIES)


def _lacking(row: Row) -> str | None:
    """The reason why a score cannot be compared; None if it can."""
    if row["value"] is None:
        return "no score"
    if row["quality_id"] is None:
        return "no run of this server was measured"
    if row["is_higher_better"] is None:
        return f"lm-eval does not state which direction of {row['metric']} is better"
    if _error(row) is None:
        return f"lm-eval reports no standard error of {row['metric']}"
    return None


def _error(row: Row) -> float | None:
    return standard_error(row["value"], row["stderr"], row["sample_count"])


def read_scored(path: Path | None) -> list[Row]:
    """The comparable scores of a night; empty if there is no file."""
    if path is None:
        return []
    with pq.ParquetFile(path) as file:
        rows: list[Row] = file.read(columns=_READ).to_pylist()
    return [row for row in rows if _lacking(row) is None]


def _sound(path: Path) -> dict[Series, EarlierScore]:
    """A night's scores that had not fallen themselves; the median if several servers ran the task."""
    found: dict[Series, list[EarlierScore]] = {}
    for row in read_scored(path):
        error = _error(row)
        if error is not None and (row["fall_se"] is None or row["fall_se"] <= WORSE_SE):
            found.setdefault(_series(row), []).append(EarlierScore(row["value"], error))
    return {series: _median(scores) for series, scores in found.items()}


def _median(scores: Sequence[EarlierScore]) -> EarlierScore:
    return EarlierScore(median(score.value for score in scores), median(score.stderr for score in scores))


def _compared(row: Row, before: Sequence[EarlierScore]) -> Row:
    error, lacking = _error(row) if row["value"] is not None else None, _lacking(row)
    if lacking is not None or error is None or not before:
        why = row["not_compared"] if row["value"] is None else lacking or FIRST
        return {"not_compared": why, "earlier_night_count": len(before)}
    middle = _median(before)
    return {
        "value_earlier": middle.value,
        "stderr_earlier": middle.stderr,
        "earlier_night_count": len(before),
        "fall_se": fall_se(row["value"], error, before, is_higher_better=row["is_higher_better"]),
        "not_compared": None,
    }


def later_scored(lake: Path, data: Path, night: str) -> list[str]:
    """The later nights whose scores were compared with this night's, if these have changed."""
    was = read_scored(if_there(partition(lake, "quality_scores", night) / PART))
    now = read_scored(file_of(lake, night, "quality_scores"))
    if was == now:
        return []
    touched = {_series(row) for row in (*was, *now)}
    later = [name for name in nights(data) if name > night]
    scored = {name: read_scored(file_of(lake, name, "quality_scores")) for name in later}
    return [name for name, rows in scored.items() if touched & {_series(row) for row in rows}]


def with_scores(measurements: Sequence[Row], scores: Sequence[Row]) -> list[Row]:
    """The measurements with the evidence from their servers' scores, where their suite requests scores."""
    return [row | _of_server(row, scores) if row["lm_eval_tasks"] else row for row in measurements]


def _of_server(row: Row, scores: Sequence[Row]) -> Row:
    ours = [score for score in scores if score["server_id"] == row["server_id"]]
    reasons = dict.fromkeys(score["not_compared"] for score in ours if score["not_compared"] is not None)
    fallen = [score for score in ours if score["fall_se"] is not None]
    floored = [score for score in ours if score["floor"] is not None]
    # Without one of its scores a server is not known to reach its floors.
    is_whole = len(floored) >= len(row["lm_eval_floors"] or ())
    lowest = min(floored, key=_over_floor, default=None) if is_whole or any(map(_is_below, floored)) else None
    worst = max(fallen, key=lambda score: float(score["fall_se"]), default=None)
    return {
        ev.LM_EVAL_FALL_SE: worst["fall_se"] if worst else None,
        ev.LM_EVAL_OVER_FLOOR: _over_floor(lowest) if lowest else None,
        "lm_eval_worst": _said(worst) if worst else None,
        "lm_eval_lowest": _said_of_floor(lowest) if lowest else None,
        "lm_eval_not_compared": "; ".join(reasons) or (None if ours else NOT_ASKED),
    }


def _said(score: Row) -> str:
    return (
        f"{score['task']} {score['metric']} ({score['filter']}) is {score['value']:.4g} +- {_error(score):.2g} "
        f"after {score['value_earlier']:.4g} +- {score['stderr_earlier']:.2g}"
    )


def _over_floor(score: Row) -> float:
    return float(score["value"] / score["floor"])


def _is_below(score: Row) -> bool:
    return _over_floor(score) < 1


def _said_of_floor(score: Row) -> str:
    return (
        f"{score['task']} {score['metric']} ({score['filter']}) is {score['value']:.4g}, at least {score['floor']:.4g}"
    )
