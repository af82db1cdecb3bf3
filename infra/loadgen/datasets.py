"""The files that a suite names beside itself: traces of arrivals, and recorded conversations.

Their content counts, not their place: planning writes their SHA-256 into the scenario, and a run refuses another file.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.errors import SuiteError
from bench.loadgen.drivers import RunInputs
from bench.plan import conversation_share
from bench.record import NightRecord, PlannedRun
from bench.suite.parse import line_of
from bench.suite.suite import ScenarioEntry, Suite
from bench.suite.trace import read_arrivals
from meter.errors import UsageError
from meter.sharegpt import Selection, distinct, read_conversations


def find_inputs(suite: Suite, path: Path, text: str) -> Suite:
    """The suite with each file's whole path and SHA-256; `path` and `text` are the suite's own.

    Raises SuiteError with the suite's line where a file cannot be read or is not the one whose SHA-256 was given, and
    with the file's own line where it holds something else.
    """
    found = tuple(_find(entry, place, path, text) for place, entry in enumerate(suite.scenarios))
    return suite.model_copy(update={"scenarios": found})


def _find(entry: ScenarioEntry, place: int, path: Path, text: str) -> ScenarioEntry:
    changes: dict[str, Any] = {}
    if entry.trace is not None:
        where = f"{path}:{line_of(text, ('scenarios', place, 'trace'))}"
        file, content = _open(path.parent / entry.trace, entry.trace_sha256, where)
        read_arrivals(_decoded(content, file), str(file), entry.total_count)
        changes |= {"trace": str(file), "trace_sha256": hashlib.sha256(content).hexdigest()}
    if entry.prompts.file is not None:
        where = f"{path}:{line_of(text, ('scenarios', place, 'prompts', 'file'))}"
        file, content = _open(path.parent / entry.prompts.file, entry.prompts.sha256, where)
        found = {"file": str(file), "sha256": hashlib.sha256(content).hexdigest()}
        changes["prompts"] = entry.prompts.model_copy(update=found)
    return entry.model_copy(update=changes)


def _open(file: Path, sha256: str | None, where: str) -> tuple[Path, bytes]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SuiteError(f"{where}: the file {file} cannot be read: {error}") from error
    if sha256 not in (None, hashlib.sha256(content).hexdigest()):
        raise SuiteError(f"{where}: {file} is not the file that was meant: its SHA-256 is not {sha256}")
    return file.resolve(), content


def _decoded(content: bytes, file: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SuiteError(f"{file}:{line}: not UTF-8") from error


def require_conversations(night: NightRecord) -> None:
    """Raise SuiteError where a file of conversations is unreadable or too short for the runs of this night."""
    conversations: dict[str, Any] = {}
    for run in night.runs:
        work, file = run.scenario.workload, run.scenario.workload.prompts.file
        if file is not None:
            try:
                if file not in conversations:
                    conversations[file] = distinct(read_conversations(_open(Path(file), None, file)[1], file))
                _selection(night, run).apply(conversations[file], work.total_count, file)
            except UsageError as error:
                hint = "shorten the night, or say prompts.repeat or prompts.seed"
                raise SuiteError(f"scenario {run.scenario.name!r}, repeat {run.repeat}: {error} ({hint})") from error


def _selection(night: NightRecord, run: PlannedRun) -> Selection:
    share = conversation_share(night, run)
    prompts = run.scenario.workload.prompts
    return Selection(run.scenario.workload.isl, share.order_seed, share.share, share.shares, prompts.repeat)


def files_of(run: PlannedRun) -> Iterator[tuple[Path, str]]:
    """Each file that a run's load is made from, and its SHA-256."""
    work = run.scenario.workload
    for file, digest in ((work.trace, work.trace_sha256), (work.prompts.file, work.prompts.sha256)):
        if file is not None and digest is not None:
            yield Path(file), digest


def place_of(digest: str) -> str:
    """Where a file stands below the data folder of a machine that it was sent to."""
    return f"inputs/{digest}"


def as_at_hand(run: PlannedRun, data: Path) -> PlannedRun:
    """The run with the places its files have here: those it names, or where they were sent to."""

    def here(file: str | None, digest: str | None) -> str | None:
        sent = data / place_of(digest or "none")
        return str(sent) if sent.is_file() else file

    work = run.scenario.workload
    prompts = work.prompts.model_copy(update={"file": here(work.prompts.file, work.prompts.sha256)})
    found = work.model_copy(update={"trace": here(work.trace, work.trace_sha256), "prompts": prompts})
    return run.model_copy(update={"scenario": run.scenario.model_copy(update={"workload": found})})


def given(night: NightRecord, run: PlannedRun) -> RunInputs:
    """What this run is given beside its scenario and seed; raises SuiteError where its trace is not the planned one."""
    work = run.scenario.workload
    conversations = conversation_share(night, run) if work.prompts.kind == "sharegpt" else None
    if work.trace is None:
        return RunInputs(conversations=conversations)
    file, content = _open(Path(work.trace), work.trace_sha256, f"scenario {run.scenario.name!r}")
    return RunInputs(read_arrivals(_decoded(content, file), str(file), work.total_count), conversations)
