"""Measure one run into a run folder: counters, load, counters. A failed run is a record with its stage and reason."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.engines.by_name import sample
from bench.engines.used_gpus import names_of, used_gpus
from bench.errors import LoadDriverError, NightbenchError
from bench.host import HostFacts
from bench.plan import prompt_seed
from bench.quality.passage import VERSION
from bench.record import (
    Accuracy,
    Calibration,
    FailedStart,
    LeaseFacts,
    Lineage,
    LoadRun,
    NightRecord,
    PlannedRun,
    RunRecord,
)
from bench.server_facts import ServerFacts, Weights
from bench.suite.command import Command, NodePlace, node_places
from infra.engines import server, server_facts
from infra.engines.engine_at import EngineAt
from infra.engines.metrics_scraper import FILE, TIMEOUT_S, Scraper, write_scrapes
from infra.engines.server import RunningServer
from infra.hardware.own_processes import OwnProcesses
from infra.hardware.telemetry import Sampler, write_samples
from infra.loadgen import datasets, driver, offline
from infra.loadgen.command import HERE, job_of, run_command
from infra.loadgen.nodes import Node, stop_file
from infra.measurement.answers import adapters_like_base, ask
from infra.measurement.ending import Ending, ending_of, failed_by
from infra.measurement.notes import Notes, Stopwatch, held_cap, host_notes
from infra.measurement.sizing import sized
from infra.models.models import PreparedModel
from infra.reporting import Progress
from infra.storage import store

Started = RunningServer | EngineAt | NightbenchError  # of runs that need no server it is the engine


@dataclass(frozen=True)
class RunContext:
    """Values that all runs on one machine share; its paths are the machine's."""

    data: Path
    night: NightRecord
    machine: Path
    host: HostFacts
    model: PreparedModel | None  # None: a server that is not ours has it
    calibration: Calibration
    lease: LeaseFacts
    lineage: Lineage
    failed_starts: tuple[FailedStart, ...] = ()  # of the night's servers, until now
    address: str = HERE  # under which the nodes of a command reach this machine
    nodes: tuple[Node, ...] = ()  # the other machines of a command that runs on several

    @property
    def weights(self) -> Weights | None:
        """The model as found on the machine; None where a server that is not ours has it."""
        if self.model is None:
            return None
        origin = self.model.fetched.origin if self.model.fetched else None
        return Weights(revision=self.model.revision, sha256=self.model.sha256, bytes=self.model.bytes, origin=origin)

    def places(self, command: Command) -> tuple[NodePlace, ...]:
        """The place of this machine and of each of its `nodes` in a command."""
        return node_places(command, (self.address, *(node.address for node in self.nodes)))


def measure(
    context: RunContext,
    run: PlannedRun,
    running: Started,
    progress: Progress,
    *,
    is_last: bool,
) -> RunRecord:
    """Measure one run on this server and return its record, which is then on disk under its final name.

    `running` is the server, or the error with which it did not start; of an offline run it is the engine.
    Any exception becomes a record with outcome `failed`, with its raw files beside it. After its last run, a server
    answers the fixed questions again.
    """
    partial = store.start_run(context.data, context.night.night, run)
    started_at = datetime.now(UTC)
    notes = Notes(Stopwatch(), {}, progress)
    ended = ending_of(lambda: _measure_on(context, run, running, partial, notes))
    asked = ending_of(lambda: _ask_again(run, running, notes, is_last=is_last))
    if ended["outcome"] == "measured":
        ended = asked
    try:
        record = _record(context, run, started_at, notes, ended)
    except ValidationError as error:  # what was found is of no type that a record has
        notes.found.clear()
        record = _record(context, run, started_at, notes, failed_by(error))
    store.finish_run(partial, record)
    return record


