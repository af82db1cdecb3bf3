"""Write the small histories of this folder: `python -m tests.data.history.make`."""

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
START = datetime(2026, 1, 1, 1, 30, tzinfo=UTC)
LONG = [
    "source_repo",
    "commit",
    "timestamp",
    "series",
    "metric",
    "unit",
    "value",
    "engine_version",
    "host",
    "repeat",
    "note",
]
DRIVER_AT, HOST_AT, HALVED_AT, SLOW_AT = 20, 30, 15, 25


def night(at: int) -> datetime:
    """The time of a night, from 0."""
    return START + timedelta(days=at, minutes=at)


def long_rows() -> Iterator[list[str]]:
    """Two devices with three benchmarks each; a new driver moves two of them in opposite directions."""
    random = np.random.default_rng(1)
    for at in range(40):
        for device in ("Base_A", "Base_B"):
            for name, level, unit in (("text", 50.0, "token/s"), ("memory", 3.5, "GB/s"), ("sort", 40.0, "ms")):
                value = level * np.exp(random.normal(0, 0.004))
                if at >= DRIVER_AT and device == "Base_A":
                    value *= {"text": 1.15, "memory": 0.8, "sort": 1.0}[name]
                if at >= HOST_AT and device == "Base_B":
                    value *= 1.3
                driver = "25.2" if at >= DRIVER_AT and device == "Base_A" else "25.1"
                host = "new_host" if at >= HOST_AT and device == "Base_B" else f"host_{device}"
                note = f"stddev=0.01; lower_is_better={unit == 'ms'}"
                yield [
                    *("example/suite@results", f"c{at:03}", night(at).isoformat(), f"{device}/{name}", "value", unit),
                    *(f"{value:.5g}", f"compute_runtime={driver}", host, "", note),
                ]


def page() -> dict[str, Any]:
    """A page of two suites of one benchmark each, with three numbers a run."""
    random = np.random.default_rng(2)
    runs: list[dict[str, Any]] = []
    for at in range(40):
        benches = []
        for model in ("model-a", "model-b"):
            for load in (8, 64):
                slow = 0.6 if at == SLOW_AT else 1.0
                speed = slow * (0.5 if at >= HALVED_AT and model == "model-a" else 1.0)
                for metric, unit, level, power in (
                    ("throughput", "tok/s", 2000.0, 1),
                    ("TPOT", "ms", 12.0, -1),
                    ("TTFT", "ms", 150.0, -1),
                ):
                    value = level * speed**power * np.exp(random.normal(0, 0.01))
                    is_failed = at == 5 and model == "model-b" and load == 64
                    benches.append(
                        {
                            "name": f"{model} 1024/1024 c={load} {metric} ({unit})",
                            "value": 0 if is_failed else round(value, 2),
                            "unit": unit,
                            "extra": f"Run: https://example.com/actions/runs/{9_000_000 + at}",
                        }
                    )
        commit = {"id": f"{at:040x}", "timestamp": night(at).isoformat()}
        runs.append({"commit": commit, "date": int(night(at).timestamp() * 1000), "tool": "custom", "benches": benches})
    runs.insert(11, runs[10] | {"date": runs[10]["date"] + 60_000})
    return {"lastUpdate": runs[-1]["date"], "repoUrl": "https://example.com/engine", "entries": {"Benchmark": runs}}


def wide_rows() -> Iterator[list[str]]:
    """One benchmark with a column a metric, and everything that histories have wrong."""
    random = np.random.default_rng(3)
    days = [*range(12), 11, *range(10, 18)]  # night 11 twice, then the clock goes back to night 10
    for place, at in enumerate(days):
        tok_s, ttft = 900 * np.exp(random.normal(0, 0.01)), 80 * np.exp(random.normal(0, 0.01))
        unit = "ms" if place < 19 else "s"
        values = ["NaN" if place == 4 else f"{tok_s:.4f}", "N/A" if place == 6 else f"{ttft:.4f}"]
        yield [night(at).replace(tzinfo=None).isoformat(" "), "py3.11-torch2.5 llama", "H100", *values, unit]
    yield [night(30).replace(tzinfo=None).isoformat(" "), "py3.11-torch2.5 once", "H100", "1.5", "2.5", "ms"]


def main(folder: Path = HERE) -> None:
    """Write every file."""
    for name, header, rows in (
        ("long.csv", LONG, long_rows()),
        ("wide.csv", ["day", "case", "gpu", "tok_s", "ttft", "unit"], wide_rows()),
    ):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
    (folder / "data.js").write_text(f"window.BENCHMARK_DATA = {json.dumps(page(), separators=(',', ':'))}\n")


if __name__ == "__main__":
    main()
