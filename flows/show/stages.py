"""Prints what one machine of a night takes and costs, stage by stage, and the memory that its models need."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bench.plan import model_loads
from flows.show.console import line, table
from flows.show.points import in_short

if TYPE_CHECKING:
    from bench.cost.estimate import Estimate
    from bench.cost.forecast import Forecast
    from bench.cost.night_forecast import MachineForecast, NightForecast
    from bench.record import NightRecord


def _show_machine(night: "NightRecord", expected: "Forecast", *, short: bool) -> None:
    """Print the expected time and cost of a night of one machine, and its memory."""
    if night.where.url is not None:
        _on_endpoint(night, expected, short=short)
    elif expected.needs:
        _on_own_host(night, expected, short=short)
    elif expected.price.usd_per_hour == 0:
        line(f"lease of {night.suite.machine.lease_minutes} minutes, at most 0.00 USD")
    else:
        _rented(night, expected, short=short)


def show_machines(expected: "NightForecast", *, short: bool) -> None:
    """Print the time and cost of each machine and, of several, of all, and whether each model fits each machine."""
    for one in expected.machines:
        if len(expected.machines) > 1:
            line(f"machine {one.name} ({one.night.suite.machine.kind}):")
        _show_machine(one.night, one.forecast, short=short)
    if len(expected.machines) > 1:
        _show_sums(expected)


def _show_sums(expected: "NightForecast") -> None:
    rows = [_machine_row(one) for one in expected.machines]
    order = "in parallel" if expected.is_parallel else "one after another"
    table(rows, f"{len(rows)} machines, {order}")
    memory = [{"machine": one.name} | row for one in expected.machines for row in memory_rows(one.forecast)]
    if memory:
        table(memory, "memory that each model needs, of what the engine may use")
    usd = "unknown" if expected.usd is None else f"{expected.usd:.2f}"
    line(f"total of {len(rows)} machines: {expected.minutes:.0f} billed minutes, {usd} USD")


def _machine_row(one: "MachineForecast") -> dict[str, Any]:
    price, cold = one.forecast.price.usd_per_hour, one.forecast.cold
    return {
        "machine": one.name,
        "kind": one.night.suite.machine.kind,
        "runs": len(one.night.runs),
        "server_starts": server_starts(one.night),
        "minutes": round(cold.billed_s / 60, 2),
        "measuring": f"{cold.measuring_share:.0%}",
        "usd_per_hour": price,
        "usd": None if price is None else round(cold.usd, 2),
    }


def server_starts(night: "NightRecord") -> int:
    """How many servers are started one after another, or runs without a server load the model."""
    return len(model_loads(night.runs))


def _rented(night: "NightRecord", expected: "Forecast", *, short: bool) -> None:
    price = expected.price.usd_per_hour
    stages = stage_rows(expected.cold, price)
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
    rows = stage_rows(expected.cold, 0.0)
    stages = list(in_short(rows)) if short else rows
    shown = [{name: row[name] for name in ("stage", "scenario", "times", "minutes", "basis")} for row in stages]
    table(shown, "expected stages on a server that already runs")
    line(f"total: {_minutes_of(expected.cold)}")
    line(f"nothing is rented, started or stopped; {night.target} is not contacted before the night")


def _on_own_host(night: "NightRecord", expected: "Forecast", *, short: bool) -> None:
    rows = stage_rows(expected.cold, 0.0)
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
    if len(expected.fits) > 1:
        table(memory_rows(expected), "memory that each model needs, of what the engine may use")
    elif expected.fit is not None:
        line(f"memory: {expected.fit.needed_gib:.0f} of the {expected.fit.room_gib:.0f} GiB that the engine may use")


def memory_rows(expected: "Forecast") -> list[dict[str, Any]]:
    """Whether each model fits, as rows."""
    return [
        {"model": name, "needed_gib": round(fit.needed_gib), "room_gib": round(fit.room_gib), "fits": fit.fits}
        for name, fit in expected.fits.items()
    ]


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


def stage_rows(found: "Estimate", usd_per_hour: float | None) -> list[dict[str, Any]]:
    """A row for each stage; of a scenario, what all its runs take."""
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
