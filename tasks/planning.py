"""Plan a night, or take up one that was left unfinished."""

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from bench.errors import UsageError
from bench.plan import plan_runs
from bench.record import NightRecord, PlannedRun
from bench.suite.parse import parse_suite
from bench.suite.pins import fill_pins, require_pins
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from catalog.engine_check import require_engine_rules
from infra.loadgen import datasets
from infra.settings import Settings
from infra.storage import store
from tasks.model_cache import require_bucket


def read_suite(path: Path, *, is_draft: bool = False) -> tuple[Suite, str]:
    """A suite file as a value, and its sha256; UsageError where there is no such file, SuiteError where it is wrong.

    The files that it names are read as well: their whole paths and their SHA-256 stand in the suite then. Pins that it
    leaves open are filled from the environment; only a draft may keep one open.
    """
    try:
        raw = path.read_bytes()
        text = raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the suite {path} cannot be read: {error}") from error
    suite = fill_pins(parse_suite(text, str(path)), os.environ, text, str(path))
    if not is_draft:
        require_pins(suite, text, str(path))
    suite = datasets.find_inputs(suite, path, text)
    return suite, hashlib.sha256(raw).hexdigest()


def pick_scenario(path: Path, name: str) -> tuple[Suite, Scenario]:
    """A suite and its scenario of this name; UsageError where it has none, naming those that it has."""
    suite, _digest = read_suite(path)
    found = {scenario.name: scenario for scenario in suite.expand()}
    if name not in found:
        raise UsageError(f"{path} has no scenario {name!r}; it has: {', '.join(found)}")
    return suite, found[name]


def make_night(suite: Path, target: str, *, poc: bool, is_draft: bool = False) -> NightRecord:
    """A night that starts now; nothing is written.

    Only a draft, which is shown and not run, may have open pins and break its engine's rules: SuiteError otherwise.
    """
    parsed, digest = read_suite(suite, is_draft=is_draft)
    if not is_draft:
        require_engine_rules(parsed, target, suite)
    started_at = datetime.now(UTC)
    night = NightRecord(
        night=f"{started_at:%Y-%m-%dT%H%M%S}Z",
        target=target,
        started_at=started_at,
        suite=parsed,
        suite_sha256=digest,
        seed=parsed.seed,
        runs=plan_runs(parsed, poc=poc),
    )
    datasets.require_conversations(night)
    return night


@task(task_run_name="plan", cache_policy=NO_CACHE)
def plan_night(suite: Path, target: str, *, poc: bool, resume: str | None) -> NightRecord:
    """Plan a new night and write the plan down, or read that of the night to resume."""
    settings = Settings()
    store.require_space(settings.data, settings.min_free_gib)
    if resume is not None:
        night = store.read_night(settings.data, resume)
        require_bucket(night.suite.model)
        store.end_file(settings.data, resume).unlink(missing_ok=True)
        return night
    night = make_night(suite, target, poc=poc)
    require_bucket(night.suite.model)
    store.write_json(store.night_file(settings.data, night.night), night)
    return night


@task(task_run_name="plan", cache_policy=NO_CACHE)
def plan_preparation(suite: Path, target: str) -> NightRecord:
    """What a suite's nights will need on their machine; nothing of it is measured, so no night is written down."""
    night = make_night(suite, target, poc=True)
    return night.model_copy(update={"night": f"prepare-{night.night}"})


def missing_runs(night: NightRecord) -> list[PlannedRun]:
    """The runs of a night that have no run folder yet, in their order."""
    data = Settings().data
    return [run for run in night.runs if not store.run_folder(data, night.night, run).exists()]
