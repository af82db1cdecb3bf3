"""The nights and run folders of a data folder, and whether a run folder matches its manifest."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import UnreadableResultError, UsageError
from bench.manifest import MANIFEST, parse_manifest
from nights import files, journal

RECORD = "record.json"
LM_EVAL = "lm-eval-"  # prefix of the folders with lm-eval results; no scenario_id starts with it
_NIGHT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, order=True)
class RunId:
    """A run: its night, scenario and repeat."""

    night: str
    scenario_id: str
    repeat: int

    @property
    def run_id(self) -> str:
        """The id of the run in every table."""
        return f"{self.night}/{self.scenario_id}/{self.repeat}"


@dataclass(frozen=True)
class RunFiles:
    """The files of one run folder that become rows, verified by its manifest; None if missing."""

    record: bytes
    load: dict[str, bytes] = field(default_factory=dict)
    metrics_before: bytes | None = None
    metrics_after: bytes | None = None
    telemetry: bytes | None = None
    server_samples: bytes | None = None


def nights(data: Path) -> list[str]:
    """Every night that has a folder, sorted by name."""
    runs = data / "runs"
    if not runs.is_dir():
        return []
    return sorted(entry.name for entry in runs.iterdir() if entry.is_dir() and _NIGHT.fullmatch(entry.name))


def night_folder(data: Path, night: str) -> Path:
    """The folder of a night; raises UsageError if it does not exist."""
    folder = data / "runs" / night
    if not _NIGHT.fullmatch(night) or not folder.is_dir():
        known = ", ".join(nights(data)[-3:]) or "none yet"
        raise UsageError(f"no night {night!r} in {data / 'runs'}; latest nights: {known}")
    journal.complete(folder)  # of a fetch that was killed
    return folder


def run_folders(folder: Path) -> Iterator[tuple[Path, RunId | None]]:
    """Every run folder of a night in order, None for the id where its name is not a repeat. Skips hidden folders."""
    for scenario in _shown(folder):
        if scenario.name.startswith((LM_EVAL, files.PROFILE)):
            continue
        for repeat in _shown(scenario):
            is_repeat = repeat.name.isdecimal() and str(int(repeat.name)) == repeat.name
            yield repeat, RunId(folder.name, scenario.name, int(repeat.name)) if is_repeat else None


def lm_eval_folders(folder: Path) -> Iterator[Path]:
    """Every folder of a night with lm-eval results, in order."""
    for server in _shown(folder):
        if server.name.startswith(LM_EVAL):
            yield from _shown(server)


def read_lm_eval(folder: Path) -> dict[str, bytes]:
    """The files of such a folder by name; raises UnreadableResultError if one does not match the manifest."""
    files = {name: _checked(folder, name, digest) for name, digest in _manifest(folder).items()}
    if files.get(RECORD) is None:
        raise UnreadableResultError(f"{MANIFEST} does not list {RECORD}")
    return {name: content for name, content in files.items() if content is not None}


def _shown(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def read_run(folder: Path) -> RunFiles:
    """Read a run folder and verify every file by the manifest.

    Only what the manifest lists is read. Raises UnreadableResultError naming the file: a listed file is
    missing, unreadable or has another SHA-256, or the manifest is missing.
    """
    files = {name: _checked(folder, name, digest) for name, digest in _manifest(folder).items()}
    record = files.get(RECORD)
    if record is None:
        raise UnreadableResultError(f"{MANIFEST} does not list {RECORD}")
    return RunFiles(
        record=record,
        load={
            name.removeprefix("load/"): content
            for name, content in files.items()
            if name.startswith("load/") and content is not None
        },
        metrics_before=files.get("metrics-before.txt"),
        metrics_after=files.get("metrics-after.txt"),
        telemetry=files.get("telemetry.parquet"),
        server_samples=files.get("server-samples.parquet"),
    )


def read_record_of(folder: Path) -> bytes:
    """The record of a run folder, and no other file of it; raises UnreadableResultError as read_run does."""
    digest = _manifest(folder).get(RECORD)
    record = None if digest is None else _checked(folder, RECORD, digest)
    if record is None:
        raise UnreadableResultError(f"{MANIFEST} does not list {RECORD}")
    return record


def _manifest(folder: Path) -> dict[str, str]:
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableResultError(f"{MANIFEST} cannot be read: the run folder is incomplete") from error
    return parse_manifest(text)


def _checked(folder: Path, name: str, digest: str) -> bytes | None:
    """The file's bytes after its SHA-256 was verified; None for a file that no row needs."""
    is_read = name.endswith((".json", ".txt", ".parquet")) or name.startswith("load/")
    try:
        if is_read:
            content = (folder / name).read_bytes()
            found = hashlib.sha256(content).hexdigest()
        else:
            content = None
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UnreadableResultError(f"{name} is in {MANIFEST} but cannot be read: {error.strerror}") from error
    if found != digest:
        raise UnreadableResultError(f"{name} does not match its SHA-256 in {MANIFEST}")
    return content
