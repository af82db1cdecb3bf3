"""Prints plans: runs, expected time and cost, and warnings."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bench.plan import cells
from bench.suite.pins import moving_references
from flows.show.console import line, print_json, table, warn
from flows.show.points import is_long, point_rows, search_rows, show_merged, show_searches
from flows.show.stages import memory_rows, server_starts, show_machines, stage_rows

if TYPE_CHECKING:
    from bench.cost.forecast import Forecast
    from bench.cost.night_forecast import NightForecast
    from bench.record import NightRecord
    from bench.repeats import PlannedRepeats
    from infra.leases.nets import Net


def show_plan(
    night: "NightRecord", expected: "NightForecast", nets: Sequence["Net"], *, as_json: bool, full: bool = False
) -> None:
    """Print a plan: the runs in order, the cost of each stage, the nets under the machines, and what is doubtful.

    Of many scenarios one line for a hundred is printed, and with `full` each of them.
    """
    rows = [asdict(cell) for cell in cells(night.runs)]
    if as_json:
        unpinned = moving_references(night.suite)
        whole = {"suite": night.suite.name, "target": night.target, "runs": rows, "to_be_set": unpinned}
        whole |= {"merged": night.suite.merged, "applied": night.applied, "searches": search_rows(night)}
        whole["repeats"] = [one.model_dump(mode="json") for one in night.repeats]
        print_json(whole | _night_json(expected) | {"doubts": expected.doubts, "nets": [asdict(net) for net in nets]})
        return
    short = is_long(night) and not full
    starts = server_starts(night)
    title = f"{night.suite.name} on {night.target}: {len(rows)} runs"
    table(point_rows(night) if short else rows, title if starts == 1 else f"{title}, {starts} server starts")
    if night.where.is_scaled and night.suite.local is not None:
        line("scaled to this computer by the suite's [local] table: its numbers say nothing of the suite's own machine")
    for said in (*client_hosts(night), *_cores(night), *_added_repeats(night)):
        line(said)
    for change in night.applied:
        line(f"changed by --apply-rules: {change}")
    show_merged(night, full=full)
    show_searches(night)
    show_repeats(night.repeats)
    show_machines(expected, short=short)
    if not night.where.is_here:
        show_nets(nets)
    for doubt in expected.doubts:
        warn(doubt)


def client_hosts(night: "NightRecord") -> Iterator[str]:
    """Which hosts send the load, where it is not this computer."""
    hosts = night.suite.client.hosts
    if hosts:
        yield f"the load comes from {len(hosts)} client hosts, each with a share of every run: {', '.join(hosts)}"


def _cores(night: "NightRecord") -> Iterator[str]:
    """On how many cores of this computer vLLM computes, where the suite says so."""
    engines = [run.scenario.engine for run in night.runs if night.where.is_here and run.scenario.engine.name == "vllm"]
    cores = len(os.sched_getaffinity(0))
    for threads in dict.fromkeys(engine.environment.get("OMP_NUM_THREADS") for engine in engines):
        if threads is not None:
            yield (
                f"vLLM computes on {threads} of the {cores} cores of this computer (OMP_NUM_THREADS in "
                "engine.environment): its front end and the load client need another one"
            )


def _added_repeats(night: "NightRecord") -> Iterator[str]:
    """How long a night adds repeats that are in no plan."""
    asked = night.suite.quality
    if asked.half_width_max is not None:
        yield (
            f"repeats are added to a scenario until they give its mean within ±{asked.half_width_max:.0%}, and while "
            f"all of them take less than {asked.scenario_s:g} s"
            + ("" if asked.runs_s is None else f", and all runs of the night less than {asked.runs_s:g} s")
        )


def show_nets(nets: Sequence["Net"]) -> None:
    """Print what releases the machine after any failure, and what each of these does not cover."""
    rows = [{"net": net.net, "stands": net.stands, "cannot catch": net.misses} for net in nets]
    table(rows, "nets under this night: what releases the machine")


def show_repeats(planned: Sequence["PlannedRepeats"]) -> None:
    """Print how many repeats were chosen and why; scenarios with the same choice and reason share a line."""
    alike: dict[str, list[str]] = {}
    for one in planned:
        alike.setdefault(f"{one.repeats} repeats: {one.reason}{_expected(one)}", []).append(one.scenario)
    for choice, names in alike.items():
        line(f"{names[0] if len(names) == 1 else f'{len(names)} scenarios'}: {choice}")


def _expected(planned: "PlannedRepeats") -> str:
    expected = [
        f"{one.metric} ±{one.half_width_expected:.2%}"
        for one in planned.precisions
        if one.half_width_expected is not None
    ]
    return f"; expected half-widths of 95 % intervals: {', '.join(expected)}" if expected else ""


def _night_json(expected: "NightForecast") -> dict[str, Any]:
    """The forecast of one machine at the top; of several, each in a list, and their sums."""
    if len(expected.machines) == 1:
        return _forecast_json(expected.machines[0].forecast)
    machines = [
        {"machine": one.name, "kind": one.night.suite.machine.kind, "runs": len(one.night.runs)}
        | _forecast_json(one.forecast)
        for one in expected.machines
    ]
    return {"machines": machines, "billed_minutes": round(expected.minutes, 2), "usd": expected.usd}


def _forecast_json(expected: "Forecast") -> dict[str, Any]:
    price = expected.price
    nights = {"cold": expected.cold, "warm": expected.warm, "prepare": expected.prepare}
    return {
        "usd_per_hour": price.usd_per_hour,
        "price_said_by": price.source,
        "usd_max": expected.usd_max,
        "snapshot_usd_per_month": expected.snapshot_usd_per_month,
        "volume_usd_per_month": expected.volume_usd_per_month,
        "bucket_usd_per_month": expected.bucket_usd_per_month,
        "fill_usd_max": expected.fill_usd_max,
        "fit": expected.fit and asdict(expected.fit) | {"fits": expected.fit.fits},
        "fits": memory_rows(expected),
        "doubts": expected.doubts,
        "needs": [asdict(need) for need in expected.needs],
        "estimates": {
            name: {
                "billed_minutes": round(found.billed_s / 60, 2),
                "usd": None if price.usd_per_hour is None else round(found.usd, 3),
                "measuring_share": round(found.measuring_share, 4),
                "is_known": found.is_known,
                "stages": stage_rows(found, price.usd_per_hour),
            }
            for name, found in nights.items()
            if found is not None
        },
    }
