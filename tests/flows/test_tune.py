"""`nightbench tune` over simulated machines: halving, confirmation, budget, refusals, and what the lake has of it."""

import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bench.errors import SuiteError, UsageError
from bench.record import NightRecord
from bench.search.halving import next_step
from flows.cli import app
from flows.tune.suites import new_search, write_night_suite
from infra.loadgen.suite_file import read_suite
from infra.settings import Settings
from infra.storage import store
from tests.flows.test_bisect_nights import SUITE
from tests.warehouse.folders import Shape, Told, write_run
from warehouse.lake.query import run_sql

TUNE = """
[slo]
ttft_ms_max = 50.0

[tune]
flags = {{ "--max-num-seqs" = [64, 128, 512], "--async-scheduling" = [true] }}
request_count = 200
rounds = 3
{more}
"""
# By the value of --max-num-seqs: the gap between tokens, and the time to the first one.
SPEEDS = {"256": (5.0, 20.0), "64": (4.0, 20.0), "128": (4.5, 20.0), "512": (2.0, 90.0)}


class Machines:
    """Stands for the machine: it measures at once, at the speed of the flags; `broken` ones do not start."""

    def __init__(self, data: Path) -> None:
        self.data, self.broken, self.stop_after_runs, self.speeds = data, "", -1, SPEEDS

    def measure(self, _settings: Settings, night: NightRecord, _progress: object, **_more: object) -> None:
        for run in store.missing_runs(self.data, night):
            if self.stop_after_runs == 0:
                raise KeyboardInterrupt
            self.stop_after_runs -= 1
            flags = run.scenario.engine.flags
            value = flags[flags.index("--max-num-seqs") + 1]
            gap_ms, ttft_ms = self.speeds[value]
            shape = Shape(
                requests=run.scenario.workload.request_count, ttft_ms=ttft_ms, gap_ms=gap_ms * (1 + 0.001 * run.repeat)
            )
            told = Told("failed", "server", "unknown flag") if value == self.broken else Told()
            write_run(self.data, night, run, shape, told)


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nights_without_prefect: None) -> Machines:
    del nights_without_prefect
    found = Machines(tmp_path / "data")
    monkeypatch.setattr("flows.nightly.try_machines", found.measure)
    monkeypatch.setattr("tasks.loading.write_report", lambda data, night: data / night)  # the search writes it again
    monkeypatch.setattr("flows.temporary_server.temporary_server", nullcontext)
    monkeypatch.setattr("flows.cli.tune.handle_stop_signals", lambda _data: None)  # this process is pytest's
    return found


def tune(folder: Path, *more: str, keys: str = "") -> Result:
    (folder / "suite.toml").write_text(SUITE + TUNE.format(more=keys))
    return CliRunner().invoke(app, ["--data", str(folder / "data"), "tune", str(folder / "suite.toml"), *more])


@pytest.mark.matrix
def test_the_fastest_flags_that_keep_the_slo_are_confirmed_and_a_search_that_was_stopped_goes_on(
    tmp_path: Path, machines: Machines
) -> None:
    """512 sequences are the fastest and miss the SLO, 128 do not start: 64 are left."""
    machines.broken, machines.stop_after_runs = "128", 3
    stopped = tune(tmp_path)
    (cut,) = store.nights(tmp_path / "data")
    machines.stop_after_runs = -1

    found = tune(tmp_path, "--json")

    assert (stopped.exit_code, "run the same command again" in stopped.stderr) == (130, True)
    assert f"night {cut} is resumed" in found.stderr
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout[found.stdout.index("{\n") :])
    assert answer["flags"] == ["--max-num-seqs", "64", "--async-scheduling"]
    assert re.search(r"output_throughput_tok_per_s \+1\d\.\d % \[\+1\d\.\d %, \+1\d\.\d %\]", answer["answer"])
    assert "100.0% of its requests keep the SLO (99% of requests with ttft <= 50 ms)" in answer["answer"]
    data = tmp_path / "data"
    rows = run_sql(
        data, "SELECT kind, round, candidate, is_kept, dropped_for, verdict FROM tuning ORDER BY round, candidate"
    ).rows
    assert rows == (
        ("round", 1, "c1", True, None, None),
        ("round", 1, "c2", False, "failed: unknown flag", None),
        ("round", 1, "c3", False, "misses the SLO: 0.0% of 400 requests keep it", None),
        ("round", 1, "own", True, None, None),
        ("round", 2, "c1", True, None, None),
        ("round", 2, "own", False, "place 2 of 2", None),
        ("confirmation", 3, "c1", True, None, "gain"),
        ("confirmation", 3, "own", False, None, None),
    )
    page = (data / "reports" / f"{answer['nights'][-1]}.html").read_text()
    assert "Search for flags" in page
    again = tune(tmp_path)
    assert again.exit_code == 0
    assert store.nights(data) == answer["nights"], "nothing is measured again"