def _record(context: RunContext, run: PlannedRun, started_at: datetime, notes: Notes, ended: Ending) -> RunRecord:
    fields: dict[str, Any] = {**ended, **notes.found}
    return RunRecord(
        night=context.night.night,
        suite=context.night.suite.name,
        scenario_id=run.scenario.scenario_id,
        server_id=run.scenario.server_id,
        repeat=run.repeat,
        order=run.order,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        asked=run.scenario,
        quality=context.night.suite.quality,
        series_identity=context.night.suite.series_identity,
        slo=context.night.suite.slo_of(run.scenario.name),
        host=context.host,
        weights=context.weights,
        lease=context.lease,
        calibration=context.calibration,
        lineage=context.lineage,
        failed_starts=tuple(one for one in context.failed_starts if one.server_id == run.scenario.server_id),
        forced=context.night.forced,
        stage_s=notes.watch.stage_s,
        **fields,
    )


def _measure_on(context: RunContext, run: PlannedRun, running: Started, partial: Path, notes: Notes) -> None:
    if isinstance(running, NightbenchError):
        raise running
    with held_cap(context.machine, run.scenario.power_cap_w, notes):
        if isinstance(running, EngineAt) and run.scenario.workload.command is not None:
            _measure_command(context, run, running, partial, notes)
        elif isinstance(running, EngineAt):
            _measure_offline(context, run, running, partial, notes)
        else:
            _measure(context, datasets.with_local_paths(run, context.data), running, partial, notes)


def _ask_again(run: PlannedRun, running: Started, notes: Notes, *, is_last: bool) -> None:
    """Note the server's answers before its first load and, with its last run, after its last load.

    The load's counters are read before, so these questions are not in them. A failed last load does not prevent the
    questions, since their answers count for the earlier runs on this server.
    """
    if isinstance(running, RunningServer) and running.answers is not None:
        with notes.watch.stage("quality"):
            again = is_last and server.is_serving(running)
            after = ask(running, run.scenario.model.name) if again else None
            notes.found["accuracy"] = Accuracy(passage=VERSION, before=running.answers, after=after)


def _measure(context: RunContext, run: PlannedRun, running: RunningServer, partial: Path, notes: Notes) -> None:
    log_start = server.log_size(running)
    seed = prompt_seed(context.night, run)
    with notes.watch.stage("look"):
        facts = notes.found["server"] = server_facts.look(running)
        if run.scenario.workload.adapters:
            named = run.scenario.model.name, run.scenario.workload.adapters
            notes.found["adapters_like_base"] = adapters_like_base(running, *named)
    with notes.watch.stage("probe"):
        job = sized(
            load_job(context, run, running, partial, seed), running, partial.parent, context.night.suite.quality
        )
    argv = driver.driver_argv(job, running)
    load = LoadRun(
        driver=run.scenario.workload.driver,
        driver_version=driver.driver_version(run.scenario, facts.engine_version, argv),
        argv=argv,
        seed=seed,
        exit_code=None,
        request_count=None if run.scenario.workload.load_s is None else job.scenario.workload.request_count,
    )
    notes.found["load"] = load
    _keep_metrics(running, partial / "metrics-before.txt")
    busy_before = os.getloadavg()[0]
    sampler = _sampler(context, running, facts)
    scraper = Scraper(lambda: server.scrape(running, TIMEOUT_S), lambda text: sample(running.engine.module, text))
    try:
        with notes.watch.stage("load"), sampler, scraper if has_metrics(running) else nullcontext():
            code = driver.drive(argv, job, running, notes.progress)
        notes.found["load"] = load.model_copy(update={"exit_code": code})
        _keep_metrics(running, partial / "metrics-after.txt")
    finally:
        with notes.watch.stage("keep"):
            write_samples(sampler.samples, partial / "telemetry.parquet")
            if scraper.scrapes:
                write_scrapes(scraper.scrapes, partial / FILE)
            store.compress_log(running.log, partial / "server.log.gz", log_start)
        notes.found.update(host_notes(sampler, busy_before, context.host.gpus))
    driver.read_driver_report(run.scenario, partial / "load")


def has_metrics(running: RunningServer) -> bool:
    """Whether the server has a page of counters; one that is not ours may have none."""
    return running.attached is None or running.attached.has_metrics


def _keep_metrics(running: RunningServer, path: Path) -> None:
    if has_metrics(running):
        path.write_text(server.metrics(running))


