"""Prints leases, their stages and costs, and what the reaper did."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bench.cost.lease_cost import by_stage
from flows.show.console import error, line, print_json, table, warn

if TYPE_CHECKING:
    from infra.leases.inventory import Inventory
    from infra.leases.listing import LeaseView, StoredItem
    from infra.leases.reaper import Reaped
    from infra.ledger.month import MonthSpending


def show_reaped(found: "Reaped") -> None:
    """Print what the reaper released, what it left alone, and what it could not release."""
    line(f"released {', '.join(found.released)}" if found.released else "nothing to release")
    if found.removed:
        line(f"deleted {', '.join(found.removed)}")
    for unknown in found.unrecognized:
        warn(f"{unknown} has our prefix but not our name format, so it was kept: check it in the cloud's console")
    for what, why in found.failed.items():
        error(f"{what} was not released: {why}")


def show_inventory(found: "Inventory") -> None:
    """Print all that is ours with its price, what is kept for a night, and the sum of what would be deleted."""
    rows = [
        {
            "what": one.sort,
            "where": one.place,
            "account": one.account,
            "name": one.name,
            "usd_per_hour": one.usd_per_hour,
            "usd_per_month": one.usd_per_month,
            "kept": one.kept_for,
        }
        for one in found.owned
    ]
    table(rows, "machines, images, volumes, keys and models of ours")
    hourly = sum(one.usd_per_hour or 0.0 for one in found.to_delete)
    monthly = sum(one.usd_per_month or 0.0 for one in found.to_delete)
    line(f"to delete: {len(found.to_delete)}, at {hourly:.2f} USD/h and {monthly:.2f} USD per month")
    for what, why in found.troubles.failed.items():
        error(f"{what} was not listed: {why}")


def show_kept(found: "Inventory") -> None:
    """Print what stays for a night that is running."""
    for one in found.kept:
        line(f"kept {one.sort} {one.name} at {one.place}: {one.kept_for}; --all deletes it too")


def show_leases(found: Sequence["LeaseView"], stored: Sequence["StoredItem"], *, as_json: bool) -> None:
    """Print every lease, open ones last, the cost of its stages, the total cost, and what is stored."""
    now = datetime.now(UTC)
    shown = sorted(found, key=lambda view: (view.lease.state != "released", view.lease.intended_at))
    if as_json:
        # A list of leases only, as in earlier versions; what is stored is left out.
        print_json([_lease_row(view, now) | _lease_details(view) for view in shown])
        return
    table([_lease_row(view, now) for view in shown], "leases")
    table([row for view in shown for row in _stage_sums(view)], "stages")
    still_open = sum(view.lease.state != "released" for view in shown)
    line(f"{still_open} open, {sum(view.lease.usd(now) for view in found):.2f} USD in total")
    for one in stored:
        cost = "" if one.usd_per_month is None else f": {one.usd_per_month:.2f} USD per month"
        line(f"{one.description}{cost}")


def month_line(month: "MonthSpending") -> str:
    """What this month's leases cost, what the open ones may still cost, what is kept costs, and the limit."""
    reserved = f", up to {month.reserved_usd:.2f} USD more for open leases" if month.reserved_usd else ""
    kept = f"; kept: {month.kept}" if str(month.kept) else ""
    limit = "no limit" if month.limit_usd is None else f"of {month.limit_usd:.2f} USD"
    return f"{month.month}: {month.spent_usd:.2f} USD for leases{reserved}, {limit} (NIGHTBENCH_MONTH_USD_MAX){kept}"


def _lease_row(view: "LeaseView", now: datetime) -> dict[str, Any]:
    lease = view.lease
    return {
        "lease_id": lease.lease_id,
        "night": lease.night,
        "cloud": lease.cloud,
        "account": lease.account,
        "machine": lease.machine_id,
        "name": lease.machine,
        "kind": lease.kind or None,
        "region": lease.region,
        "spot": lease.is_spot,
        "attempts": len(view.attempts),
        "state": f"{lease.state}{', orphaned' if lease.state != 'released' and lease.is_orphan() else ''}",
        "watchdog": view.is_watched if lease.state != "released" else None,
        "rented_at": lease.rented_at and lease.rented_at.isoformat(timespec="seconds"),
        "expires_at": lease.expires_at.isoformat(timespec="seconds"),
        "released_at": lease.released_at and lease.released_at.isoformat(timespec="seconds"),
        "usd_per_hour": lease.usd_per_hour,
        "usd": round(lease.usd(now), 4),
    }


def _lease_details(view: "LeaseView") -> dict[str, Any]:
    return {
        "stages": [json.loads(stage.model_dump_json()) for stage in view.stages],
        "tries": [asdict(attempt) for attempt in view.attempts],
    }


def _stage_sums(view: "LeaseView") -> list[dict[str, Any]]:
    """One row per stage of a lease that cost something."""
    if not view.lease.usd_per_hour:
        return []
    whole = sum(cost.usd or 0.0 for cost in view.stages) or 1.0
    return [
        {
            "lease_id": view.lease.lease_id,
            "stage": stage,
            "minutes": round(seconds / 60, 1),
            "usd": round(usd, 3),
            "share": f"{usd / whole:.0%}",
        }
        for stage, (seconds, usd) in by_stage(view.stages).items()
    ]
