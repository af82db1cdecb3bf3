"""What a night keeps of its progress: its log and the times of its stages, in its folder; later nights expect these."""

import logging
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from bench.cost.estimate import HostPlan, estimate_night
from bench.cost.stage_titles import expected_by_title
from bench.machine_nights import machine_nights
from bench.night_progress import NightBegan, StageTime, StageTimes, kind_of
from bench.printable import printable
from bench.record import NightRecord
from catalog.read import machine_size, read_catalog
from infra.settings import Settings
from infra.storage import store
from nights.files import LOG
from tasks.progress import STREAM

LOGGER = logging.getLogger("nightbench")
EARLIER_NIGHTS = 10  # of the suite; the newest that timed a stage shows how long it takes


@contextmanager
def keep_progress(settings: Settings, night: NightRecord) -> Iterator[None]:
    """Emit the beginning of a night; keep the log of this block, and the times of its stages, in the night's folder.

    The log is written under a hidden name, which no upload takes, and gets its name at the end, also where an error
    ends the night. A disk that cannot take them is a warning.
    """
    missing = Counter(f"measure {run.scenario.name}" for run in store.missing_runs(settings.data, night))
    expected, added = expected_stages(settings.data, night), expected_repeats(settings.data, night)
    machines = len(machine_nights(night)) if night.where.is_rented else 1
    names = (night.night, night.suite.name, night.target, len(night.runs))
    STREAM.emit(NightBegan(*names, missing, expected, machines, added))
    with _logged(store.night_folder(settings.data, night.night) / LOG.name):
        try:
            yield
        finally:
            _keep_stages(store.stages_file(settings.data, night.night))


def expected_stages(data: Path, night: NightRecord) -> dict[str, float]:
    """The seconds of each kind of stage: the mean of the newest earlier night of this suite and target that timed it.

    Where none did, as the plan estimates them.
    """
    found = _planned_stages(night)
    earlier: dict[str, float] = {}
    for times in _earlier(data, night):
        earlier = times.mean_s() | earlier
    return found | earlier


def expected_repeats(data: Path, night: NightRecord) -> dict[str, int]:
    """The repeats that the newest earlier night of this suite and target added, by the title of their stage.

    None where this suite adds none, or no earlier night is known.
    """
    if night.suite.quality.half_width_max is None:
        return {}
    planned = Counter(f"measure {run.scenario.name}" for run in night.runs)
    counts = next((times.counts() for times in _earlier(data, night) if times.stages), {})
    return {title: counts[title] - count for title, count in planned.items() if counts.get(title, 0) > count}


def _earlier(data: Path, night: NightRecord) -> Iterator[StageTimes]:
    """The times of the newest earlier nights of this suite and target, newest first."""
    for name in islice((one for one in reversed(store.nights(data)) if one < night.night), EARLIER_NIGHTS):
        times = read_stages(store.stages_file(data, name))
        if (times.suite, times.target) == (night.suite.name, night.target):
            yield times


def _planned_stages(night: NightRecord) -> dict[str, float]:
    """What the plan's estimate expects of stages on a machine that the catalogue knows; nothing of this computer."""
    found: dict[str, float] = {}
    for part in machine_nights(night):
        size = machine_size(part.target, part.suite.machine.kind)
        if size is not None:
            estimate = estimate_night(part.suite, part.runs, HostPlan(0.0, size), read_catalog())
            found |= expected_by_title(estimate, part.suite.model.source)
    return found


def read_stages(path: Path) -> StageTimes:
    """The times of a night's stages; none where the file is missing or cannot be read."""
    try:
        return StageTimes.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return StageTimes()


def _keep_stages(path: Path) -> None:
    now, at = time.monotonic(), datetime.now(UTC)
    with STREAM.lock:
        began = STREAM.state.began
        ended = STREAM.state.ended()
    stages = tuple(
        StageTime(
            stage=kind_of(one.title),
            began_at=at - timedelta(seconds=now - one.began_s),
            seconds=round(one.elapsed_s(now), 3),
            is_failed=one.is_failed,
        )
        for one in ended
    )
    times = StageTimes(suite=began.suite if began else None, target=began.target if began else None, stages=stages)
    try:
        store.write_json(path, times)
    except OSError as error:
        LOGGER.warning("the times of the stages are not kept in %s: %s", path, error.strerror)


class _LogFile(logging.FileHandler):
    """A log file of a night; a disk that is full ends neither the night nor its output."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name of the standard library
        """Leave a line out that cannot be written."""
        del record


class _Lines(logging.Formatter):
    """UTC, level, the task, and the message without control characters of a machine or file."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as text."""
        where = getattr(record, "task_run_name", None) or getattr(record, "flow_run_name", None) or record.name
        at = datetime.fromtimestamp(record.created, UTC)
        text = f"{at:%Y-%m-%dT%H:%M:%SZ} {record.levelname} {where}: {record.getMessage()}"
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        return "\n".join(map(printable, text.splitlines()))


@contextmanager
def _logged(path: Path) -> Iterator[None]:
    """Add the log of this block to a file; a resumed night goes on in it."""
    hidden = path.with_name(f".{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not hidden.exists():
            shutil.copyfile(path, hidden)
        handler = _LogFile(hidden, encoding="utf-8")
    except OSError as error:
        LOGGER.warning("the log is not kept in %s: %s", path, error.strerror)
        yield
        return
    handler.setLevel(logging.INFO)
    handler.setFormatter(_Lines())
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
        hidden.replace(path)
