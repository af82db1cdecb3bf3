"""The inputs of an audit at a path: claims of result files, and our own run folders."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.audit.claim import Claim, ClaimedConfig, ClaimSource
from bench.audit.evidence.evidence import EvidenceByColumn, Observed
from bench.audit.judge import row_evidence
from bench.audit.rules import REQUIRED
from bench.errors import ToldBesideError, UnknownFormatError, UnreadableResultError, UsageError
from warehouse.column_names import columns_beside
from warehouse.context import context_of, contexts_of_no_file, in_context, is_context_file
from warehouse.importers import read_claims
from warehouse.importers.parsing.document import BYTES_MAX, read_document, too_large_for_memory
from warehouse.rows.catalog_subject import subject_of
from warehouse.rows.run_folder import RECORD, RunId, read_run
from warehouse.told_again import told_again

if TYPE_CHECKING:  # records are slow to import, and a result file of another tool needs none
    from warehouse.rows.night_servers import NightServers

STDIN = "-"
NIGHT = "night.json"
_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class AuditInput:
    """A claim without its series, its evidence and its required rules; `broken` is why it cannot be judged.

    `broken` holds a code and a message.
    """

    claim: Claim
    evidence: EvidenceByColumn
    required: frozenset[str] | None = None  # columns; None: those of the claim's format
    broken: tuple[str, str] | None = None


@dataclass(frozen=True)
class LeftOut:
    """A file that is not a result file, and why."""

    why: str


def cases_at(path: str, context: ClaimedConfig, mapped: Mapping[str, str] = _NOTHING) -> Iterator[AuditInput | LeftOut]:
    """Everything that can be judged at a path: a file, a folder, or `-` for standard input.

    `mapped` are headers of tables with our names for them; a context file beside a table may name more. An unreadable
    file is a broken case. Raises UsageError if the path does not exist.
    """
    place = Path(path)
    if path == STDIN:
        yield from _named("standard input", lambda: sys.stdin.buffer.read(BYTES_MAX + 1), None, context, mapped)
    elif place.is_dir():
        yield from _each_once(list(_of_folder(place, context, mapped)))
    elif is_context_file(place):
        raise UsageError(f"{path} is a context file and no result: pass the result beside it")
    elif place.exists():
        yield from _of_file(place, context, mapped)
        yield from map(LeftOut, contexts_of_no_file(place.parent))
    else:
        raise UsageError(f"{path} does not exist: pass a result file, a folder, or - for standard input")


def _of_folder(folder: Path, context: ClaimedConfig, mapped: Mapping[str, str]) -> Iterator[AuditInput | LeftOut]:
    found = False
    servers: dict[Path, NightServers] = {}
    contexts: dict[Path, None] = {}  # the folders with a context file, in order
    for place in _things(folder):
        if is_context_file(place):
            contexts[place.parent] = None
            continue
        found = True
        yield from [_of_run(place, servers)] if place.is_dir() else _of_file(place, context, mapped, is_named=False)
    if not found:
        raise UsageError(f"{folder} contains no run folder and no result file")
    for each in contexts:
        yield from map(LeftOut, contexts_of_no_file(each))


def _each_once(found: list[AuditInput | LeftOut]) -> Iterator[AuditInput | LeftOut]:
    """The same, with each run that several files describe in only one of them."""
    cases = [each for each in found if isinstance(each, AuditInput) and each.required is None]
    checked = [sum(isinstance(value, Observed) for value in case.evidence.values()) for case in cases]
    again = told_again([case.claim for case in cases], checked)
    kept_by = {id(cases[at]): cases[kept].claim.lineage for at, kept in again.items()}
    for each in found:
        kept = kept_by.get(id(each))
        if kept is None or not isinstance(each, AuditInput):
            yield each
            continue
        own = each.claim.lineage
        yield LeftOut(f"{own.file} {own.place}".rstrip() + f" tells the run of {kept.file} {kept.place}".rstrip())


def _things(folder: Path) -> Iterator[Path]:
    """Run folders and files below a folder, in order; other files in a night's folder are skipped."""
    if (folder / RECORD).is_file():
        yield folder
        return
    for top, names, files in os.walk(folder):
        here = Path(top)
        names[:] = sorted(name for name in names if not name.startswith("."))
        runs = [name for name in names if (here / name / RECORD).is_file()]
        names[:] = [name for name in names if name not in runs]
        yield from (here / name for name in runs)
        is_night = any((parent / NIGHT).is_file() for parent in (here, *here.parents[:2]))
        yield from (here / name for name in sorted(files) if not is_night and not name.startswith("."))


