"""From a confirmed change to the engine that made it: a bisect after the night, within the budget of its suite.

Its answer becomes a note of the event: in the feed, on the pages, and in the message that was sent of the night.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
from prefect import get_run_logger

from bench.errors import EngineBuildError, NightbenchError, ServerStartError
from bench.record import NightRecord
from bench.trends.bisect import Bisection, Step, candidates_between
from bench.trends.difference import Sample, difference_of
from bench.trends.judgement import Acknowledgement, SaidChange
from bench.trends.series import STACK_FIELDS
from bench.wording import counted
from flows.bisect import is_image, measure_by, require_releases_of, run_search
from flows.night_request import NightRequest
from flows.notifying import notify_of_cause
from infra.engines.releases import locked_releases, release_order
from infra.leases.lease_reports import night_usd
from infra.settings import Settings
from infra.storage import store
from tasks.artifacts import show_table
from tasks.cause_traces import traces_in_words, with_trace
from tasks.loading import report, site
from tasks.night_notice import BISECT, confirmed_of
from tasks.planning import hold_machine, plan_night
from warehouse.lake.query import ask
from warehouse.trends.acknowledge import acknowledge
from warehouse.trends.own_series import own_series

OF_ENGINE = frozenset({"image", "engine_version", "engine_commit"})
RunNight = Callable[[NightRecord, Path], object]
_SIDES = """
SELECT any_value(scenario), coalesce(any_value(image), regexp_replace(any_value(engine_version_found), '[+].*', '')),
    any_value(coalesce(image_commit, engine_build))
