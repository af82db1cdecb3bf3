"""What the numbers of a run can be, by what the programs in the engine's place were told and logged.

A busy computer makes what a client sees later than what a server wrote, never earlier. So a time lies between the
server's shortest and the client's longest, and a rate is the client's own, at most the server's. Counts are equal.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from bench.record import PlannedRun
from tests.emulators.truth_offline import TRAINING, batch_s
from warehouse.lake.query import run_sql

Bounds = tuple[float, float]
_RUNS = (
    'SELECT scenario, run_id, scenario_id, "repeat", verdict FROM standing WHERE night = ? ORDER BY scenario, "repeat"'
)
_REQUESTS = "SELECT run_id, send_s, ttft_ms, tpot_ms, e2el_ms FROM requests WHERE night = ?"
GOOD = ("accepted", "suspect")


@dataclass(frozen=True)
class ToldRequest:
    """One request as a server logged it: tokens of the prompt and the answer, and its own times in ms."""

    prompt: int
    output: int
    received_ms: float
    first_ms: float
    last_ms: float


def read_log(log: Path) -> dict[str, ToldRequest]:
    """Every request of a truth server's log by its id."""
    lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in log.read_text().splitlines() if log.exists() else ():
        entry = json.loads(line)
        lines[entry["request_id"]].append(entry)
    found = {}
    for name, entries in lines.items():
        tokens = [one for one in entries if one["kind"] == "token"]
        begun = next(one for one in entries if one["kind"] == "received")
        times = (one["at_ns"] / 1e6 for one in (begun, tokens[0], tokens[-1]))
        found[name] = ToldRequest(begun["prompt"], sum(one["tokens"] for one in tokens), *times)
    return found


@dataclass(frozen=True)
class Told:
    """The bounds of each metric of each run of a night; `runs` has the runs whose numbers are shown, by scenario."""

    bounds: Mapping[str, Mapping[str, Bounds]]
    runs: Mapping[str, Sequence[str]]
    every: Mapping[str, Sequence[str]]  # with those of the other verdicts

    def of(self, scenario: str, metric: str) -> Bounds | None:
        """The bounds of the mean over a scenario's runs; None where none of its numbers is shown."""
        found = [self.bounds[run][metric] for run in self.runs[scenario] if metric in self.bounds[run]]
        return (mean(low for low, _ in found), mean(high for _, high in found)) if found else None


def read_told(data: Path, night: str, planned: Sequence[PlannedRun], log: Path) -> Told:
    """What a night's runs were told: of its servers by their log, of its batches and commands by the emulator."""
    told, by_id = read_log(log), {run.scenario.scenario_id: run for run in planned}
    seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in run_sql(data, _REQUESTS, (night,)).dicts():
        seen[row["run_id"]].append(row)
    rows = run_sql(data, _RUNS, (night,)).dicts()
    bounds, every, shown = {}, defaultdict(list), {}
    for row in rows:
        every[row["scenario"]].append(row["run_id"])
        folder = data / "runs" / row["run_id"] / "load"
        if (folder / "requests.jsonl").exists():
            bounds[row["run_id"]] = _of_server(_ids(folder), told, seen[row["run_id"]])
        else:
            bounds[row["run_id"]] = _offline(by_id[row["scenario_id"]])
    for scenario in every:
        good = [[row["run_id"] for row in rows if (row["scenario"], row["verdict"]) == (scenario, of)] for of in GOOD]
        shown[scenario] = good[0] or good[1]
    return Told(bounds, shown, every)


def _ids(folder: Path) -> list[str]:
    """The ids of a run's measured requests, by the client's record."""
    rows = map(json.loads, (folder / "requests.jsonl").read_text().splitlines())
    return [row["request_id"] for row in rows if row["phase"] == "measured"]


def _of_server(
    ids: Sequence[str], told: Mapping[str, ToldRequest], seen: Sequence[Mapping[str, Any]]
) -> dict[str, Bounds]:
    """The bounds of a run that a server answered."""
    asked = [told[name] for name in ids]
    into, out = sum(one.prompt for one in asked), sum(one.output for one in asked)
    theirs_s = (max(one.last_ms for one in asked) - min(one.received_ms for one in asked)) / 1000
    ours_s = max(row["send_s"] + row["e2el_ms"] / 1000 for row in seen) - min(row["send_s"] for row in seen)
    assert ours_s >= theirs_s  # the client's window has the server's within it
    counts = {"completed": len(asked), "failed": 0, "total_input_tokens": into, "total_output_tokens": out}
    means = {"isl": into / len(asked), "osl": out / len(asked), "request_count": len(asked)}
    found = {name: (float(count), float(count)) for name, count in ({**counts, **means}).items()}
    found["output_throughput_tok_per_s"] = (out / ours_s, out / ours_s)
    found["total_throughput_tok_per_s"] = ((into + out) / ours_s, (into + out) / ours_s)
    longest = {name: max(row[f"{name}_ms"] or 0.0 for row in seen) for name in ("ttft", "tpot", "e2el")}
    shortest = {
        "ttft": min(one.first_ms - one.received_ms for one in asked),
        "tpot": min(row["tpot_ms"] or 0.0 for row in seen),  # of a late first token, the others seem quick
        "e2el": min(one.last_ms - one.received_ms for one in asked),
    }
    found |= {
        f"{name}_{of}_ms": (shortest[name], longest[name]) for name in shortest for of in ("mean", "p50", "p95", "p99")
    }
    return found | {f"itl_{of}_ms": (0.0, longest["e2el"]) for of in ("p50", "p99")}


def _offline(run: PlannedRun) -> dict[str, Bounds]:
    """The exact numbers of a run without a server."""
    work = run.scenario.workload
    if work.command is not None:
        return {name: (value, value) for name, value in (TRAINING | {"ranks": float(work.nodes)}).items()}
    size = work.request_count if work.driver == "vllm-throughput" else work.in_flight
    took = batch_s(work.isl, work.osl, size)
    rate = size * work.osl / took
    found = {"e2el_mean_ms": 1000 * took, "output_throughput_tok_per_s": rate, "request_count": work.request_count}
    found |= {"isl": work.isl, "osl": work.osl, "concurrency": work.in_flight}
    return {name: (float(value), float(value)) for name, value in found.items()}