def _of_file(
    place: Path, context: ClaimedConfig, mapped: Mapping[str, str], *, is_named: bool = True
) -> Iterator[AuditInput | LeftOut]:
    known = {**columns_beside(place), **mapped}
    try:
        yield from _named(str(place), lambda: _bytes_of(place), place.parent, context_of(place, context), known)
    except UnknownFormatError as error:
        yield _broken(str(place), "unknown_format", str(error)) if is_named else LeftOut(str(error))
    except ToldBesideError as error:
        yield LeftOut(str(error))


def _bytes_of(place: Path) -> bytes:
    too_large_for_memory(str(place), place.stat().st_size)
    return place.read_bytes()


def _named(
    name: str, read: Callable[[], bytes], folder: Path | None, context: ClaimedConfig, mapped: Mapping[str, str]
) -> Iterator[AuditInput]:
    try:
        document = replace(read_document(name, read(), *_beside(folder)), mapped=mapped)
        for claim in read_claims(document):
            known = in_context(claim, context)
            yield AuditInput(replace(known, series=None), row_evidence(known, subject_of(known)))
    except (UnknownFormatError, ToldBesideError):
        raise
    except UnreadableResultError as error:
        yield _broken(name, "unreadable", str(error))
    except OSError as error:
        yield _broken(name, "unreadable", f"{name} cannot be read: {error.strerror}")


def _beside(folder: Path | None) -> tuple[Callable[[str], bytes | None], tuple[str, ...]]:
    if folder is None:
        return (lambda _name: None), ()

    def read(name: str) -> bytes | None:
        beside = folder / Path(name).name
        return _bytes_of(beside) if beside.is_file() else None

    return read, tuple(sorted(each.name for each in folder.iterdir() if each.is_file()))


def _of_run(folder: Path, servers: "dict[Path, NightServers]") -> AuditInput:
    """One of our run folders, named by its path: two data folders may hold runs with the same id.

    `servers` keeps what is known of the servers of each night, so that a night is read once.
    """
    from warehouse.rows.evidence import night_evidence  # noqa: PLC0415 - only our own runs need Parquet
    from warehouse.rows.night_servers import UNKNOWN, read_night_servers  # noqa: PLC0415
    from warehouse.rows.run_rows import run_rows  # noqa: PLC0415

    scenario, name = folder.absolute().parent, folder.name
    night = scenario.parent
    if night not in servers:
        servers[night] = read_night_servers(night) if (night / NIGHT).is_file() else UNKNOWN
    place = RunId(scenario.parent.name, scenario.name, int(name) if name.isdecimal() else 0)
    try:
        rows = run_rows(place, read_run(folder), servers[night])
    except UnreadableResultError as error:
        return _broken(str(folder), "load", str(error))
    row = rows.measurement
    if rows.asked is None:
        return _broken(str(folder), row["stage"] or row["outcome"], row["reason"] or "no reason given", row["outcome"])
    claim = replace(rows.asked.claim, lineage=replace(rows.asked.claim.lineage, file=str(folder)))
    return AuditInput(claim, rows.asked.evidence | night_evidence(row), REQUIRED)


def _broken(file: str, code: str, why: str, outcome: str = "failed") -> AuditInput:
    claim = Claim(ClaimSource(file, "", "", "", 0), outcome="not-run" if outcome == "not-run" else "failed")
    return AuditInput(claim, {}, broken=(code, why))
