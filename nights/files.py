"""Every file of a night's folder, declared once: what it is, who writes it, and whether it is copied and loaded.

Upload, fetch, resume, load and `nightbench doctor` go by this table. A file that it does not name is kept where it is,
and neither copied nor loaded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from bench.client_error.calibration import CalibrationTable
from bench.engines.profile_record import ProfileRecord
from bench.machine.canary import CanaryRecord
from bench.machine_nights import LeasePlan, RefusedResults
from bench.night_progress import StageTimes
from bench.record import FailedStart, LeaseReport, LmEvalRecord, NightEnd, NightRecord, RunRecord, Uploads
from bench.repeats import NightPrecision
from bench.search.halving import TuningNight
from bench.search.search import NightSearches
from bench.trends.judgement import NightJudgement

MIB, GIB = 1 << 20, 1 << 30
PROFILE = "profile-"  # prefix of the folders with traces; no scenario_id starts with it
_ID = "[0-9a-f]{16}"  # of a scenario or of a server
_LEASE = "[A-Za-z0-9_-]{1,64}"
_MACHINE = "[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
_NUMBER = "(?:0|[1-9][0-9]{0,5})"
# A file of a trace, relative to the data folder.
TRACE = rf"runs/[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}/{PROFILE}{_ID}/0/[A-Za-z0-9][A-Za-z0-9._-]{{0,150}}\.json\.gz"


@dataclass(frozen=True)
class NightFile:
    """One kind of file below runs/<night>/; a kind of folder ends with a slash and is copied as a whole."""

    name: str
    pattern: str  # a regular expression that its whole name matches, relative to the night's folder
    holds: str
    model: type[BaseModel] | None  # of its JSON, of a folder that of its record.json; None: text of a program
    written_by: str
    written_when: str
    is_uploaded: bool = True
    is_fetched: bool = True
    is_loaded: bool = True
    is_removed_by_resume: bool = False
    largest_bytes: int = 64 * MIB

    def matches(self, name: str) -> bool:
        """Whether a name is of this kind."""
        return re.fullmatch(self.pattern, name) is not None

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder with a manifest."""
        return self.name.endswith("/")


