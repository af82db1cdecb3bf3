"""Measure the nights that a history lacks, one after the other, in this process.

They are runs of the flow that a deployment starts, on a temporary server of Prefect. A deployment's run would start a
process of its own for each, and the service beside it takes turns with the engine on a computer of two cores.
"""

import time
from collections.abc import Callable, Container, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from bench.errors import BadRunsError, NightbenchError
from bench.suite.target import LOCAL
from benchmarks.history.journal import Row, keep_row, read_journal
from benchmarks.history.plan import SUITES, PlannedNight
from benchmarks.recorded import git_commit
from infra.engines.install import OWN
from infra.loadgen.suite_extension import toml_string, write_extension
from infra.loadgen.suite_file import draft_sha256
from infra.reporting import Say
from infra.settings import Settings
from infra.storage import store
from infra.storage.begun_nights import begun_night

SuiteOf = Callable[[Path, PlannedNight], Path]
Run = Callable[[Path, str | None], str]  # runs the night of a suite, or resumes the one that is named; its name


def missing_nights(data: Path, planned: Iterable[PlannedNight]) -> list[PlannedNight]:
    """What has no row yet, also none of a night that measured nothing."""
    measured = {row.planned for row in read_journal(data).rows}
    return [one for one in planned if one not in measured]


def build_all(planned: Iterable[PlannedNight], settings: Settings, say: Say) -> dict[str, str]:
    """Build every engine that is not there yet; why not, by release, of those that cannot be built here."""
    failed: dict[str, str] = {}
    for engine, release in dict.fromkeys((one.engine, one.release) for one in planned):
        try:
            OWN[engine](settings, say, release)
        except NightbenchError as error:
            failed[release] = str(error)
            say(f"{engine} {release} cannot be built here, its nights measure nothing: {error}")
    return failed


def collect(
    data: Path,
    missing: Iterable[PlannedNight],
    unbuilt: Mapping[str, str],
    run: Run,
    say: Say,
    suite_of: SuiteOf | None = None,
) -> None:
    """Measure these nights, each into a row of the journal; what was begun and cut off is resumed.

    `suite_of` makes ready what the next night needs and returns its suite; without it, the one of its release.
    """
    for planned in missing:
        known = [row.night for row in read_journal(data).rows if row.night is not None]
        suite = (suite_of or write_suite)(data, planned)
        began_at, clock = datetime.now(UTC), time.monotonic()
        night, reason = None, unbuilt.get(planned.release, "")
        if not reason:
            night, reason = measure_suite(data, suite, known, run)
        seconds = time.monotonic() - clock
        row = Row(
            **vars(planned),
            night=night,
            began_at=began_at,
            wall_s=round(seconds, 1),
            commit=git_commit(),
            reason=reason,
        )
        keep_row(data, row)
        say(f"{planned.engine} {planned.release}, round {planned.round}: {night} in {seconds:.0f} s {reason}".rstrip())


def write_suite(data: Path, planned: PlannedNight) -> Path:
    """The miniature suite of a release; all nights of the release have the same."""
    path = data / "suites" / f"{planned.engine}-{planned.release}.toml"
    write_extension(path, SUITES[planned.engine], f"\n[engine]\nversion = {toml_string(planned.release)}\n")
    return path


def measure_suite(data: Path, suite: Path, known: Container[str], run: Run) -> tuple[str | None, str]:
    """The name of a suite's night and why it measured nothing or only a part; one that is not `known` is resumed."""
    before, begun = set(store.nights(data)), begun_night(data, draft_sha256(suite, LOCAL), LOCAL, known)
    try:
        return run(suite, begun), ""
    except BadRunsError as bad:
        return bad.night, str(bad)
    except NightbenchError as error:
        return begun or max(set(store.nights(data)) - before, default=None), str(error)
