"""Neighbouring releases in turns: each pair is one night, kept in a file of its own and written beside the history."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from bench.errors import ServerStartError
from bench.trends.sides import TAG
from benchmarks.history.pairs import (
    MeasuredPair,
    collect_pairs,
    export_pairs,
    missing_pairs,
    neighbours,
    pair_file,
    read_pairs,
)
from infra.loadgen.suite_file import make_night
from infra.no_telemetry import QUIET
from infra.storage import store
from warehouse.demo.rows import night_rows, with_every_column
from warehouse.demo.story import story
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import STAGING, one_loader, write_rows
from warehouse.lake.swap import swap_in
from warehouse.rows.row_ids import run_ids
from warehouse.rows.run_folder import RunId

RELEASES = {"vllm": ["0.30.0", "0.31.0", "0.32.0"], "llama.cpp": ["b11434", "b12000"]}
PAIR = ("vllm", "0.31.0", "0.32.0")
ROUNDS = 3
SLOWER = 0.9
METRIC = "output_throughput_tok_per_s"


class Flow:
    """Loads a night of the suite in which each variant is slower than the one before, or fails as it is told."""

    def __init__(self, data: Path, *fails: Exception) -> None:
        self.data, self.fails, self.suites = data, list(fails), list[Path]()

    def __call__(self, suite: Path, _begun: str | None) -> str:
        self.suites.append(suite)
        if self.fails:
            raise self.fails.pop()
        night = make_night(suite, "local", poc=False, is_draft=True)
        name = f"2026-03-{len(self.suites):02}T010000Z"
        store.write_json(store.night_file(self.data, name), night.model_copy(update={"night": name}))
        template = night_rows(next(iter(story())))["measurements"][0]
        draw = np.random.default_rng(1)
        repeats = max(run.repeat for run in night.runs) + 1
        rows = [
            template
            | run_ids(RunId(name, f"{side:016}", repeat))
            | {
                "scenario": f"chat{TAG}{ascii_lowercase[side]}",
                METRIC: 100.0 * SLOWER**side * float(np.exp(draw.normal(0, 0.002))),
            }
            for side in range(len({run.scenario.server_id for run in night.runs}))
            for repeat in range(repeats)
        ]
        with one_loader(self.data) as lake:
            write_rows(lake / STAGING, "measurements", name, with_every_column("measurements", rows))
            swap_in(lake)
            build_warehouse(self.data)
        return name


def collect(data: Path, flow: Flow) -> MeasuredPair:
    collect_pairs(data, missing_pairs(data, [PAIR]), {}, flow, lambda _line: None, ROUNDS)
    return MeasuredPair.model_validate_json(pair_file(data, PAIR).read_bytes())


def test_each_two_neighbours_are_a_pair_in_a_drawn_order() -> None:
    pairs = neighbours(RELEASES)

    assert sorted(pairs) == [
        ("llama.cpp", "b11434", "b12000"),
        ("vllm", "0.30.0", "0.31.0"),
        ("vllm", "0.31.0", "0.32.0"),
    ]
    assert {tuple(neighbours(RELEASES, seed)) for seed in range(5)} != {tuple(pairs)}


def test_a_pair_takes_turns_in_one_night_and_is_measured_once(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    pair = collect(tmp_path, flow)

    night = make_night(flow.suites[0], "local", poc=False, is_draft=True)
    assert {run.scenario.engine.version for run in night.runs} == set(PAIR[1:])
    assert (night.suite.turns, pair.reason) == (2 * ROUNDS, "")
    found = next(one for one in pair.found if one.metric == METRIC)
    assert (found.scenario, found.verdict) == ("chat", "loss")
    assert found.ci_lo is not None
    assert found.ci_hi is not None
    assert found.ci_lo < 100 * (SLOWER - 1) < found.ci_hi

    collect(tmp_path, flow)
    assert len(flow.suites) == 1


def test_a_pair_that_fails_is_kept_with_its_reason(tmp_path: Path) -> None:
    pair = collect(tmp_path, Flow(tmp_path, ServerStartError("no port was free")))

    assert (pair.night, pair.reason, pair.found) == (None, "no port was free", ())


def test_the_pairs_are_rows_beside_the_history(tmp_path: Path) -> None:
    collect(tmp_path, Flow(tmp_path))
    unbuilt = {"0.30.0": "it cannot be built"}
    collect_pairs(tmp_path, [("vllm", "0.30.0", "0.31.0")], unbuilt, Flow(tmp_path), print, ROUNDS)

    with export_pairs(read_pairs(tmp_path), tmp_path / "set").open() as lines:
        rows = list(csv.DictReader(lines))

    assert [row["reason"] for row in rows if not row["metric"]] == ["it cannot be built"]
    assert {(row["one"], row["other"]) for row in rows if row["metric"] == METRIC} == {PAIR[1:]}


def test_nothing_is_reported_of_a_night_that_a_collection_runs() -> None:
    program = (
        "import os, sys; from infra.no_telemetry import QUIET; from benchmarks.history.flow_runs import run_nights; "
        "begun = run_nights(); sys.modules['flows.end_state'] = None\n"
        "try: begun.__enter__()\nexcept ImportError: print(QUIET.items() <= os.environ.items())"
    )
    clean = {name: value for name, value in os.environ.items() if name not in QUIET}

    told = subprocess.run([sys.executable, "-c", program], env=clean, capture_output=True, text=True, check=True)

    assert told.stdout.strip() == "True"
