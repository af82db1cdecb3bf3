"""Trace an engine with its own profiler, on a server that is started for it, after all measurements.

Files of a trace: runs/<night>/profile-<scenario_id>/0/   record.json, the engine's trace files, server.log.gz
"""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.engines.profile_record import ProfileRecord
from bench.engines.profiler import START, STOP, profiler_of
from bench.errors import LoadDriverError, NightbenchError
from bench.plan import prompt_seed
from bench.record import PlannedRun
from catalog.read import read_profilers
from infra.engines import server
from infra.engines.engine_at import EngineAt
from infra.engines.launch import ServerRequest
from infra.engines.server import RunningServer
from infra.hardware.power_cap import hold_cap
from infra.loadgen import datasets, driver
from infra.measurement.kept_traces import keep_traces
from infra.measurement.run import RunContext, load_job
from infra.reporting import Say, no_progress
from infra.storage import store

PATIENCE_S = 600.0  # the engine writes its trace within the call that ends it; vLLM's docs say up to 10 minutes
WARM_UP, TRACED = 101, 102  # added to the seed of the prompts, so that no prompt of a measurement is sent again


@dataclass(frozen=True)
class _Job:
    """A run with the few requests of its trace, and where its files go."""

    context: RunContext
    run: PlannedRun
    engine: EngineAt
    port: int
    partial: Path
    say: Say


def profile(context: RunContext, run: PlannedRun, engine: EngineAt, port: int, say: Say) -> ProfileRecord:
    """Trace a few requests of a run's load and return the record, which is then on disk; without a trace, a reason.

    No server of it is left. Nothing of a measurement is touched.
    """
    scenario, asked = run.scenario, context.night.suite.profile
    count = 0 if asked is None else asked.requests
    partial = store.start_folder(store.profile_folder(context.data, context.night.night, scenario.scenario_id))
    started_at = datetime.now(UTC)
    traces, reason = _trace(_Job(context, _with_count(run, count), engine, port, partial, say))
    record = ProfileRecord(
        night=context.night.night,
        scenario_id=scenario.scenario_id,
        scenario=scenario,
        requests=count,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        traces=traces,
        reason=reason,
    )
    store.finish_run(partial, record)
    return record


def _with_count(run: PlannedRun, count: int) -> PlannedRun:
    few = run.scenario.workload.model_copy(update={"request_count": count, "warmup_count": 0, "load_s": None})
    return run.model_copy(update={"scenario": run.scenario.model_copy(update={"workload": few})})


def _trace(job: _Job) -> tuple[tuple[str, ...], str | None]:
    """The names of the trace's files, now in the job's folder, and why something is missing."""
    engine, why = job.run.scenario.engine, None
    if job.context.model is None:
        return (), "a server that already runs is not ours to start with its profiler"
    if job.run.scenario.workload.is_offline:
        return (), f"the driver {job.run.scenario.workload.driver} has no server that could write a trace"
    profiler = profiler_of(engine, read_profilers())
    if profiler is None:
        return (), f"no profiler of {engine.name} {engine.version} is known (catalog/profilers.csv)"
    with TemporaryDirectory(prefix="trace-", dir=job.context.machine, ignore_cleanup_errors=True) as folder:
        changed = job.run.scenario.model_copy(update={"engine": profiler.applied(engine, folder)})
        run = job.run.model_copy(update={"scenario": changed})
        try:
            _load(replace(job, run=run), Path(folder), job.context.model.path)
        except (NightbenchError, OSError) as error:
            why = f"the trace failed: {error}"
        traces, missing = keep_traces(Path(folder), job.partial)
    return traces, why or missing


def _load(job: _Job, folder: Path, model: Path) -> None:
    """Send the few requests twice: first without the profiler, since the first requests of a server are slow."""
    with _serve(job, folder, model) as running:
        _send(job, running, WARM_UP)
        _post(running, START)
        _send(job, running, TRACED)
        _post(running, STOP)


@contextmanager
def _serve(job: _Job, folder: Path, model: Path) -> Iterator[RunningServer]:
    log = job.partial / "server.log"
    request = ServerRequest(
        engine=job.engine,
        scenario=job.run.scenario,
        model=model,
        machine=job.context.machine,
        log=log,
        lease_id=job.context.lease.lease_id,
        port=job.port,
        ready_timeout_s=job.context.night.suite.ready_timeout_s,
        written=folder,
    )
    try:
        hold_cap(job.context.machine, job.run.scenario.power_cap_w, job.say)
        running = server.bring_up(request, job.say)
        try:
            yield running
        finally:
            server.stop(running)
    finally:
        if log.exists():
            store.compress_log(log, job.partial / "server.log.gz", 0)
            log.unlink()


def _send(job: _Job, running: RunningServer, step: int) -> None:
    context, run = job.context, datasets.with_local_paths(job.run, job.context.data)
    with TemporaryDirectory(prefix="profile-", dir=context.machine) as name:
        (Path(name) / "load").mkdir()
        load = load_job(context, run, running, Path(name), prompt_seed(context.night, run) + step)
        driver.drive(driver.driver_argv(load, running), load, running, no_progress)
        driver.read_driver_report(run.scenario, load.run_folder / "load")


def _post(running: RunningServer, path: str) -> None:
    status, text = server.ask(running, "POST", path, timeout_s=PATIENCE_S)
    if status != http.client.OK:
        raise LoadDriverError(f"POST {path} failed with HTTP status {status}: {text[:200]}")