def test_a_plan_says_what_each_night_takes_and_a_budget_below_one_round_is_refused(tmp_path: Path) -> None:
    plan = tune(tmp_path, "--plan")

    first = "round 1: 4 candidates with 200 requests a run: 8 runs, 4 server starts, 1,616 requests, "
    assert f"{first}minutes unknown before the first night, 0.00 USD" in plan.stderr
    elsewhere = tune(tmp_path, "--plan", "--target", "ssh:bench@gpu.example")
    assert re.search(f"{first}[0-9.]+ min, 0.00 USD", elsewhere.stderr), elsewhere.output
    assert "confirmation with 400 requests a run: 24 runs, " in plan.stderr
    assert plan.exit_code == 0
    for target, keys, why in (
        ("local", "requests_max = 100", "0 requests are used, the next night takes 1,616, of 100"),
        ("ssh:bench@gpu.example", "minutes_max = 0.1", "0.0 minutes are used, the next night takes"),
    ):
        with pytest.raises(UsageError, match=f"too small for one round: {why}"):
            raise tune(tmp_path, "--target", target, keys=keys).exception or AssertionError
    assert not store.nights(tmp_path / "data")


@pytest.mark.matrix
def test_a_budget_ends_a_search_between_two_nights(tmp_path: Path, machines: Machines) -> None:
    del machines

    stopped = tune(tmp_path, keys="requests_max = 2000")

    assert stopped.exit_code == 1
    assert "stopped by its budget: 1,616 requests are used, the next night takes 1,608, of 2000" in stopped.stdout
    assert "c1 (--max-num-seqs 64 --async-scheduling)" in stopped.stdout
    assert len(store.nights(tmp_path / "data")) == 1


@pytest.mark.matrix
def test_where_no_candidate_keeps_the_slo_a_sentence_says_so(tmp_path: Path, machines: Machines) -> None:
    machines.speeds = dict.fromkeys(SPEEDS, (5.0, 90.0))

    found = tune(tmp_path)

    assert found.exit_code == 1
    assert "no candidate has an accepted run that keeps the SLO (99% of requests with ttft <= 50 ms): own: misses" in (
        " ".join(found.stdout.split())
    )
    assert len(store.nights(tmp_path / "data")) == 1


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("flags = {}", "the space of flags is empty"),
        ('flags = { "--max-num-seqs" = [] }', "--max-num-seqs has no values"),
        ('flags = { "max-num-seqs" = [1] }', "'max-num-seqs' is not a flag"),
        ('flags = { "--max-num-seqs" = [64, 64] }', "lists 64 twice"),
        ('flags = { "--max-num-seqs" = [256] }', "every combination of tune.flags is what the engine has already"),
        (f'flags = {{ "--a" = {list(range(100))}, "--b" = {list(range(100))} }}', r"10,000 combinations \(100 x 100\)"),
        ('flags = { "--a" = [1] }\nscenario = "other"', "names 'other', which is none of .* it has chat"),
        ('flags = { "--a" = [1] }\nrequest_count = 500', "the scenario itself sends 400"),
        ('flags = { "--a" = [1] }\nrequest_count = 20', "every short run would be in doubt"),
        (
            'flags = { "--a" = [1] }\nrequest_count = 201\n[scenarios.prompts]\nkind = "multi-turn"\nturns = 2',
            "each conversation of the scenario has 2 turns: give a multiple of them",
        ),
    ],
)
def test_a_search_that_cannot_be_made_is_refused_with_a_sentence(tmp_path: Path, keys: str, why: str) -> None:
    (tmp_path / "suite.toml").write_text(f"{SUITE}\n[tune]\n{keys}\n")

    with pytest.raises(SuiteError, match=why):
        new_search(tmp_path / "suite.toml", "local")


@pytest.mark.parametrize(
    ("keys", "name", "first_count"),
    [
        ('[[machines]]\nname = "here"\nkind = "local"', "chat@here", 100),
        ('[[models]]\nname = "other"\nsource = "generated:tiny"', "chat@other", 100),
        ('[scenarios.prompts]\nkind = "multi-turn"\nturns = 8', "chat", 104),  # 400 requests, halved twice
        ('[[scenarios]]\nname = "chat@x"\nisl = 8\nosl = 8\nconcurrency = 1\nrequest_count = 40', "chat", 100),
    ],
)
def test_a_scenario_is_measured_as_the_suite_names_and_counts_it(
    tmp_path: Path, keys: str, name: str, first_count: int
) -> None:
    written = SUITE.replace("warmup_count = 2", "warmup_count = 8")
    if "[[models]]" in keys:
        written = written.replace('[model]\nname = "tiny"\nsource = "generated:tiny"\n', "")
    flags = '[tune]\nscenario = "chat"\nflags = { "--a" = [1, 2] }'
    (tmp_path / "suite.toml").write_text(f"{written}\n{keys}\n{flags}\n")

    search, tune = new_search(tmp_path / "suite.toml", "local")
    night = write_night_suite(tmp_path / "data", search, next_step(search), tune.rounds)

    assert (search.scenario, search.first_count) == (name, first_count)
    parsed, _ = read_suite(night, is_draft=True)
    assert {one.name for one in parsed.scenarios} == {f"{name}@{candidate}" for candidate in ("own", "c1", "c2")}
    assert {one.request_count for one in parsed.scenarios} == {first_count}


def test_a_suite_without_the_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(SUITE)

    with pytest.raises(SuiteError, match=r"has no \[tune\] table"):
        new_search(tmp_path / "suite.toml", "local")
