"""Five years of nights as files of the lake, from a seed: no run folders and no judging.

A night has one lease, 100 scenarios with 5 repeats and the metrics that `metric_values` lists; one host in three is
2 % slower, the engine has a new version every 40 nights, and each version moves its throughput a little.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.histogram import FIRST_TOKEN_BINS, GAP_BINS
from warehouse.lake.lake import PartWriter
from warehouse.schema.columns import COLUMNS, Table, arrow_schema

FIRST = date(2021, 1, 1)
SCENARIOS, REPEATS = 100, 5
UPGRADE_NIGHTS = 40
REJECTED = 0.01
_IDS = ("run_id", "scenario_id", "repeat")
HOSTS = ("host-a", "host-b", "host-slow")
METRICS = tuple(
    f"{name}_{statistic}_ms"
    for name, statistics in {
        "ttft": ("mean", "p50", "p90", "p95", "p99", "p999"),
        "tpot": ("mean", "p50", "p90", "p95", "p99"),
        "itl": ("mean", "p50", "p90", "p95", "p99", "p999", "event_p50", "event_p99"),
        "e2el": ("mean", "p50", "p90", "p95", "p99"),
    }.items()
    for statistic in statistics
)
_EMPTY: Mapping[str, object] = {
    "text": "",
    "integer": 0,
    "number": 0.0,
    "flag": False,
    "texts": [],
    "moment": datetime(FIRST.year, 1, 1, tzinfo=UTC),
}


def night_name(at: int) -> str:
    """The name of a night, counted from the first."""
    return f"{FIRST + timedelta(days=at)}T010000Z"


def write_nights(lake: Path, nights: int, seed: int = 1, first: int = 0) -> None:
    """Write the files of these nights into a lake."""
    draw = np.random.default_rng((seed, first))
    for at in range(first, first + nights):
        for table, rows in night_tables(at, draw).items():
            with PartWriter(lake, table, night_name(at)) as part:
                part.add(rows)


def night_tables(at: int, draw: np.random.Generator) -> dict[Table, pa.Table]:
    """The tables of one night: its runs, a finding for each rejected one, its lease, attempts and stage."""
    lease = {"lease_id": f"lease-{at}", "cloud": "cloud", "kind": "gpu-1", "region": "r1", "usd_per_hour": 5.0}
    tries = [lease | {"outcome": what, "reason": why} for why, what in ((None, "rented"), ("no capacity", "refused"))]
    runs = _runs(at, draw)
    rejected = [row for row in runs.select([*_IDS, "verdict"]).to_pylist() if row["verdict"] == "rejected"]
    wrong = [row | {"code": "drifting", "severity": "critical", "message": "throughput fell"} for row in rejected]
    return {
        "measurements": runs,
        "findings": _table("findings", wrong),
        "leases": _table("leases", [lease | {"usd": 10.0, "attempt_count": 2}]),
        "attempts": _table("attempts", tries),
        "stages": _table("stages", [{"lease_id": lease["lease_id"], "stage": "measure", "usd": 8.0}]),
    }


def _runs(at: int, draw: np.random.Generator) -> pa.Table:
    count = SCENARIOS * REPEATS
    scenario, repeat = np.repeat(np.arange(SCENARIOS), REPEATS), np.tile(np.arange(REPEATS), SCENARIOS)
    host = HOSTS[at % len(HOSTS)]
    night, version = night_name(at), at // UPGRADE_NIGHTS
    speed = (0.98 if host == HOSTS[-1] else 1.0) * float(np.exp(np.random.default_rng(version).normal(0, 0.01)))
    tok_per_s = (1000.0 + 50.0 * scenario) * speed * np.exp(draw.normal(0, 0.005, count))
    verdicts = np.where(draw.random(count) < REJECTED, "rejected", "accepted")
    started = datetime(FIRST.year, FIRST.month, FIRST.day, 1, tzinfo=UTC) + timedelta(days=at)
    constant: dict[str, object] = {
        "suite": "simulated",
        "outcome": "measured",
        "is_control": False,
        "model": "m",
        "engine": "vllm",
        "engine_version_found": f"0.{version}",
        "gpus": ["gpu"],
        "gpu_count": 1,
        "host": host,
        "lease_id": f"lease-{at}",
        "started_at": started,
        "joules_per_output_token": 0.5,
        "precision": "bf16",
        "driver": "meter",
        "isl": 128,
        "osl": 128,
    }
    varying: dict[str, Any] = {
        "run_id": pa.array([f"{night}/s{one:03d}/{place}" for one, place in zip(scenario, repeat, strict=True)]),
        "scenario_id": pa.array([f"s{one:03d}" for one in scenario]),
        "scenario": pa.array([f"chat-{one:03d}" for one in scenario]),
        "repeat": pa.array(repeat),
        "verdict": pa.array(verdicts),
        "is_first_after_start": pa.array(repeat == 0),
        "concurrency_asked": pa.array(scenario + 1),
        "output_throughput_tok_per_s": pa.array(tok_per_s),
        "steady_output_throughput_tok_per_s": pa.array(tok_per_s * 1.02),
        "request_throughput_per_s": pa.array(tok_per_s / 128),
        "usd_per_mtok_output": pa.array(5.0 / 3600 / tok_per_s * 1e6),
        "cold_start_s": pa.array(np.full(count, 60.0)),
        "ttft_histogram": _histograms(count, FIRST_TOKEN_BINS, 47, draw),
        "itl_event_histogram": _histograms(count, GAP_BINS, 12, draw),
        **{name: pa.array(np.exp(draw.normal(3.0, 0.01, count))) for name in METRICS},
    }
    return table_of("measurements", count, constant, varying)


def _histograms(count: int, bins: int, middle: int, draw: np.random.Generator) -> pa.Array:
    """Histograms of 100 values around a bin."""
    shares = np.exp(-0.5 * ((np.arange(bins) - middle) / 3.0) ** 2)
    counts = draw.multinomial(100, shares / shares.sum(), count).astype(np.int32)
    return pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32) * bins, counts.ravel())


def table_of(table: Table, count: int, constant: Mapping[str, object], varying: Mapping[str, pa.Array]) -> pa.Table:
    """A table whose columns are given, constant, or empty."""
    empty, arrays = _empty(table), []
    for one in arrow_schema(table):
        if one.name in varying:
            arrays.append(varying[one.name].cast(one.type))
        else:
            arrays.append(pa.repeat(pa.scalar(constant.get(one.name, empty[one.name]), one.type), count))
    return pa.table(arrays, schema=arrow_schema(table))


def _empty(table: Table) -> dict[str, object]:
    return {column.name: None if column.nullable else _EMPTY.get(column.type) for column in COLUMNS[table]}


def _table(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    schema, empty = arrow_schema(table), _empty(table)
    return pa.Table.from_pylist([{name: (empty | row)[name] for name in schema.names} for row in rows], schema=schema)
