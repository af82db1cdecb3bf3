"""Load a night into the warehouse, judged, say what its series did, and write its report."""

from datetime import UTC, datetime
from pathlib import Path

from prefect import get_run_logger

from bench.errors import NightbenchError, UsageError
from bench.search.search import NightSearches
from infra.loadgen.suite_file import parse_suite_file
from infra.settings import Settings
from infra.storage import store
from tasks.site_notices import site_notices
from tasks.task import night_task
from warehouse.lake.gap_retention import drop_old_gaps
from warehouse.lake.repeat_history import read_precision
from warehouse.load import LoadSummary, load_judgement, load_night
from warehouse.report.page import write_report
from warehouse.site.write import write_site
from warehouse.suite_report.files import write_suite_report
from warehouse.trends.judge import judge_night, suspect_scenarios
from warehouse.trends.kept import JUDGEMENT, read_kept
from warehouse.trends.of_night import summary_of


@night_task("load {night}", retries=1, retry_delay_s=5)
def load(settings: Settings, night: str) -> LoadSummary:
    """Judge and load one night; loading it again changes nothing and repairs a load that crashed."""
    record_searches(settings.data.absolute(), night)
    summary = load_night(settings.data.absolute(), night)
    if settings.keep_gaps_days is not None:
        for old in drop_old_gaps(settings.data.absolute(), settings.keep_gaps_days, night):
            get_run_logger().info("dropped the gaps of %s from the lake: its run folders and histograms keep them", old)
    for warning in summary.warnings:
        get_run_logger().warning("%s", warning)
    get_run_logger().info("loaded %d measurements: %s", summary.measurements, summary.verdicts)
    return summary


def record_searches(data: Path, night: str) -> None:
    """Write what the sweeps and searches of a night found into its folder, and say it; nothing where it has none."""
    found = store.search_results(data, store.read_night(data, night))
    if found:
        store.write_json(store.searches_file(data, night), NightSearches(searches=tuple(found)))
    for one in found:
        get_run_logger().info("%s", one)


@night_task("judge {night}")
def judge(settings: Settings, night: str, rerun_of: str | None = None) -> list[str]:
    """Judge each series of a loaded night and store the judgement; returns the ids of the suspect scenarios."""
    data = settings.data.absolute()
    file = store.night_folder(data, night) / JUDGEMENT
    earlier = read_kept(file) if file.exists() else None
    said = judge_night(data, night, datetime.now(UTC), rerun_of).with_earlier(earlier)
    store.write_json(file, said)
    load_judgement(data, night)
    if said.verdicts:
        get_run_logger().info("%s", summary_of([one.model_dump() for one in said.verdicts]))
    for change in said.changes:
        get_run_logger().info("%s", change)
    return suspect_scenarios(data, said)


@night_task("report {night}")
def report(settings: Settings, night: str) -> Path:
    """Write the report page of a night, and what its repeats reached where the plan chose how many."""
    data = settings.data.absolute()
    page = write_report(data, night)
    planned = store.read_night(data, night)
    if planned.repeats:
        precision = read_precision(data, planned)
        store.write_json(store.repeats_file(data, night), precision)
        for one in precision.reached:
            get_run_logger().info("%s", one)
    get_run_logger().info("report: %s", page)
    return page


@night_task("report {night} by its suite")
def report_suite(settings: Settings, night: str, suite: Path) -> None:
    """Write the tables that this suite file declares for its night; where they cannot be filled, log why."""
    try:
        page = write_suite_report(settings.data.absolute(), parse_suite_file(suite)[0], night)
    except UsageError as error:
        get_run_logger().warning("the tables of %s are not written: %s", suite, error)
        return
    if page is not None:
        get_run_logger().info("report of the suite: %s", page)


@night_task("site")
def site(settings: Settings) -> None:
    """Write the static site again, as it is served; where it cannot be written, log why."""
    data = settings.data.absolute()
    try:
        written = write_site(data, data / "site", notices=site_notices(data, get_run_logger().warning))
    except NightbenchError as error:
        get_run_logger().warning("the site is not written: %s", error)
        return
    get_run_logger().info("site: %s", written.index)
