"""Run the meter and vLLM's own clients with one load: against the truth server, and on an engine if requested."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.client_error.crosscheck import (
    METER,
    ClientRun,
    Values,
    driven_by,
    minus,
    said_by,
    truth_scenario,
    written_in,
)
from bench.client_error.truth import read_truth
from bench.engines.vllm import REQUEST_BODY
from bench.errors import LoadDriverError
from bench.loadgen.drivers.meter import meter_plan
from bench.loadgen.drivers.target import LoadTarget
from bench.loadgen.drivers.vllm_bench import vllm_bench_argv
from bench.loadgen.drivers.vllm_rs import vllm_rs_bench_argv
from bench.loadgen.report import LoadReport
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from bench.suite.workload import Driver, Workload
from infra.engines.engine_at import EngineAt
from infra.engines.launch import ServerRequest
from infra.engines.server import bring_up, stop
from infra.hardware.cpu_affinity import run_on, split_cores
from infra.loadgen.calibration import FEWEST, WAVES, write_meter
from infra.loadgen.driver import OFFLINE, driver_version, load_target, read_driver_report
from infra.loadgen.truth.run import build_server, truth_server
from infra.loadgen.vllm_rs import find_vllm_rs
from infra.models.models import PreparedModel, prepare_model
from infra.reporting import Say

TIMEOUT_S = 120.0
PATIENCE_S = 900.0  # for one client's run
SEED = 20_261_121


@dataclass(frozen=True)
class CrosscheckSetup:
    """What the clients run with: the engine with vLLM's client, the cache, and a working folder."""

    engine: EngineAt
    cache: Path
    work: Path
    say: Say


@dataclass(frozen=True)
class Schedule:
    """The truth server's schedule: its time to first token, and the gap between two tokens."""

    ttft_ms: float
    itl_ms: float


@contextmanager
def ground(engine: EngineAt, cache: Path, say: Say) -> Iterator[CrosscheckSetup]:
    """A setup with a temporary folder, which is deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="nightbench-crosscheck-") as name:
        yield CrosscheckSetup(engine, cache, Path(name), say)


def drivers(engine: EngineAt) -> tuple[Driver, ...]:
    """The clients that are installed, the meter first; the Rust client only if it is found."""
    try:
        find_vllm_rs(engine)
    except LoadDriverError:
        return ("meter", "vllm-bench")
    return ("meter", "vllm-bench", "vllm-rs-bench")


def check_streams(here: CrosscheckSetup, streams: int, schedule: Schedule) -> list[ClientRun]:
    """The run of each client with so many streams, and its bias."""
    workload = Workload(
        isl=64, osl=100, concurrency=streams, request_count=max(WAVES * streams, FEWEST), warmup_count=streams
    )
    return check_truth(here, truth_scenario(workload), schedule)


def check_truth(here: CrosscheckSetup, scenario: Scenario, schedule: Schedule) -> list[ClientRun]:
    """The run of each client against the truth server, and its bias in that run."""
    model = prepare_model(scenario.model.source, here.work / "models", here.say)
    return [_on_truth(here, driven_by(scenario, driver), schedule, model) for driver in drivers(here.engine)]


def check_engine(here: CrosscheckSetup, suite: Suite, scenario: Scenario, models: Path) -> list[ClientRun]:
    """Each client's run on the suite's engine; its bias is that of a run with these times against the truth server."""
    driven_by(scenario, "vllm-bench")  # raises for an unsuitable scenario before a server is started
    reports = _on_engine(here, suite, scenario, prepare_model(scenario.model.source, models, here.say))
    seen = said_by(reports[METER])
    schedule = Schedule(seen["ttft_p50"] or 1.0, seen["itl_event_p50"] or 1.0)
    calibrated = check_truth(here, truth_scenario(scenario.workload), schedule)
    return [_side(side.client, side.version, reports[side.client], side.bias) for side in calibrated]


def _side(client: str, version: str | None, report: LoadReport, bias: Values) -> ClientRun:
    is_ok = report.requests.is_ok
    return ClientRun(client, version, said_by(report), bias, requests=len(is_ok), failed=int((~is_ok).sum()))


def _on_truth(here: CrosscheckSetup, scenario: Scenario, schedule: Schedule, model: PreparedModel) -> ClientRun:
    driver = scenario.workload.driver
    here.say(f"{driver} against the truth server")
    on_server, on_client = split_cores(workers=1)
    options = ("--ttft-us", str(round(schedule.ttft_ms * 1e3)), "--itl-us", str(max(round(schedule.itl_ms * 1e3), 1)))
    log = here.work / f"{driver}-truth.log"
    with truth_server(build_server(here.cache), log, options, on_server) as port:
        target = LoadTarget(f"http://127.0.0.1:{port}", scenario.model.name, model.path, model.vocab_size, REQUEST_BODY)
        report, version = _run(here, scenario, target, on_client)
    truth = written_in(read_truth(log.read_bytes()), len(report.requests))
    return _side(driver, version, report, minus(said_by(report), truth))


def _on_engine(here: CrosscheckSetup, suite: Suite, scenario: Scenario, model: PreparedModel) -> dict[str, LoadReport]:
    what = ServerRequest(
        engine=here.engine,
        scenario=scenario,
        model=model.path,
        machine=here.work,
        log=here.work / "server.log",
        lease_id=f"crosscheck-{os.getpid()}",
        port=0,
        ready_timeout_s=suite.ready_timeout_s,
    )
    server = bring_up(what, here.say)
    try:
        target = load_target(server, scenario, model)
        reports = {}
        for driver in drivers(here.engine):
            here.say(f"{driver} on {scenario.engine.name} {scenario.engine.version}")
            reports[str(driver)], _version = _run(here, driven_by(scenario, driver), target, frozenset())
        return reports
    finally:
        stop(server)


def _run(
    here: CrosscheckSetup, scenario: Scenario, target: LoadTarget, cores: frozenset[int]
) -> tuple[LoadReport, str | None]:
    """Run a scenario's driver to its end; LoadDriverError with its stderr if it fails."""
    with tempfile.TemporaryDirectory(dir=here.work) as name:
        argv = _argv(here.engine, scenario, target, Path(name))
        _wait_for(argv, scenario.workload.driver, cores)
        report = read_driver_report(scenario, Path(name) / "load")
        return report, driver_version(scenario, here.engine.build, argv)


def _argv(engine: EngineAt, scenario: Scenario, target: LoadTarget, work: Path) -> tuple[str, ...]:
    load = work / "load"
    result, driver = load / "result.json", scenario.workload.driver
    if driver == "vllm-bench":
        load.mkdir()
        return vllm_bench_argv(engine.executable, scenario, target, SEED, result)
    if driver == "vllm-rs-bench":
        load.mkdir()
        return vllm_rs_bench_argv(find_vllm_rs(engine), scenario, target, SEED, result)
    return write_meter(meter_plan(scenario, target, SEED, TIMEOUT_S), work)


def _wait_for(argv: Sequence[str], driver: str, cores: frozenset[int]) -> None:
    try:
        code, err = run_on(argv, cores, PATIENCE_S, OFFLINE)
    except subprocess.TimeoutExpired as error:
        raise LoadDriverError(f"{driver} did not finish within {PATIENCE_S:g} s") from error
    if code != 0:
        raise LoadDriverError(f"{driver} failed with exit code {code}: {err[-1500:]}")
