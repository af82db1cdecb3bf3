"""Trace a scenario with the profiler of its engine, after every measurement of its machine."""

from prefect import get_run_logger

from bench.errors import NightbenchError, unexpected
from bench.record import NightRecord, PlannedRun
from infra.agent import operations
from infra.bootstrap import executor_for
from infra.engines.engine_at import EngineAt
from infra.measurement.run import RunContext
from infra.reporting import Reporter
from infra.settings import Settings
from infra.storage import store
from tasks.measuring import engine_of
from tasks.task import night_task


@night_task("profile {run.scenario.name}")
def profile(settings: Settings, context: RunContext, run: PlannedRun, engine: EngineAt) -> None:
    """Trace this run's scenario; what prevents a trace is logged, and ends neither the night nor a measurement."""
    log = get_run_logger()
    try:
        engine = engine_of(settings, context, run, engine)
        record = executor_for(settings, context).run(operations.profile, Reporter(log.info), context, run, engine)
    except Exception as error:  # noqa: BLE001 - docs/adr/0047: what was measured stands
        ours = error if isinstance(error, NightbenchError) else unexpected(error)
        log.error("%s was not traced: %s\n%s", run.scenario.name, ours, ours.trace or "")  # noqa: TRY400 - the trace is in the message
        return
    folder = store.profile_folder(settings.data, context.night.night, run.scenario.scenario_id)
    if record.traces:
        log.info("%s is traced: %s/%s", run.scenario.name, folder, record.traces[0])
    if record.reason is not None:
        log.warning("%s: %s", run.scenario.name, record.reason)


def runs_to_profile(settings: Settings, night: NightRecord) -> list[PlannedRun]:
    """The first run of each scenario that the suite wants traced, that was measured and is not traced yet."""
    asked, folders = night.suite.profile, store.RunFolders(settings.data, night.night)
    if asked is None:
        return []
    first = {run.scenario.scenario_id: run for run in reversed(night.runs) if asked.has(run.scenario.name)}
    return [
        run
        for run in sorted(first.values(), key=lambda run: run.order)
        if folders.is_measured(run)
        and not store.profile_folder(settings.data, night.night, run.scenario.scenario_id).exists()
    ]
