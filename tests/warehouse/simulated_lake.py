"""A lake of weekly nights, written as rows: no run folder and no judging, so that it takes a second."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bench.histogram import FIRST_TOKEN_BINS, histogram
from bench.metrics import Floats
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import write_rows
from warehouse.schema.columns import COLUMNS, Table
from warehouse.schema.row import Row

FIRST = date(2026, 1, 1)
START = datetime(2026, 1, 1, 1, tzinfo=UTC)
HOSTS = ("host-a", "host-b", "host-slow")
SLOW = 0.9  # throughput of the last host over that of the others
_KINDS: dict[str, object] = {"text": "", "integer": 0, "number": 0.0, "flag": False, "texts": [], "moment": START}


def write_lake(
    data: Path, nights: int, scenarios: int = 2, repeats: int = 3, requests: int = 100, *, is_quiet: bool = False
) -> Path:
    """Write the lake of this many nights, one lease each, and its warehouse; the same numbers each time.

    A quiet night has no run that failed or was rejected, and costs nothing.
    """
    draw = np.random.default_rng(14)
    for at in range(nights):
        _write_night(data / "lake", at, (scenarios, repeats, requests), draw)
        if is_quiet:
            _quieten(data / "lake", at)
    build_warehouse(data)
    return data


def _write_night(lake: Path, at: int, size: tuple[int, int, int], draw: np.random.Generator) -> None:
    scenarios, repeats, requests = size
    night = night_name(at)
    runs = [_run(night, at, f"s{scenario}", repeat, draw) for scenario in range(scenarios) for repeat in range(repeats)]
    waits = {run["run_id"]: draw.lognormal(3.0, 0.2, requests) for run in runs}
    for run in runs:
        run["ttft_histogram"] = histogram(waits[run["run_id"]] / 1000, FIRST_TOKEN_BINS).tolist()
    runs[-1] |= {"verdict": "rejected"}
    failed = {**runs[0], "run_id": f"{night}/s0/{repeats}", "repeat": repeats, "outcome": "failed", "verdict": "failed"}
    failed |= {"stage": "server", "reason": "out of memory", "output_throughput_tok_per_s": None}
    lease = {"night": night, "lease_id": f"lease-{at}", "cloud": "cloud", "kind": "gpu-1", "region": "r1"}
    wrong = _ids(runs[-1]) | {"code": "drifting", "severity": "critical", "message": "throughput fell in the window"}
    write(lake, "measurements", night, [*runs, failed])
    write(lake, "findings", night, [wrong])
    write(lake, "requests", night, [row for run in runs for row in _requests(run, waits[run["run_id"]])])
    write(lake, "leases", night, [lease | {"usd": 10.0, "usd_per_hour": 5.0, "attempt_count": 2}])
    tries = [("no capacity", "refused"), (None, "rented")]
    write(
        lake, "attempts", night, [lease | {"reason": why, "outcome": what, "usd_per_hour": 5.0} for why, what in tries]
    )
    write(lake, "stages", night, [{"night": night, "lease_id": lease["lease_id"], "stage": "measure", "usd": 8.0}])
    claim = {"model": "m", "gpu": "gpu", "label": "c", "verdict": "accepted", "output_throughput_tok_per_s": 1100.0}
    if at == 0:
        write(lake, "claims", night, [claim | {"night": night, "claim_id": "claim-1"}])


def _quieten(lake: Path, at: int) -> None:
    """Take the run that failed, the rejected one and its finding out of a night."""
    night = night_name(at)
    kept = [
        row | {"usd_per_mtok_output": 0.0}
        for row in pq.read_table(lake / "measurements" / f"night={night}" / "part-0.parquet").to_pylist()
        if row["verdict"] == "accepted"
    ]
    write(lake, "measurements", night, kept)
    write(lake, "findings", night, [])


def night_name(at: int) -> str:
    """The name of a night, counted from the first."""
    return f"{FIRST + timedelta(weeks=at)}T010000Z"


def _run(night: str, at: int, scenario: str, repeat: int, draw: np.random.Generator) -> Row:
    host = HOSTS[at % len(HOSTS)]
    tok_per_s = 1000.0 * (SLOW if host == HOSTS[-1] else 1.0) * float(np.exp(draw.normal(0, 0.005)))
    ids = {"night": night, "run_id": f"{night}/{scenario}/{repeat}", "scenario_id": scenario, "repeat": repeat}
    return ids | {
        "scenario": scenario,
        "suite": "simulated",
        "outcome": "measured",
        "verdict": "accepted",
        "is_control": False,
        "is_first_after_start": repeat == 0,
        "model": "m",
        "engine": "vllm",
        "engine_version_found": "1.0" if at < 3 else "1.1",
        "gpus": ["gpu"],
        "gpu_count": 1,
        "host": host,
        "lease_id": f"lease-{at}",
        "started_at": START + timedelta(weeks=at, minutes=repeat),
        "output_throughput_tok_per_s": tok_per_s,
        "usd_per_mtok_output": 5.0 / 3600 / tok_per_s * 1e6,
        "joules_per_output_token": 0.5,
        **{name: 20.0 * float(np.exp(draw.normal(0, 0.01))) for name in ("ttft_p50_ms", "tpot_p50_ms", "e2el_p50_ms")},
    }


def _ids(run: Row) -> Row:
    return {name: run[name] for name in ("night", "run_id", "scenario_id", "repeat")}


def _requests(run: Row, ttft_ms: Floats) -> list[Row]:
    return [_ids(run) | {"request_index": at, "outcome": "ok", "ttft_ms": float(one)} for at, one in enumerate(ttft_ms)]


def write(lake: Path, table: Table, night: str, rows: list[Row]) -> None:
    """Write these rows of a table and night; columns that they lack are NULL, or empty where NULL is not allowed."""
    empty = {column.name: None if column.nullable else _KINDS.get(column.type) for column in COLUMNS[table]}
    write_rows(lake, table, night, [{**empty, **row} for row in rows])
