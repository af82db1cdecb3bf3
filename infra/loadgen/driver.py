"""Run a load driver against a running server: start it detached, watch both, and read its report."""

import json
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from bench.errors import LoadDriverError
from bench.loadgen.drivers.by_name import read_report, report_files
from bench.loadgen.drivers.meter import meter_argv, meter_plan
from bench.loadgen.drivers.target import NOTHING_GIVEN, LoadTarget, RunInputs
from bench.loadgen.drivers.vllm_bench import vllm_bench_argv
from bench.loadgen.drivers.vllm_rs import vllm_rs_bench_argv
from bench.loadgen.report import LoadReport
from bench.night_progress import LoadProgress
from bench.suite.scenario import Scenario
from infra.clock import SystemClock, poll
from infra.engines.server import RunningServer, died, is_alive, log_size
from infra.loadgen.vllm_rs import find_vllm_rs, vllm_rs_version
from infra.models.models import PreparedModel
from infra.processes import detached
from infra.processes.environment import child_environment
from infra.reporting import Progress
from meter import METER_VERSION
from meter.bundle import bundle

POLL_S = 0.2
# A client whose server exited needs this long to notice and to write its report.
DRIVER_PATIENCE_S = 10.0
LOG_TAIL_CHARS = 1500
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True)
class LoadJob:
    """One load: its scenario, its server, the machine's folder and the run folder for its files."""

    scenario: Scenario
    target: LoadTarget
    seed: int
    request_timeout_s: float
    run_timeout_s: float
    machine: Path
    lease_id: str
    run_folder: Path
    given: RunInputs = NOTHING_GIVEN


def load_target(server: RunningServer, scenario: Scenario, model: PreparedModel | None) -> LoadTarget:
    """The server as a target of its scenario's load; `model` is None where a server that is not ours has it."""
    if server.attached is not None or model is None:
        return _attached_target(server, scenario)
    body = server.engine.module.REQUEST_BODY
    name, folder, vocabulary = scenario.model.name, model.path, model.vocab_size
    return LoadTarget(server.base_url, name, folder, vocabulary, body, keeps_connections=server.keeps_connections)


def _attached_target(server: RunningServer, scenario: Scenario) -> LoadTarget:
    if server.attached is None:
        raise LoadDriverError(f"the weights of {scenario.model.name} are not on this machine")
    origin, known = server.attached.origin, server.attached.facts.known
    target = LoadTarget(origin.url, scenario.model.name, Path(), known.vocab_size, server.attached.body)
    keeps = server.keeps_connections
    target = replace(target, hosts=server.attached.hosts)
    return replace(target, keeps_connections=keeps, ca_file=origin.ca_file, api_key_env=origin.api_key_env)


def _of_endpoint(server: RunningServer) -> dict[str, str]:
    """What the load driver's environment has for a server that is not ours: its API key, and the CAs to trust."""
    if server.attached is None:
        return {}
    names = (server.attached.origin.api_key_env, "SSL_CERT_FILE", "SSL_CERT_DIR")
    return {name: os.environ[name] for name in names if name is not None and name in os.environ}


def driver_argv(job: LoadJob, server: RunningServer) -> tuple[str, ...]:
    """The driver's command line; the meter's plan and single file are written first."""
    load = job.run_folder / "load"
    engine, driver = server.engine.executable, job.scenario.workload.driver
    if driver != "meter" and server.container is not None:
        raise LoadDriverError(
            f"the driver {driver} needs an engine in a virtual environment, not in a container: use the meter"
        )
    if driver != "meter":
        build, client = (
            (vllm_bench_argv, engine) if driver == "vllm-bench" else (vllm_rs_bench_argv, find_vllm_rs(server.engine))
        )
        return build(client, job.scenario, job.target, job.seed, load.resolve() / "result.json")
    plan = job.run_folder / "load-plan.json"
    content = meter_plan(job.scenario, job.target, job.seed, job.request_timeout_s, job.given)
    plan.write_text(json.dumps(content, indent=1))
    meter = job.machine / "meter.pyz"
    bundle(meter)
    return meter_argv(Path(sys.executable), meter, plan, load)


def driver_version(scenario: Scenario, engine_version: str | None, argv: tuple[str, ...]) -> str | None:
    """The version of a scenario's load driver; `vllm bench` has the engine's version, and `vllm-rs` reports its own."""
    match scenario.workload.driver:
        case "meter":
            return METER_VERSION
        case "vllm-bench":
            return engine_version
        case _:
            return vllm_rs_version(Path(argv[0]))