PLAN = NightFile(
    "night.json", r"night\.json", "the plan of the night", NightRecord, "planning", "before a machine is rented"
)
LEASES = NightFile(
    "leases/<lease>.json",
    rf"leases/{_LEASE}\.json",
    "what was rented, and what it cost",
    LeaseReport,
    "the ledger",
    "when a lease begins or ends",
)
LEASE_PLANS = NightFile(
    "plans/<lease>.json",
    rf"plans/{_LEASE}\.json",
    "of a night over several machines, the plan of one as this lease runs it",
    LeasePlan,
    "renting",
    "when the machine is there and its kind is known",
    is_loaded=False,
)
CANARIES = NightFile(
    "canaries/<lease>-<position>.json",
    rf"canaries/{_LEASE}\.json",
    "how fast the machine itself is",
    CanaryRecord,
    "the canary",
    "before the first server starts, and after the last one stopped",
)
REFUSED = NightFile(
    "refused/<lease>.json",
    rf"refused/{_LEASE}\.json",
    "what a machine offered that its plan did not give it: names, no content",
    RefusedResults,
    "the copying of results",
    "when the machine offers it",
)
END = NightFile(
    "end.json",
    r"end\.json",
    "why the night ended early",
    NightEnd,
    "the night",
    "when it ends early; a resume removes it",
    is_removed_by_resume=True,
)
SEARCHES = NightFile(
    "searches.json",
    r"searches\.json",
    "what sweeps and searches found, if the suite has any",
    NightSearches,
    "the load",
    "after the machine is released",
)
TUNING = NightFile(
    "tuning.json",
    r"tuning\.json",
    "what the candidates of a search for flags showed, if the night is one of its rounds",
    TuningNight,
    "nightbench tune",
    "after the load, which it repeats",
)
JUDGEMENT = NightFile(
    "judgement.json",
    r"judgement\.json",
    "the judgement of the night's series",
    NightJudgement,
    "the judge",
    "after the load",
)
UPLOADS = NightFile(
    "uploads.json",
    r"uploads\.json",
    "what of the night this computer has uploaded or fetched",
    Uploads,
    "upload and fetch",
    "after each upload and fetch",
    is_uploaded=False,
    is_fetched=False,
    is_loaded=False,
)
RUNS = NightFile(
    "<scenario>/<repeat>/",
    rf"{_ID}/{_NUMBER}",
    "one run: MANIFEST.sha256 names and hashes each of its files",
    RunRecord,
    "the measurement",
    "when the run is over",
    largest_bytes=4 * GIB,
)
LOG = NightFile(
    "night.log",
    r"night\.log",
    "the log of the night, which a terminal shows only in part",
    None,
    "the night",
    "when it ends; until then it is `.night.log`",
    is_loaded=False,
)
STAGES = NightFile(
    "stages.json",
    r"stages\.json",
    "how long each stage took, which later nights of the suite expect",
    StageTimes,
    "the night",
    "when it ends",
    is_loaded=False,
)
FILES: tuple[NightFile, ...] = (
    PLAN,
    LEASES,
    LEASE_PLANS,
    CANARIES,
    REFUSED,
    NightFile(
        "calibration.json",
        r"calibration\.json",
        "the load client's own error, on its host, in that night",
        CalibrationTable,
        "the calibration",
        "before the first server starts",
        is_loaded=False,
    ),
    NightFile(
        "calibration-<machine>.json",
        rf"calibration-{_MACHINE}\.json",
        "the same of each machine, in a night over several; or by its id, of the host that the night began on",
        CalibrationTable,
        "the calibration",
        "before the first server of that machine starts",
        is_loaded=False,
    ),
    NightFile(
        "failed-starts/<lease>-<n>.json",
        rf"failed-starts/{_LEASE}\.json",
        "a start of a server that failed and was repeated",
        FailedStart,
        "the night",
        "after the failed start",
        is_loaded=False,
    ),
    NightFile(
        "servers/<server>-<n>.log",
        rf"servers/{_ID}-[0-9]{{1,6}}(-prefill)?\.log",
        "the whole output of one server process; the part of each run is also in its run folder. Where another server "
        "computes the prompts, that one's is `<server>-<n>-prefill.log`",
        None,
        "the engine",
        "while the server runs",
        is_loaded=False,
        largest_bytes=4 * GIB,
    ),
    RUNS,
    NightFile(
        "lm-eval-<server>/0/",
        rf"lm-eval-{_ID}/{_NUMBER}",
        "the lm-eval tasks of a server, in the form of a run",
        LmEvalRecord,
        "lm-eval",
        "after the last run of that server",
        largest_bytes=4 * GIB,
    ),
    NightFile(
        "profile-<scenario>/0/",
        rf"{PROFILE}{_ID}/{_NUMBER}",
        "a profiler's trace of a scenario, or why there is none, in the form of a run",
        ProfileRecord,
        "the profiler's own server",
        "after the last run of the machine, where a suite or a bisect asks for it",
        is_loaded=False,
        largest_bytes=GIB,
    ),
    END,
    SEARCHES,
    TUNING,
    JUDGEMENT,
    NightFile(
        "repeats.json",
        r"repeats\.json",
        "how exactly the repeats give the means, if the plan chose how many",
        NightPrecision,
        "the report",
        "after the judgement",
        is_loaded=False,
    ),
    LOG,
    STAGES,
    UPLOADS,
)


def declared(name: str) -> NightFile | None:
    """The kind of a file or run folder, by its name relative to the night's folder; None if the table has none."""
    return next((kind for kind in FILES if kind.matches(name)), None)


def is_removed_by_resume(name: str) -> bool:
    """Whether a resume removes the file of this name."""
    kind = declared(name)
    return kind is not None and kind.is_removed_by_resume


def files_in(folder: Path, kind: NightFile) -> list[Path]:
    """The files of one kind in a night's folder, sorted by name."""
    inner = (folder / kind.name).parent
    return sorted(path for path in inner.glob("*") if kind.matches(str(path.relative_to(folder))) and path.is_file())


def names_in(folder: Path) -> Iterator[tuple[str, NightFile | None]]:
    """Each file beside the runs of a night's folder, with its kind; without hidden ones, which are being written."""
    for path in sorted((*folder.glob("*"), *folder.glob("*/*"))):
        name = str(path.relative_to(folder))
        if path.is_file() and not any(part.startswith(".") for part in Path(name).parts):
            yield name, declared(name)


def unknown_files(folder: Path) -> list[str]:
    """The files of a night's folder that the table does not name: they are kept, and neither copied nor loaded."""
    return [name for name, kind in names_in(folder) if kind is None]
