"""Prints plans: runs, expected time and cost, and warnings."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from bench.plan import cells
from bench.suite.endpoint import is_endpoint
from bench.suite.pins import moving_references
from flows.show.console import line, print_json, table, warn
from flows.show.points import in_short, is_long, point_rows, show_merged

if TYPE_CHECKING:
    from bench.cost.estimate import Estimate
    from bench.cost.forecast import Forecast
    from bench.record import NightRecord
    from bench.repeats import PlannedRepeats
    from infra.leases.nets import Net


def show_plan(
    night: "NightRecord", expected: "Forecast", nets: Sequence["Net"], *, as_json: bool, full: bool = False
) -> None:
    """Print a plan: the runs in order, the cost of each stage, the nets under the machine, and what is doubtful.

    Of many scenarios one line for a hundred is printed, and with `full` each of them.
    """
    rows = [asdict(cell) for cell in cells(night.runs)]
    if as_json:
        unpinned = moving_references(night.suite)
        whole = {"suite": night.suite.name, "target": night.target, "runs": rows, "to_be_set": unpinned}
        whole |= {"merged": night.suite.merged, "applied": night.applied}
        whole["repeats"] = [one.model_dump(mode="json") for one in night.repeats]
        print_json(whole | _forecast_json(expected) | {"nets": [asdict(net) for net in nets]})
        return
    short = is_long(night) and not full
    starts = len(list(groupby(run.scenario.server_id for run in night.runs)))
    title = f"{night.suite.name} on {night.target}: {len(rows)} runs"
    table(point_rows(night) if short else rows, title if starts == 1 else f"{title}, {starts} server starts")
    if night.target == "local" and night.suite.local is not None:
        line("scaled to this computer by the suite's [local] table: its numbers say nothing of the suite's own machine")
    for change in night.applied:
        line(f"changed by --apply-rules: {change}")
    show_merged(night, full=full)
    show_repeats(night.repeats)
    _show_expected(night, expected, nets, short=short)
    for doubt in expected.doubts:
        warn(doubt)


def _show_expected(night: "NightRecord", expected: "Forecast", nets: Sequence["Net"], *, short: bool) -> None:
    """Print the expected time and cost, in the form of the night's target, and what releases a machine."""
    if is_endpoint(night.target):
        _on_endpoint(night, expected, short=short)
        return
    if expected.needs:
        _on_own_host(night, expected, short=short)
    elif expected.price.usd_per_hour == 0:
        line(f"lease of {night.suite.machine.lease_minutes} minutes, at most 0.00 USD")
    else:
        _forecast(night, expected, short=short)
    if night.target != "local":
        show_nets(nets)


def show_nets(nets: Sequence["Net"]) -> None:
    """Print what releases the machine, whatever dies, and what each of these cannot catch."""
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


def _forecast(night: "NightRecord", expected: "Forecast", *, short: bool) -> None:
    price = expected.price.usd_per_hour
    stages = _stage_rows(expected.cold, price)
    table(list(in_short(stages)) if short else stages, "expected stages on a new machine")
    line(f"total: {_sum_of(expected.cold)}")
    line(f"total with a golden image: {_sum_of(expected.warm)}")
    if expected.prepare is not None:
        once = f"{expected.prepare.billed_s / 60:.0f} minutes, {expected.prepare.usd:.2f} USD"
        line(f"golden image: {once} to build, then {expected.snapshot_usd_per_month:.2f} USD per month")
    if expected.volume_usd_per_month is not None:
        size_gib = night.suite.model.cache_volume_gib
        line(f"model volume: {size_gib} GiB, {expected.volume_usd_per_month:.2f} USD per month until it expires")
    if night.suite.model.cache_bucket_minutes is not None:
        line(_bucket(night.suite.model.cache_bucket_minutes, expected))
    _memory(expected)
    hourly = "unknown" if price is None else f"{price:.2f} USD/h, from {expected.price.source}"
    most = "" if expected.usd_max is None else f", at most {expected.usd_max:.2f} USD"
    line(f"price: {hourly}; lease of {night.suite.machine.lease_minutes} minutes{most}")


def _on_endpoint(night: "NightRecord", expected: "Forecast", *, short: bool) -> None:
    rows = _stage_rows(expected.cold, 0.0)
    stages = list(in_short(rows)) if short else rows
    shown = [{name: row[name] for name in ("stage", "scenario", "times", "minutes", "basis")} for row in stages]
    table(shown, "expected stages on a server that already runs")
    line(f"total: {_minutes_of(expected.cold)}")
    line(f"nothing is rented, started or stopped; {night.target} is asked nothing before the night")


def _on_own_host(night: "NightRecord", expected: "Forecast", *, short: bool) -> None:
    rows = _stage_rows(expected.cold, 0.0)
    stages = list(in_short(rows)) if short else rows
    shown = [{name: row[name] for name in ("stage", "scenario", "times", "minutes", "basis")} for row in stages]
    table(shown, "expected stages of the first night on this host")
    line(f"total: {_minutes_of(expected.cold)}")
    line(f"total of a later night, with engine and model installed: {_minutes_of(expected.warm)}")
    _memory(expected)
    title = f"requirements on {night.target}; not checked now, checked when the night starts"
    table([asdict(need) for need in expected.needs], title)
    line(f"price: 0.00 USD, your own host; reserved for at most {night.suite.machine.lease_minutes} minutes")


def _memory(expected: "Forecast") -> None:
    if expected.fit is not None:
        line(f"memory: {expected.fit.needed_gib:.0f} of the {expected.fit.room_gib:.0f} GiB that the engine may use")


def _minutes_of(found: "Estimate") -> str:
    at_most = "" if found.is_known else "at most "
    return f"{at_most}{found.billed_s / 60:.0f} minutes, {found.measuring_share:.0%} of them measuring"


def _bucket(minutes: int, expected: "Forecast") -> str:
    """The cost of caching the model in a bucket, as far as it is known."""
    month, fill = expected.bucket_usd_per_month, expected.fill_usd_max
    storage = "no price known" if month is None else f"{month:.2f} USD per month"
    cost = "" if fill is None else f" and {fill:.2f} USD"
    return f"model in the bucket: {storage}; filling it adds at most {minutes} minutes{cost} to a night"


def _sum_of(found: "Estimate") -> str:
    at_most = "" if found.is_known else "at most "
    minutes = f"{at_most}{found.billed_s / 60:.0f} billed minutes"
    return f"{minutes}, {found.usd:.2f} USD, {found.measuring_share:.0%} of them measuring"


def _stage_rows(found: "Estimate", usd_per_hour: float | None) -> list[dict[str, Any]]:
    return [
        {
            "stage": stage.name,
            "scenario": stage.scenario,
            "times": stage.runs,
            "minutes": round(stage.seconds / 60, 2),
            "billed_minutes": round(stage.billed_s / 60, 2),
            "usd": None if usd_per_hour is None else round(stage.usd(usd_per_hour), 3),
            "basis": stage.basis if stage.is_known else f"unknown: {stage.basis}",
        }
        for stage in found.stages
    ]


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
        "doubts": expected.doubts,
        "needs": [asdict(need) for need in expected.needs],
        "estimates": {
            name: {
                "billed_minutes": round(found.billed_s / 60, 2),
                "usd": None if price.usd_per_hour is None else round(found.usd, 3),
                "measuring_share": round(found.measuring_share, 4),
                "is_known": found.is_known,
                "stages": _stage_rows(found, price.usd_per_hour),
            }
            for name, found in nights.items()
            if found is not None
        },
    }
