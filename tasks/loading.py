"""Load a night into the warehouse, judged, and write its report."""

from pathlib import Path

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from bench.errors import NightbenchError
from bench.record import NightEnd
from infra.settings import Settings
from infra.storage import store
from warehouse.load import LoadSummary, load_night
from warehouse.report.page import write_report


def keep_end(night: str, error: BaseException) -> None:
    """Write down why a night ended early: the reason of every run that it did not come to."""
    said = str(error) if isinstance(error, NightbenchError) else f"{type(error).__name__}: {error}"
    end = NightEnd(stage=error.stage if isinstance(error, NightbenchError) else None, reason=said)
    store.write_json(store.end_file(Settings().data, night), end)


@task(task_run_name="load {night}", cache_policy=NO_CACHE, persist_result=False, retries=1, retry_delay_seconds=5)
def load(night: str) -> LoadSummary:
    """Judge and load one night; loading it again changes nothing, so a crashed load is repaired by loading again."""
    summary = load_night(Settings().data.absolute(), night)
    for warning in summary.warnings:
        get_run_logger().warning("%s", warning)
    get_run_logger().info("loaded %d measurements: %s", summary.measurements, summary.verdicts)
    return summary


@task(task_run_name="report {night}", cache_policy=NO_CACHE, persist_result=False)
def report(night: str) -> Path:
    """Write the night's page."""
    page = write_report(Settings().data.absolute(), night)
    get_run_logger().info("report: %s", page)
    return page
