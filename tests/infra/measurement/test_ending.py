"""Whatever ends a run, its record says what; only what stops the process is raised."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.record import Calibration, LeaseFacts, Lineage, NightRecord, PlannedRun, RunRecord
from bench.suite.engine import Engine
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.scenario import Scenario
from bench.suite.suite import ScenarioEntry, Suite
from bench.suite.workload import Workload
from infra.engines.engine_at import EngineAt
from infra.engines.server import RunningServer
from infra.hardware.host_facts import read_host
from infra.measurement.ending import ending_of
from infra.measurement.run import RunContext, measure

SCENARIO = Scenario(
    name="one",
    machine=Machine(),
    model=Model(name="small", source="generated:small?seed=0"),
    engine=Engine(version="0.32.0", max_model_len=4096),
    workload=Workload(isl=8, osl=8, concurrency=1, request_count=1),
)


@pytest.fixture
def context(tmp_path: Path) -> RunContext:
    entry = ScenarioEntry(name="one", **SCENARIO.workload.model_dump())
    suite = Suite(name="s", model=SCENARIO.model, engine=SCENARIO.engine, scenarios=(entry,))
    night = NightRecord(
        night="20261124-000000-abcd",
        target="local",
        started_at=datetime(2026, 11, 24, tzinfo=UTC),
        suite=suite,
        suite_sha256="0" * 64,
        seed=0,
        runs=(),
    )
    return RunContext(
        data=tmp_path / "data",
        night=night,
        machine=tmp_path,
        host=read_host(),
        model=None,
        calibration=Calibration(reason="none"),
        lease=LeaseFacts(lease_id="lease", cloud="test", machine_id="m", usd_per_hour=0.0),
        lineage=Lineage(nightbench_version="0", git_commit=None, suite_sha256="0" * 64),
    )


def run_on_nothing(context: RunContext, engine: str = "vllm") -> tuple[RunRecord, Path]:
    """A run on a server that does not exist; its record, and its folder."""
    log = context.machine / "server.log"
    log.touch()
    running = RunningServer(None, 1, None, log, (), {}, EngineAt(Path("none"), None, name=engine), None)
    record = measure(
        context, PlannedRun(order=0, repeat=0, scenario=SCENARIO), running, lambda _share: None, is_last=True
    )
    return record, context.data / "runs" / context.night.night / SCENARIO.scenario_id / "0"


def test_an_exception_that_nothing_expects_is_a_failed_run_with_its_traceback(context: RunContext) -> None:
    record, folder = run_on_nothing(context, engine="an engine of nobody")

    assert (record.outcome, record.stage) == ("failed", "measure")
    assert "unexpected KeyError: 'an engine of nobody'" in (record.reason or "")
    assert "server_facts.py" in (record.traceback or "")
    assert RunRecord.model_validate_json((folder / "record.json").read_bytes()).traceback == record.traceback


def test_what_was_found_and_no_record_can_hold_is_a_failed_run(
    context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.measurement.run.server_facts.look", lambda _running: "\ud800")

    record, folder = run_on_nothing(context)

    assert (record.outcome, record.server) == ("failed", None)
    assert "ValidationError" in (record.traceback or "")
    assert (folder / "record.json").exists()


def test_a_known_failure_has_no_traceback(context: RunContext) -> None:
    record, _folder = run_on_nothing(context)

    assert (record.outcome, record.stage, record.traceback) == ("failed", "server", None)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_stops_the_process_goes_through(stop: type[BaseException]) -> None:
    def work() -> None:
        raise stop

    with pytest.raises(stop):
        ending_of(work)