FROM measurements WHERE outcome = 'measured' AND (night, scenario_id) IN (
    SELECT (night, scenario_id) FROM series_nights WHERE series = $1 AND metric = $2 AND night = $3
)
"""
_IMAGES = """
SELECT image FROM measurements WHERE image IS NOT NULL AND is_control IS NOT TRUE
GROUP BY image ORDER BY min(started_at)
"""
_NOTED = "SELECT DISTINCT event_id FROM acknowledgements WHERE acknowledged_by = ?"


@dataclass(frozen=True)
class Side:
    """The last night before a change, or the first one after it."""

    scenario: str
    engine: str | None  # a version or an image
    commit: str | None


Sides = tuple[Side, Side]
ENDS = 2


def search_causes(settings: Settings, asked: NightRequest, night: str, run_night: RunNight) -> None:
    """Search the engine behind each event that a night confirmed, the largest change of each; an error ends no night.

    Nothing is searched without `[bisect]` in the suite, or on a server that already runs.
    """
    data = settings.data.absolute()
    planned = store.read_night(data, night)
    if planned.suite.bisect is None or planned.where.url is not None:
        return
    noted = {row[0] for row in ask(data, _NOTED, (BISECT,)).rows}
    for change in _largest_of_each_event(confirmed_of(data, night)):
        if change.event_id not in noted:
            _search_cause(settings, asked, planned, change, run_night)


def _search_cause(
    settings: Settings, asked: NightRequest, night: NightRecord, change: SaidChange, run_night: RunNight
) -> None:
    data, log = settings.data.absolute(), get_run_logger()
    sides = _side(data, change, change.last_good), _side(data, change, change.first_bad)
    names = _candidates(data, sides)
    why = _why_none(data, night, change, names)
    if why is not None:
        log.info("event %s: no engine is searched for: %s", change.event_id, why)
        return
    suite = Path(asked.suite).absolute()
    search = Bisection(
        metric=change.metric, suite=str(suite), target=night.target, candidates=names, scenario=sides[0].scenario
    )
    try:
        require_releases_of(names, suite, night.target, settings)
        answer = _answer(settings, night, search, sides, run_night)
    except NightbenchError as error:
        answer = f"the search for its engine was given up: {error}"
    log.warning("event %s: %s", change.event_id, answer)
    _keep(settings, asked, night, change, answer)


def _largest_of_each_event(changes: Sequence[SaidChange]) -> Iterator[SaidChange]:
    ordered = sorted(changes, key=lambda change: abs(change.effect_pct))
    yield from {change.event_id: change for change in ordered}.values()


def _why_none(data: Path, night: NightRecord, change: SaidChange, names: Sequence[str]) -> str | None:
    """Why nights of these engines, from the last good to the first bad one, are not run; None: they are."""
    if not names:
        return "the engine of one of the two nights is not known"
    if len(names) == 1:
        return f"both nights ran {names[0]}"
    if len(names) == ENDS and not _differs_otherwise(data, change):
        return f"{names[1]} is the next one after {names[0]}, and nothing else differs"
    usd = night_usd(data, night.night)
    if usd > _budget(night):
        return f"a night costs {usd:.2f} USD, and [bisect] usd is {_budget(night):.2f}"
    return None


def _budget(night: NightRecord) -> float:
    return 0.0 if night.suite.bisect is None else night.suite.bisect.usd


def _answer(settings: Settings, night: NightRecord, search: Bisection, sides: Sides, run_night: RunNight) -> str:
    """What the nights of a search say, in a sentence; each is published in a table, too."""
    data = settings.data.absolute()
    run = partial(_run_candidate, settings, night.target, sides[0].scenario, run_night)
    search, step = run_search(data, search, measure_by(data, search, run), partial(night_usd, data), _budget(night))
    usd = sum(night_usd(data, one.night) for one in search.measured)
    answer = "\n".join((_in_words(search, step, sides, usd), *traces_in_words(data, search, step)))
    show_table(
        "cause", [{"engine": one.candidate, "night": one.night, "value": one.value} for one in search.measured], answer
    )
    return answer


def _side(data: Path, change: SaidChange, night: str) -> Side:
    scenario, engine, commit = ask(data, _SIDES, (change.series, change.metric, night)).rows[0]
    return Side(scenario, engine, commit)


def _candidates(data: Path, sides: Sides) -> tuple[str, ...]:
    """The engines from the good to the bad one; none where one of these is not known.

    Between them are the images that were measured, or the releases that have a lock.
    """
    ends = [side.engine for side in sides if side.engine]
    if len(ends) < ENDS:
        return ()
    if all(map(is_image, ends)):
        repositories = {end.partition("@")[0] for end in ends}
        measured = [row[0] for row in ask(data, _IMAGES).rows]
        listed = [image for image in measured if image in ends or image.partition("@")[0] in repositories]
    elif any(map(is_image, ends)):
        listed = ends
    else:
        listed = sorted({*locked_releases(), *ends}, key=release_order)
    return candidates_between(listed, *ends)


def _differs_otherwise(data: Path, change: SaidChange) -> bool:
    """Whether something else than the engine differs between the two nights of a change."""
    (series,) = own_series(data, chosen=[(change.series, change.metric)])
    stacks = {point.night: point.stack for point in series.points}
    one, other = stacks[change.last_good], stacks[change.first_bad]
    return any(one.get(name) != other.get(name) for name in STACK_FIELDS if name not in OF_ENGINE)


def _run_candidate(
    settings: Settings,
    target: str,
    scenario: str,
    run_night: RunNight,
    _candidate: str,
    suite: Path,
    begun: str | None,
) -> str:
    """Run or resume the night of one engine and return its name, also where that engine does not start."""
    with hold_machine(settings, target, begun, wait=True) as name_night:
        night = plan_night(suite, target, poc=False, resume=begun)
        if begun is None:
            runs = tuple(run for run in night.runs if run.scenario.name == scenario)
            night = with_trace(night.model_copy(update={"runs": runs}))
            store.write_json(store.night_file(settings.data, night.night), night)
        name_night(night)
        try:
            run_night(night, suite)
        except (EngineBuildError, ServerStartError) as error:
            get_run_logger().warning("night %s measured nothing: %s", night.night, error)
    return night.night


def _in_words(search: Bisection, step: Step, sides: Sides, usd: float) -> str:
    """The answer of a search: the engine, the interval of the change, the commits, and what the search took."""
    parts = [step.reason]
    one, other = search.values(step.good), search.values(step.bad)
    if one and other:
        found = difference_of(Sample(one), Sample(other), is_same_series=True)
        parts.append(f"{search.metric} {_pct(found.shift)}{_interval(found.shift, found.margin)}")
    commits = [side.commit for side in sides if side.engine in {step.good, step.bad} and side.commit]
    if len(set(commits)) == len(sides):
        parts.append(f"commits {'..'.join(commits)}")
    return "; ".join([*parts, f"{counted(len(search.measured), 'night')}, {usd:.2f} USD"])


def _pct(shift: float) -> str:
    return f"{100 * float(np.expm1(shift)):+.1f} %"


def _interval(shift: float, margin: float | None) -> str:
    return "" if margin is None else f" [{_pct(shift - margin)}, {_pct(shift + margin)}]"


def _keep(settings: Settings, asked: NightRequest, night: NightRecord, change: SaidChange, answer: str) -> None:
    """Note the answer on the event, rewrite the pages that show it, and send the night's message with it."""
    now = datetime.now(UTC)
    said = Acknowledgement(event_id=change.event_id, acknowledged_at=now, acknowledged_by=BISECT, note=answer)
    acknowledge(settings.data.absolute(), said)
    report(night.night)
    if settings.pages_url is not None:
        site()
    what = f"{Path(asked.suite)} on {asked.target}"
    notify_of_cause(settings, what, night, change.event_id, get_run_logger().warning)
