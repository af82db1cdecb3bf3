"""Which runs of a night are left, by its plan and by what is there: what a resume and the next step of a night run.

A run that ran out of memory is followed by the same run on the next rung of the ladder, and a probe of a search by the
next one. Nothing else is remembered, so a night that was killed anywhere goes on from here.
"""

from collections.abc import Sequence
from typing import Protocol

from bench.engines.ladder import climbs, fallback_run
from bench.machine_nights import machine_of, named
from bench.record import NightRecord, PlannedRun
from bench.search.probe import Probe
from bench.search.search import SearchResult, next_probe, result_of
from bench.suite.slo import Slo


class Results(Protocol):
    """The results of a night that are there, by scenario id and repeat."""

    def has(self, run: PlannedRun) -> bool:
        """Whether a run has a result, be it a failure."""
        ...

    def failure(self, run: PlannedRun) -> str | None:
        """The class of a run's failure; None where it was measured, has no result, or its record cannot be read."""
        ...

    def probe(self, run: PlannedRun, slo: Slo | None) -> Probe:
        """What a run shows as a probe of a search; of one that failed or cannot be read, every request failed."""
        ...


def missing_runs(night: NightRecord, results: Results) -> list[PlannedRun]:
    """The runs of a night that have no result yet, in their order.

    For a run that ran out of memory they include the same run on the next rung of the ladder, if there is one; for the
    first probe of a search, the probe that follows from those that are there.
    """
    missing: list[PlannedRun] = []
    runs = list(night.runs)
    while runs:
        done = [run for run in runs if results.has(run)]
        missing += [run for run in runs if run not in done]
        missing += [probe for run in done for probe in [_walk(night, results, run)[1]] if probe is not None]
        fallbacks = [_next_rung(night, results, run) for run in done if _ran_out_of_memory(results, run)]
        runs = [run for run in fallbacks if run is not None]
    return list({(run.scenario.scenario_id, run.repeat): run for run in missing}.values())


def is_done(night: NightRecord, results: Results, run: PlannedRun) -> bool:
    """Whether a planned run was run and, if it begins a search, the search is at its end."""
    return results.has(run) and _walk(night, results, run)[1] is None


def still_missing(
    night: NightRecord, results: Results, run: PlannedRun, waiting: Sequence[PlannedRun]
) -> list[PlannedRun]:
    """The runs that wait after `run` was measured: first the next probe of its search, if it is of one."""
    entry = night.suite.search_of(run.scenario.name)
    update = {} if entry is None else {"name": entry.name, "workload": entry.workload()}
    first = run.model_copy(update={"scenario": run.scenario.model_copy(update=update)})
    probe = _walk(night, results, first)[1]
    runs = waiting if probe is None else [probe, *waiting]
    return [one for one in runs if not results.has(one)]


def search_results(night: NightRecord, results: Results) -> list[SearchResult]:
    """What each search of a night shows until now, each repeat of it by itself, in the order of the suite."""
    found = []
    for entry in (one for one in night.suite.scenarios if one.search is not None):
        for run in sorted((one for one in night.runs if one.scenario.name == entry.name), key=lambda one: one.repeat):
            began = run
            while _ran_out_of_memory(results, began) and (smaller := _next_rung(night, results, began)) is not None:
                began = smaller
            probes, _next = _walk(night, results, began)
            found.append(result_of(entry, night.suite.slo_of(entry.name), run.repeat, probes))
    return found


def _walk(night: NightRecord, results: Results, first: PlannedRun) -> tuple[list[Probe], PlannedRun | None]:
    """The probes of a search that begins with this run, as far as they are there, and the one that is missing next."""
    entry = night.suite.search_of(first.scenario.name)
    if entry is None:
        return [], None
    slo, probes, run = night.suite.slo_of(entry.name), list[Probe](), first
    while results.has(run):
        probes.append(results.probe(run, slo))
        following = next_probe(entry, slo, first.scenario, probes)
        if following is None:
            return probes, None
        run = first.model_copy(update={"scenario": following, "order": first.order + len(probes) * len(night.runs)})
    return probes, run


def _next_rung(night: NightRecord, results: Results, run: PlannedRun) -> PlannedRun | None:
    """The run on the next rung: as measured beside this one, else on the kind of machine that the night has now."""
    smaller = fallback_run(night, run)
    if smaller is None or results.has(smaller):
        return smaller
    return smaller.model_copy(update={"scenario": smaller.scenario.on(named(night.suite, machine_of(run)).kind)})


def _ran_out_of_memory(results: Results, run: PlannedRun) -> bool:
    """Whether the failure of a run may be cured by a smaller configuration."""
    return climbs(run.scenario.engine.name, results.failure(run))
