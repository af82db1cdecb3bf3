"""A/A nights: one suite measured twice in a row, of which nothing differs. What differs all the same is noise."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger

from flows.defaults import DEFAULT, choose
from flows.deployed import is_deployed, require_listed, why_skipped
from flows.end_state import as_state, ended, is_good, skipped
from flows.ending import end_prefects_thread_at_exit
from flows.form import SuiteName, TargetName
from flows.lost_server import run_to_its_end
from flows.night_hooks import load_cancelled, release_after_error, release_all, release_leftovers
from flows.night_request import NightRequest
from flows.nightly import whole_night
from infra.settings import Settings
from tasks.artifacts import show_table
from tasks.crashed_night import log_what_is_left
from warehouse.load import LoadSummary
from warehouse.trends.compare import Comparison, compare


@flow(
    name="weekly-aa",
    flow_run_name="A/A nights of {suite} on {target}",
    retries=0,
    on_cancellation=[release_leftovers, load_cancelled],
    on_crashed=[release_leftovers, log_what_is_left],
    on_failure=[release_after_error],
)
def weekly_aa(suite: SuiteName = DEFAULT, target: TargetName = DEFAULT) -> LoadSummary:
    """Measure a suite twice in a row and compare the two nights.

    Nothing differs between them, so their differences are the noise floor of the series: a smaller change cannot be
    seen on this machine.

    Args:
        suite: Suite file that defines what to measure; default: that of the nightly deployment
        target: Where to measure; default: where the default suite runs, and for another suite local

    """
    settings = Settings()
    late = why_skipped(settings)
    if late is not None:
        return skipped(late)
    asked = NightRequest(*choose(settings, suite, target), wait=True)
    if is_deployed():
        end_prefects_thread_at_exit()
        require_listed(settings, Path(asked.suite), asked.target, None)
    release = partial(release_all, settings)
    both = partial(as_state, partial(measure_twice, settings, asked), release)
    return run_to_its_end(settings.data, both, release)


def measure_twice(settings: Settings, asked: NightRequest) -> LoadSummary:
    """Run both nights, show their differences, and end as the second did; a bad first night has no second."""
    first = whole_night(settings, asked)
    if not is_good(first):
        return ended(settings.data, first)
    second = whole_night(settings, asked)
    show(compare(settings.data.absolute(), first.night, second.night))
    return ended(settings.data, second)


def show(found: Comparison) -> None:
    """Publish the difference of each metric of each series, and log the largest of each metric."""
    shown = ("series", "metric", "a", "b", "effect_pct", "ci_lo", "ci_hi")
    rows = [{name: pair[name] for name in shown} for pair in found.answer()["pairs"]]
    show_table("a-a", rows, f"{found.other} against {found.one}, which differ in nothing: {found.summary}")
    for metric, pct in noise_floor(rows).items():
        get_run_logger().info("%s: two equal nights differ by up to %.2f %%", metric, pct)


def noise_floor(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The largest difference of each metric between two equal nights, in percent, over all series."""
    metrics = dict.fromkeys(row["metric"] for row in rows)
    return {name: max(abs(row["effect_pct"]) for row in rows if row["metric"] == name) for name in metrics}
