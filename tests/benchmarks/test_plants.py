"""Planted changes: the order is drawn, the engine has the change and its night does not, and the page counts right."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from benchmarks.history.beside_plants import false_alarms, night_of_alarm, plants_section, read_values
from benchmarks.history.collect import collect
from benchmarks.history.journal import Row, keep_row
from benchmarks.history.pairs import Difference, export_pairs, missing_pairs, read_pairs
from benchmarks.history.plan import SUITES
from benchmarks.history.planted_engine import CHANGES, PLACEBO, VARIABLE, plant, write_engine
from benchmarks.history.plants import (
    BEFORE,
    ENGINE,
    NIGHTS_FILE,
    PAIRS_FILE,
    PLACEBOS,
    PLANTS,
    REPEATS,
    export_plants,
    measure_changes,
    planned_plants,
    planted_pairs,
    side_of,
    suite_of,
)
from benchmarks.history.resampled import METRICS
from infra.loadgen.suite_file import make_night, read_suite
from tests.benchmarks.small_history import write_small_history
from tests.benchmarks.test_beside_pairs import pair
from tests.benchmarks.test_history import Flow
from tests.benchmarks.test_pairs import SLOWER
from tests.benchmarks.test_pairs import Flow as LongFlow
from warehouse.report.figures import csv_text

METRIC = METRICS[0]
FAKE = f"""#!{sys.executable} -P
import json, os, sys, time
print(json.dumps([sys.argv[1:], os.environ.get("OMP_NUM_THREADS")]), flush=True)
time.sleep(float(os.environ.get("FAKE_S", 0)))
"""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """The script before a `vllm` that prints its arguments and its threads, and waits for FAKE_S seconds."""
    vllm = tmp_path / "bin" / "vllm"
    vllm.parent.mkdir()
    vllm.write_text(FAKE)
    vllm.with_name("python").symlink_to(sys.executable)
    vllm.chmod(0o755)
    return write_engine(tmp_path / ENGINE, vllm)


def started(engine: Path, *argv: str, **environment: str) -> tuple[list[str], str | None]:
    own = os.environ | {"OMP_NUM_THREADS": "1"} | environment
    told = subprocess.run([engine, *argv], env=own, capture_output=True, check=True, text=True)
    arguments, threads = json.loads(told.stdout)
    return arguments, threads


def test_no_change_comes_before_the_first_nights_and_each_has_its_number_in_a_drawn_order() -> None:
    nights = planned_plants()

    assert [one.release for one in nights[:BEFORE]] == [PLACEBO] * BEFORE
    changes = {change: PLANTS for change in CHANGES if change != PLACEBO}
    assert Counter(one.release for one in nights[BEFORE:]) == changes | {PLACEBO: PLACEBOS}
    assert sum(changes.values()) >= 30
    assert BEFORE + PLACEBOS == 30
    assert [one.is_aa for one in nights] == [one.release == PLACEBO for one in nights]
    assert [one.release for one in planned_plants(seed=1)] != [one.release for one in nights]


@pytest.mark.parametrize(
    ("change", "flags", "threads"),
    [
        (PLACEBO, [], "1"),
        ("three-sequences", ["--max-num-seqs", "3"], "1"),
        ("small-blocks", ["--block-size", "32"], "1"),
        ("two-threads", [], "2"),
    ],
)
def test_the_engine_is_started_with_the_planted_change(
    engine: Path, change: str, flags: list[str], threads: str
) -> None:
    plant(engine.parent, change)

    assert started(engine, "serve", "a model", "--port", "1") == (["serve", "a model", "--port", "1", *flags], threads)
    assert started(engine, "--version") == (["--version"], "1")


def test_a_side_of_a_long_run_has_the_change_that_it_names_whatever_is_planted(engine: Path) -> None:
    plant(engine.parent, "small-blocks")

    arguments, threads = started(engine, "serve", **dict([side_of("two-threads").environment[0].split("=")]))

    assert (arguments, threads) == (["serve"], "2")


def test_an_unknown_change_starts_no_engine(engine: Path) -> None:
    told = subprocess.run(
        [engine, "serve"], env=os.environ | {VARIABLE: "worse"}, capture_output=True, check=False, text=True
    )

    assert (told.returncode, told.stdout) == (2, "")
    assert "there is no planted change 'worse'" in told.stderr


def test_a_competitor_takes_its_share_of_each_core_and_ends_with_the_engine(engine: Path) -> None:
    plant(engine.parent, "competitor-20")
    with subprocess.Popen([engine, "serve"], env=os.environ | {"FAKE_S": "60"}, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while len(found := psutil.Process(process.pid).children()) < (os.cpu_count() or 1):
            time.sleep(0.05)
        while sum(one.cpu_times().user for one in found) < 0.5 * len(found):
            time.sleep(0.1)
        cores = sorted(one.cpu_affinity() or [] for one in found)
        shares = [one.cpu_times().user / (time.time() - one.create_time()) for one in found]
        process.kill()
    psutil.wait_procs(found, timeout=30)

    assert cores == [[core] for core in sorted(os.sched_getaffinity(0))]
    assert max(shares) < 0.4  # the start of Python counts as well
    assert not any(one.is_running() for one in found)


def test_every_night_has_one_suite_and_the_change_stands_in_the_journal_alone(tmp_path: Path, engine: Path) -> None:
    planned = planned_plants()[BEFORE : BEFORE + 6]
    planted = []

    def suite(data: Path, one: object) -> Path:
        path = suite_of(data, one)  # type: ignore[arg-type]
        planted.append((engine.parent / "plant").read_text())
        return path

    flow = Flow(tmp_path)
    collect(tmp_path, planned, {}, flow, lambda _line: None, suite)

    assert planted == [one.release for one in planned]
    assert len(set(planted)) > 1
    records = [path.read_text() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    records += [path.read_text() for path in (tmp_path / "suites").iterdir()]
    assert len(records) > len(planned)
    assert not [text for text in records for change in planted if change != PLACEBO and change in text]


def test_all_changes_take_turns_in_one_long_run_and_each_is_compared_with_none(tmp_path: Path) -> None:
    flow = LongFlow(tmp_path)
    measure_changes(tmp_path, 2, flow, lambda _line: None)

    (suite,) = flow.suites
    night = make_night(suite, "local", poc=False, is_draft=True)
    sides = [(run.scenario.name[-1], run.scenario.engine.environment[VARIABLE]) for run in night.runs]
    assert Counter(sides) == dict.fromkeys(zip("abcdefgh", CHANGES, strict=True), 12)  # of three loads, in four turns
    pairs = {one.other: one for one in read_pairs(tmp_path)}
    assert {one.one for one in pairs.values()} == {PLACEBO}
    found = [pairs[change].found[0].effect_pct for change in CHANGES if change != PLACEBO]
    assert found == pytest.approx([100 * (SLOWER**place - 1) for place in range(1, len(CHANGES))], abs=1)
    assert missing_pairs(tmp_path, planted_pairs()) == []


def test_the_values_of_the_nights_are_those_of_their_series(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "set"
    write_small_history(data, tmp_path / "history")

    path = export_plants(data, folder)

    assert path == folder / NIGHTS_FILE
    found = read_values(folder)
    assert {metric for _scenario, metric in found} == set(METRICS)
    assert {len(values) for values in found.values()} == {10}
    one = found["chat-1", METRIC]
    assert len({value.planted for value in one}) == 2
    assert [value.place for value in one] == sorted(value.place for value in one)


def write_set(folder: Path, *changed: Difference) -> None:
    """Fifteen nights without a change, then five with one that makes the engine 20 % slower, then one without."""
    quiet = [(PLACEBO, 100.0 + at % 2) for at in range(16)]
    values = [*quiet[:15], *[("competitor-20", 80.0 + at % 2) for at in range(5)], quiet[15]]
    rows = [
        {"place": at, "planted": planted, "scenario": "chat-1", "metric": METRIC, "value": value}
        | {"began_at": f"2026-03-{at + 1:02}T01:00:00Z", "host": "a host, 2 cores"}
        for at, (planted, value) in enumerate(values)
    ]
    (folder / NIGHTS_FILE).write_text(csv_text(rows[::-1]))
    export_pairs([pair(*changed).model_copy(update={"one": PLACEBO, "other": "competitor-20"})], folder, PAIRS_FILE)


def difference(verdict: str, effect_pct: float) -> Difference:
    return Difference(scenario="chat-1", metric=METRIC, verdict=verdict, effect_pct=effect_pct, ci_lo=None, ci_hi=None)


def below_ninety(values: object) -> list[int]:
    """A rule that sees each night below 90."""
    return [at for at, value in enumerate(values) if value < 90]  # type: ignore[arg-type, var-annotated]


def third_night(values: object) -> list[int]:
    """A rule that needs three nights below 90."""
    return below_ninety(values)[2:]


def never(_values: object) -> list[int]:
    return []


RULES = {"quick": below_ninety, "slow": third_night, "blind": never}


def test_a_change_is_found_on_the_night_on_which_a_rule_sees_it(tmp_path: Path) -> None:
    write_set(tmp_path, difference("loss", -19.8))

    page = plants_section(RULES, tmp_path)

    assert "| quick | 0.00 | - | - | - | 100%, 100%, 100% of 1 | 0 of 0 |" in page
    assert "| slow | 0.00 | - | - | - | 0%, 100%, 100% of 1 | 0 of 0 |" in page
    assert "| blind | 0.00 | - | - | - | 0%, 0%, 0% of 1 | 0 of 0 |" in page
    assert f"| competitor-20 | chat-1 | {METRIC} | -19.8 % (loss) | 1 | 3 | - |" in page
    assert "in\n5 nights, and 16 nights without one" in page
    assert "measured 2026-03-01 to 2026-03-21 on a host, 2 cores.\n" in page


def test_a_difference_that_the_long_run_leaves_open_is_counted_by_its_change_alone(tmp_path: Path) -> None:
    write_set(tmp_path, difference("inconclusive", -19.8))

    page = plants_section(RULES, tmp_path)

    assert "1 of its 1 differences are inconclusive" in page
    assert "| quick | 0.00 | - | - | - | - | 0 of 0 |" in page
    assert f"| competitor-20 | {CHANGES['competitor-20'][0]} | 1 of 1 | 1 of 1 | 0 of 1 |" in page
    assert f"| two-threads | {CHANGES['two-threads'][0]} | 0 of 0 | 0 of 0 | 0 of 0 |" in page
    assert f"| competitor-20 | chat-1 | {METRIC} |" not in page


def test_the_spread_of_the_nights_without_a_change_stands_beside_what_the_rules_see(tmp_path: Path) -> None:
    write_set(tmp_path, difference("loss", -19.8))  # the values are 100 and 101 in turns, 8 of each

    assert "spread by 0.5% to 0.5%, as the standard" in plants_section(RULES, tmp_path)


def test_a_change_seen_where_a_long_run_finds_none_counts_against_a_rule(tmp_path: Path) -> None:
    write_set(tmp_path, difference("equivalent", 0.1))

    page = plants_section(RULES, tmp_path)

    assert "| quick | 0.00 | - | - | - | - | 1 of 1 |" in page
    assert "| blind | 0.00 | - | - | - | - | 0 of 1 |" in page


def test_alarms_without_a_change_are_counted_by_the_year(tmp_path: Path) -> None:
    write_set(tmp_path)
    nights = read_values(tmp_path)["chat-1", METRIC]

    assert false_alarms(lambda values: [len(values) - 1], [nights]) == f"{365 / 16:.2f}"


def test_a_rule_sees_no_night_after_the_first_one_of_a_change_but_those_of_the_change(tmp_path: Path) -> None:
    write_set(tmp_path)
    nights = read_values(tmp_path)["chat-1", METRIC]

    assert night_of_alarm(lambda values: [16] if len(values) > 16 else [], nights, "competitor-20") == 2  # 15 before it
    assert night_of_alarm(below_ninety, nights, "two-threads") is None


def test_a_history_without_plants_has_no_section(tmp_path: Path) -> None:
    assert plants_section(RULES, tmp_path) == ""


def test_a_night_that_measured_nothing_has_no_value(tmp_path: Path) -> None:
    write_small_history(tmp_path / "data", tmp_path / "history")
    row = Row(
        round=99,
        engine="vllm",
        release=PLACEBO,
        is_aa=True,
        night=None,
        began_at=datetime(2026, 11, 28, tzinfo=UTC),
        wall_s=1.0,
        commit=None,
        reason="no port was free",
    )
    keep_row(tmp_path / "data", row)
    export_plants(tmp_path / "data", tmp_path / "set")

    assert 99 not in {value.place for values in read_values(tmp_path / "set").values() for value in values}


def test_all_nights_have_the_suite_of_the_history_with_fewer_repeats(tmp_path: Path) -> None:
    suites = [read_suite(suite_of(tmp_path, one), is_draft=True, target="local")[0] for one in planned_plants()[-2:]]

    of_history = read_suite(SUITES["vllm"], is_draft=True, target="local")[0]
    quality = of_history.quality.model_copy(update={"scenario_s": 0})
    assert suites == [of_history.model_copy(update={"repeats": REPEATS, "quality": quality})] * 2
    assert of_history.repeats == 5 > REPEATS
