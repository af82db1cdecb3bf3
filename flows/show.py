"""What the command line prints: tables for people, JSON and CSV for programs; errors go to standard error."""

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from bench.client_error.calibration import CalibrationTable
    from bench.client_error.crosscheck import ClientRun
    from bench.cost.estimate import Estimate
    from bench.record import NightRecord
    from flows.doctor import Check
    from infra.leases.reaper import Reaped
    from tasks.forecast import Forecast
    from tasks.lease_views import LeaseView, StoredItem
    from warehouse.lake.query import QueryResult

VERDICT_STYLES = {"accepted": "green", "suspect": "yellow", "rejected": "red", "failed": "red", "not-run": "dim"}
UNLIMITED_WIDTH = 10_000
RESULT_COLUMNS = (
    "scenario, repeat, verdict, completed AS ok, failed, output_throughput_tok_per_s AS tok_per_s, "
    "ttft_p50_ms, tpot_p50_ms, e2el_p50_ms, reason"
)


def _out() -> Console:
    # A table in a pipe or a file is as wide as it needs to be: cut columns are lost numbers.
    return Console() if sys.stdout.isatty() else Console(width=UNLIMITED_WIDTH)


def line(text: str) -> None:
    """Print one line; half a character, which JSON can name and no terminal can show, becomes a `?`."""
    _out().print(text.encode("utf-8", "replace").decode("utf-8"), highlight=False, markup=False, soft_wrap=True)


