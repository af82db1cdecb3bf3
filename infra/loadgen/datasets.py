"""The files that a suite names: traces of arrivals, recorded conversations, and expectations about its tables.

Their content identifies them, not their path: planning writes their SHA-256 into the scenario, and a run refuses a file
with another one.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.errors import SuiteError
from bench.loadgen.drivers.target import RunInputs
from bench.plan import conversation_share
from bench.record import NightRecord, PlannedRun
from bench.suite.expectations import TableExpectations, parse_expectations
from bench.suite.quality import Quality
from bench.suite.source import SuiteSource
from bench.suite.suite import ScenarioEntry, Suite
from infra.loadgen.trace_files import find_trace, read_trace
from meter.errors import UsageError
from meter.sharegpt import Selection, distinct, read_conversations


def find_inputs(suite: Suite, source: SuiteSource) -> Suite:
    """The suite, of these files, with the absolute path and SHA-256 of each file that it names.

    Raises SuiteError with the suite's line if a file cannot be read or has another SHA-256 than stated, and with the
    file's own line if its content is not valid.
    """
    found = tuple(_find(entry, place, source) for place, entry in enumerate(suite.scenarios))
    return suite.model_copy(update={"scenarios": found, "quality": _with_expectations(suite.quality, source)})


def _with_expectations(quality: Quality, source: SuiteSource) -> Quality:
    if quality.expectations is None:
        return quality
    where = source.at(("quality", "expectations"))
    file, content = _open(Path(source.where).parent / quality.expectations, None, f"{where}: quality.expectations")
    parse_expectations(_decoded(content, file), str(file))
    return quality.model_copy(update={"expectations": str(file)})


def read_expectations(suite: Suite) -> tuple[TableExpectations, ...]:
    """What the file of a suite expects of the night's tables, once `find_inputs` found it; nothing without a file."""
    if suite.quality.expectations is None:
        return ()
    return parse_expectations(Path(suite.quality.expectations).read_text("utf-8-sig"), suite.quality.expectations)


def _find(entry: ScenarioEntry, place: int, source: SuiteSource) -> ScenarioEntry:
    changes: dict[str, Any] = {}
    folder = Path(source.where).parent
    if entry.trace is not None:
        where = source.at(("scenarios", place, "trace"))
        file, digest = find_trace(folder / entry.trace, entry.trace_sha256, where)
        read_trace(entry, file)
        changes |= {"trace": str(file), "trace_sha256": digest}
    if entry.prompts.file is not None:
        where = source.at(("scenarios", place, "prompts", "file"))
        file, content = _open(folder / entry.prompts.file, entry.prompts.sha256, where)
        found = {"file": str(file), "sha256": hashlib.sha256(content).hexdigest()}
        changes["prompts"] = entry.prompts.model_copy(update=found)
    return entry.model_copy(update=changes)


def _open(file: Path, sha256: str | None, where: str) -> tuple[Path, bytes]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SuiteError(f"{where}: the file {file} cannot be read: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    if sha256 not in (None, found):
        raise SuiteError(f"{where}: {file}: SHA-256 mismatch: expected {sha256}, found {found}")
    return file.resolve(), content


def _decoded(content: bytes, file: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SuiteError(f"{file}:{line}: not UTF-8") from error


def require_conversations(night: NightRecord) -> None:
    """Raise SuiteError if a file of conversations is unreadable or too short for the runs of this night."""
    conversations: dict[str, Any] = {}
    for run in night.runs:
        work, file = run.scenario.workload, run.scenario.workload.prompts.file
        if file is not None:
            try:
                if file not in conversations:
                    conversations[file] = distinct(read_conversations(_open(Path(file), None, file)[1], file))
                _selection(night, run).apply(conversations[file], work.total_count, file)
            except UsageError as error:
                hint = "shorten the night, or set prompts.repeat or prompts.seed"
                raise SuiteError(f"scenario {run.scenario.name!r}, repeat {run.repeat}: {error} ({hint})") from error


def _selection(night: NightRecord, run: PlannedRun) -> Selection:
    share = conversation_share(night, run)
    prompts = run.scenario.workload.prompts
    return Selection(run.scenario.workload.isl, share.order_seed, share.share, share.shares, prompts.repeat)


def input_files(run: PlannedRun) -> Iterator[tuple[Path, str]]:
    """Each input file of a run's load, and its SHA-256."""
    work = run.scenario.workload
    for file, digest in ((work.trace, work.trace_sha256), (work.prompts.file, work.prompts.sha256)):
        if file is not None and digest is not None:
            yield Path(file), digest


def input_path(digest: str) -> str:
    """The path of a file that was sent to a machine, below its data folder."""
    return f"inputs/{digest}"


def with_local_paths(run: PlannedRun, data: Path) -> PlannedRun:
    """The run with the paths that its files have here: where they were sent to, else those it names."""

    def local(file: str | None, digest: str | None) -> str | None:
        sent = data / input_path(digest or "none")
        return str(sent) if sent.is_file() else file

    work = run.scenario.workload
    prompts = work.prompts.model_copy(update={"file": local(work.prompts.file, work.prompts.sha256)})
    found = work.model_copy(update={"trace": local(work.trace, work.trace_sha256), "prompts": prompts})
    return run.model_copy(update={"scenario": run.scenario.model_copy(update={"workload": found})})


def read_inputs(night: NightRecord, run: PlannedRun) -> RunInputs:
    """The inputs of a run beside its scenario and seed; SuiteError if its trace is not the planned one."""
    work = run.scenario.workload
    conversations = conversation_share(night, run) if work.prompts.kind == "sharegpt" else None
    if work.trace is None:
        return RunInputs(conversations=conversations)
    file, _ = find_trace(Path(work.trace), work.trace_sha256, f"scenario {run.scenario.name!r}")
    return RunInputs(read_trace(work, file), conversations)