def drive(argv: tuple[str, ...], job: LoadJob, server: RunningServer, progress: Progress) -> int:
    """Run the driver to its end and return its exit code; `progress` is called about once a second.

    Raises ServerDiedError if the server exits meanwhile, and LoadDriverError if the driver fails or takes longer than
    `run_timeout_s`; the driver is ended first, and its files stay in the run folder.
    """
    pid_file = job.machine / "driver.pid"
    log = job.run_folder / "driver.log"
    server_log_start = log_size(server)
    environment = child_environment({**OFFLINE, **_of_endpoint(server), detached.MARK: job.lease_id})
    session = detached.start_detached(argv, environment, pid_file, log, keep_exit_code=True)
    try:
        code = _watch(job, server, pid_file, progress)
    finally:
        detached.end_session(session, DRIVER_PATIENCE_S)
        pid_file.unlink(missing_ok=True)
    if not is_alive(server):
        raise died("the server exited under load", server, server_log_start)
    if code is None:
        raise LoadDriverError(f"the load did not finish within {job.run_timeout_s:g} s (suite: run_timeout_s)")
    if code != 0:
        raise LoadDriverError(f"the load driver failed with exit code {code}: {_tail(log)}")
    return code


def _watch(job: LoadJob, server: RunningServer, pid_file: Path, progress: Progress) -> int | None:
    next_progress, first_s = 0.0, None

    def has_ended() -> bool:
        nonlocal next_progress, first_s
        now = time.monotonic()
        if now >= next_progress:
            next_progress = now + 1.0
            counts = _counts(job.run_folder)
            first_s = first_s or (now if counts else None)
            work = job.scenario.workload
            osl = 0 if work.is_embedding else work.osl
            progress(_progress_of(counts, now - (first_s or now), osl))
        return detached.exit_code(pid_file) is not None or not is_alive(server)

    clock = SystemClock()
    if not poll(clock, POLL_S, has_ended, job.run_timeout_s):
        return None
    # If the server exited first, the driver notices soon.
    return poll(clock, POLL_S, lambda: detached.exit_code(pid_file), DRIVER_PATIENCE_S)


def _counts(run_folder: Path) -> tuple[int, int] | None:
    """The requests that have ended and all that are planned; None until the driver writes them."""
    try:
        progress = json.loads((run_folder / "load" / "progress.json").read_bytes())
    except (OSError, ValueError):
        return None
    return progress["done"], progress["planned"]


def _progress_of(counts: tuple[int, int] | None, elapsed_s: float, osl: int) -> LoadProgress:
    """The rate counts the requests that have ended, each with the output length of the suite; embeddings have none."""
    if counts is None or not counts[1]:
        return LoadProgress(0.0)
    done, planned = counts
    rate = done * osl / elapsed_s if done and elapsed_s and osl else None
    return LoadProgress(min(1.0, done / planned), done, planned, rate)


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-LOG_TAIL_CHARS:].strip() or "its log is empty"


def _refused_form(scenario: Scenario, error: str) -> str | None:
    """The sentence for an engine that refuses the form of every answer; None for other failures."""
    form = scenario.workload.answers
    # vLLM refuses a grammar when it compiles it: inside an answer that has begun, with status 200.
    if form is None or not (error.startswith("HTTP 400") or "BadRequestError" in error):
        return None
    return (
        f"the engine refused every request with answers.{form.kind}: {error}; correct it in the suite, or start the "
        "engine with what it needs for it"
    )


def read_driver_report(scenario: Scenario, load: Path) -> LoadReport:
    """Read the report of the scenario's driver; LoadDriverError if a file is missing or no request succeeded."""
    try:
        report = read_report(scenario, [(load / name).read_bytes() for name in report_files(scenario)])
    except FileNotFoundError as error:
        raise LoadDriverError(f"the load driver did not write {error.filename}") from error
    if not report.requests.is_ok.any():
        classes = ", ".join(sorted(set(report.requests.outcome))) or "none was sent"
        first = next((error for error in report.requests.error if error), None)
        refused = _refused_form(scenario, first or "")
        raise LoadDriverError(refused or f"no request succeeded ({classes}){': ' + first if first else ''}")
    return report