def progress(text: str) -> None:
    """Print what is being done to standard error, where it disturbs nobody who reads the output."""
    Console(stderr=True).print(text, style="dim", highlight=False, markup=False, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning to standard error."""
    Console(stderr=True).print(f"warning: {text}", style="yellow", highlight=False, markup=False, soft_wrap=True)


def error(text: str) -> None:
    """Print an error to standard error."""
    Console(stderr=True).print(f"error: {text}", style="red", highlight=False, markup=False, soft_wrap=True)


def _json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=1, default=str) + "\n")


def table(rows: Sequence[dict[str, Any]], title: str | None = None) -> None:
    """Print rows as a table; numbers to the right, verdicts in their colour, nothing for a missing value."""
    if not rows:
        line(f"{title or 'rows'}: none")
        return
    grid = Table(title=title, title_justify="left")
    for name in rows[0]:
        is_number = any(isinstance(row[name], (int, float)) for row in rows)
        grid.add_column(name, justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        grid.add_row(*(_cell(value) for value in row.values()), style=VERDICT_STYLES.get(str(row.get("verdict"))))
    _out().print(grid)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.3f}" if isinstance(value, float) else str(value).replace("[", "\\[")


def plan(night: "NightRecord", expected: "Forecast", *, as_json: bool) -> None:
    """Print a plan: every run in its order, each stage with its minutes and dollars, and what could end it early."""
    from bench.plan import cells  # noqa: PLC0415
    from bench.suite.pins import open_pins  # noqa: PLC0415

    rows = [asdict(cell) for cell in cells(night.runs)]
    pins = {name: pin.meaning for name, pin in open_pins(night.suite).items()}
    if as_json:
        whole = {"suite": night.suite.name, "target": night.target, "runs": rows, "to_be_set": pins}
        _json(whole | _forecast_json(expected))
        return
    table(rows, f"{night.suite.name} on {night.target}: {len(rows)} runs")
    if expected.needs:
        _on_own_host(night, expected)
    elif expected.price.usd_per_hour == 0:
        line(f"lease of {night.suite.machine.lease_minutes} minutes, at most 0.00 USD")
        return
    else:
        _forecast(night, expected)
    for doubt in expected.doubts:
        warn(doubt)
    for name, meaning in pins.items():
        warn(f"{name} is to be set before the night: {meaning}")


def _forecast(night: "NightRecord", expected: "Forecast") -> None:
    price = expected.price.usd_per_hour
    table(_stage_rows(expected.cold, price), "what it takes, on a fresh machine")
    line(f"in all: {_sum_of(expected.cold)}")
    line(f"from a golden snapshot: {_sum_of(expected.warm)}")
    if expected.prepare is not None:
        once = f"{expected.prepare.billed_s / 60:.0f} minutes, {expected.prepare.usd:.2f} USD"
        line(f"the snapshot: {once} once, then {expected.snapshot_usd_per_month:.2f} USD a month")
    if expected.volume_usd_per_month is not None:
        size_gib = night.suite.model.cache_volume_gib
        line(f"the model's volume: {size_gib} GiB, {expected.volume_usd_per_month:.2f} USD a month while it is used")
    if night.suite.model.cache_bucket_minutes is not None:
        line(_bucket(night.suite.model.cache_bucket_minutes, expected))
    _memory(expected)
    asked = "unknown" if price is None else f"{price:.2f} USD/h"
    most = "" if expected.usd_max is None else f", at most {expected.usd_max:.2f} USD"
    line(f"price: {asked}, by {expected.price.said_by}; lease of {night.suite.machine.lease_minutes} minutes{most}")


def _on_own_host(night: "NightRecord", expected: "Forecast") -> None:
    stages = _stage_rows(expected.cold, 0.0)
    shown = [{name: row[name] for name in ("stage", "scenario", "times", "minutes", "basis")} for row in stages]
    table(shown, "what it takes, the first night on this host")
    line(f"in all: {_minutes_of(expected.cold)}")
    line(f"a later night, with engine and model there: {_minutes_of(expected.warm)}")
    _memory(expected)
    title = f"what {night.target} must have; it was not asked, the night looks"
    table([asdict(need) for need in expected.needs], title)
    line(f"price: nothing; the host is held for at most {night.suite.machine.lease_minutes} minutes")


def _memory(expected: "Forecast") -> None:
    if expected.fit is not None:
        line(f"memory: {expected.fit.needed_gib:.0f} GiB of {expected.fit.room_gib:.0f} that the engine may take")


def _minutes_of(found: "Estimate") -> str:
    at_most = "" if found.is_known else "at most "
    return f"{at_most}{found.billed_s / 60:.0f} minutes, {found.measuring_share:.0%} of them measuring"


def _bucket(minutes: int, expected: "Forecast") -> str:
    """What it costs to keep the model in a bucket, as far as that is known."""
    month, fill = expected.bucket_usd_per_month, expected.fill_usd_max
    kept = "at a price that is not known" if month is None else f"{month:.2f} USD a month"
    filled = "" if fill is None else f", {fill:.2f} USD"
    return f"the model in the bucket: {kept}; a night that fills it takes at most {minutes} minutes more{filled}"


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
            "basis": stage.basis if stage.is_known else f"not known: {stage.basis}",
        }
        for stage in found.stages
    ]


def _forecast_json(expected: "Forecast") -> dict[str, Any]:
    price = expected.price
    nights = {"cold": expected.cold, "warm": expected.warm, "prepare": expected.prepare}
    return {
        "usd_per_hour": price.usd_per_hour,
        "price_said_by": price.said_by,
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


def reaped(found: "Reaped") -> None:
    """Print what a reaper's round gave back, what it left alone, and what it could not give back."""
    line(f"gave back {', '.join(found.given_back)}" if found.given_back else "nothing to give back")
    if found.removed:
        line(f"removed {', '.join(found.removed)}")
    for stranger in found.strangers:
        warn(f"{stranger} looks like ours and is not known: look at it, it was left alone")
    for what, why in found.failed.items():
        error(f"{what} was not given back: {why}")


def leases(found: Sequence["LeaseView"], kept: Sequence["StoredItem"], *, as_json: bool) -> None:
    """Print every lease, what still runs last, what its stages cost, and what they and the storage cost in all."""
    now = datetime.now(UTC)
    shown = sorted(found, key=lambda view: (view.lease.state != "released", view.lease.intended_at))
    if as_json:
        # A list of leases, as before; what is kept besides them is told where a cloud was asked.
        _json([_lease_row(view, now) | _lease_details(view) for view in shown])
        return
    table([_lease_row(view, now) for view in shown], "leases")
    table([row for view in shown for row in _stage_sums(view)], "stages")
    still_open = sum(view.lease.state != "released" for view in shown)
    line(f"{still_open} open, {sum(view.lease.usd(now) for view in found):.2f} USD in all")
    for one in kept:
        cost = "" if one.usd_per_month is None else f": {one.usd_per_month:.2f} USD a month"
        line(f"{one.what}{cost}")


def _lease_row(view: "LeaseView", now: datetime) -> dict[str, Any]:
    lease = view.lease
    return {
        "lease_id": lease.lease_id,
        "night": lease.night,
        "cloud": lease.cloud,
        "machine": lease.machine_id,
        "kind": lease.kind or None,
        "region": lease.region,
        "spot": lease.is_spot,
        "attempts": len(view.attempts),
        "state": f"{lease.state}{', left behind' if lease.state != 'released' and lease.is_orphan() else ''}",
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
    """One row a stage of a lease that cost something; a free one has no costs to tell apart."""
    from bench.cost.lease_cost import by_stage  # noqa: PLC0415

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


def answer(found: "QueryResult", form: Literal["table", "json", "csv"]) -> None:
    """Print the answer to a query."""
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    if form == "json":
        _json(rows)
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(found.columns)
        writer.writerows(found.rows)
    else:
        table(rows)


def night(data: Path, name: str) -> None:
    """Print a night's results and where its page is."""
    from warehouse.lake.query import run_sql  # noqa: PLC0415 - DuckDB, for this command only

    sql = f"SELECT {RESULT_COLUMNS} FROM standing WHERE night = '{name}' ORDER BY scenario, repeat"  # noqa: S608
    found = run_sql(data.absolute(), sql)
    table([dict(zip(found.columns, row, strict=True)) for row in found.rows], f"night {name}")
    line(f"report: {data.absolute() / 'reports' / f'{name}.html'}")


def checks(found: Sequence["Check"], *, as_json: bool) -> None:
    """Print what the doctor found."""
    if as_json:
        _json([asdict(check) for check in found])
        return
    for check in found:
        mark, advice = ("ok ", "") if check.is_good else ("BAD", f": {check.advice}")
        line(f"{mark} {check.what:9} {check.found}{advice}")


CALIBRATION_COLUMNS = (
    *("streams", "stream_tok_per_s", "ttft_mean_error_ms", "ttft_p99_error_ms", "itl_p50_error_ms", "itl_p99_error_ms"),
    *("itl_p99_error_kernel_ms", "itl_p999_error_kernel_ms", "live_streams", "load_share", "cpu_us_per_token"),
    *("core_share", "lag_p99_ms", "server_late_p99_ms", "passed"),
)


def calibration(found: "CalibrationTable", *, as_json: bool) -> None:
    """Print a calibration's points; JSON has every column."""
    points = json.loads(found.model_dump_json())["points"]
    if as_json:
        _json(points)
        return
    table([{name: point[name] for name in CALIBRATION_COLUMNS} for point in points], "error of the load client")
    for point in points:
        if not point["passed"]:
            line(f"{point['streams']} streams did not pass: {'; '.join(point['reasons'])}")


CROSSCHECK_WORDS = """\
bias: what the client said minus what the truth server wrote, both in one run of the same load
left: the difference less both biases, which no known error explains. It holds whatever the server did differently from
one run to the other, and one pair of runs cannot tell a small rest from chance; of output_throughput it is mostly load
that one client did not offer
itl_event: gaps between stream events of all good requests; p50 and p99 are nearest ranks over them"""


def crosscheck(sides: "Sequence[ClientRun]", *, as_json: bool) -> None:
    """Print every client beside the meter, with what of their difference is known to be their own error."""
    from bench.client_error.crosscheck import side_by_side  # noqa: PLC0415

    rows = [asdict(row) for row in side_by_side(list(sides))]
    if as_json:
        _json({"clients": [asdict(side) for side in sides], "rows": rows})
        return
    table(rows, "the meter and others, on one load")
    for side in sides:
        line(f"{side.client} {side.version or 'of unknown version'}: {side.requests} requests, {side.failed} failed")
    line(CROSSCHECK_WORDS)