def _sampler(context: RunContext, running: RunningServer, facts: ServerFacts) -> Sampler:
    """What samples the host, and the engine's processes and GPUs where they are on it."""
    ours = {one for one in (running.pid, running.engine_session) if one is not None}
    own = OwnProcesses({os.getpid()}, ours, context.lease.lease_id)
    if running.attached is not None:
        return Sampler(own, None, frozenset(), is_elsewhere=True)
    is_unseen = running.container is not None and running.session is None  # docker's client is not the engine
    used = used_gpus(running.engine.name, facts.argv, facts.environment, context.host, facts.prefill_argv)
    gpus = None if used is None else names_of(used, context.host)
    return Sampler(own, None if is_unseen else running.engine_session, gpus)


def _measure_offline(context: RunContext, run: PlannedRun, engine: EngineAt, partial: Path, notes: Notes) -> None:
    """Run batches that need no server of ours: there is nothing to ask, so only the machine is observed."""
    scenario, seed = run.scenario, prompt_seed(context.night, run)
    if context.model is None:
        raise LoadDriverError(f"the driver {scenario.workload.driver} loads the model itself, and this target has none")
    job = offline.OfflineJob(
        scenario=scenario,
        engine=engine,
        model=context.model.path,
        seed=seed,
        run_timeout_s=context.night.suite.run_timeout_s,
        machine=context.machine,
        lease_id=context.lease.lease_id,
        run_folder=partial,
    )
    command = offline.command_of(job)
    load = LoadRun(driver=scenario.workload.driver, driver_version=None, argv=command.argv, seed=seed, exit_code=None)
    notes.found["load"] = load
    used = used_gpus(scenario.engine.name, command.argv, scenario.engine.environment, context.host)
    with _observed(context, used, partial, notes):
        code = offline.run_offline(job, command, notes.progress)
        notes.found["load"] = load.model_copy(update={"exit_code": code, "driver_version": offline.version_of(job)})
    offline.read_offline_report(job)


def _measure_command(context: RunContext, run: PlannedRun, engine: EngineAt, partial: Path, notes: Notes) -> None:
    """Run a command, which has no server and no requests of ours; only the machine is observed."""
    seed, lease_id = prompt_seed(context.night, run), context.lease.lease_id
    job = job_of(run.scenario, engine, context.machine, lease_id, partial)
    job = replace(job, place=context.places(job.command)[0], stop_file=stop_file(context.machine, run))
    load = LoadRun(driver=run.scenario.workload.driver, driver_version=None, argv=job.argv, seed=seed, exit_code=None)
    notes.found["load"] = load
    with _observed(context, None, job.run_folder, notes):
        run_command(job, notes.progress)
    notes.found["load"] = load.model_copy(update={"exit_code": 0})


@contextmanager
def _observed(context: RunContext, used: Sequence[int] | None, partial: Path, notes: Notes) -> Iterator[None]:
    """Sample the machine, and these of its GPUs, during a load that has no server; None: all of them."""
    busy_before = os.getloadavg()[0]
    own = OwnProcesses({os.getpid()}, (), context.lease.lease_id)
    sampler = Sampler(own, None, None if used is None else names_of(used, context.host))
    try:
        with notes.watch.stage("load"), sampler:
            yield
    finally:
        with notes.watch.stage("keep"):
            write_samples(sampler.samples, partial / "telemetry.parquet")
        notes.found.update(host_notes(sampler, busy_before, context.host.gpus))


def load_job(context: RunContext, run: PlannedRun, running: RunningServer, partial: Path, seed: int) -> driver.LoadJob:
    """The load of a run on this server; its files go into `partial`."""
    target = driver.load_target(running, run.scenario, context.model)
    if run.scenario.workload.shares_prefixes and has_metrics(running):
        block = running.engine.module.cache_block_tokens(server.metrics(running))
        target = replace(target, cache_block_tokens=block)
    return driver.LoadJob(
        scenario=run.scenario,
        target=target,
        seed=seed,
        request_timeout_s=context.night.suite.request_timeout_s,
        run_timeout_s=context.night.suite.run_timeout_s,
        machine=context.machine,
        lease_id=context.lease.lease_id,
        run_folder=partial,
        given=datasets.read_inputs(context.night, run),
    )
