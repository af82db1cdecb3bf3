"""A slow-down between two nights is told from noise by its interval, and the busy processes have the names they say."""

import json
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.first_nights import (
    ACCEPTED,
    BUSY,
    NAMED,
    REJECTED,
    Night,
    Pair,
    Pairs,
    bars_of,
    busy_processes,
    core_speed_in_words,
    read_pairs,
)
from benchmarks.told_apart import slow_down

QUIET = {"one": [1.0, 1.01, 0.99], "four": [2.0, 2.02, 1.98]}


def test_a_slow_down_beyond_noise_has_an_interval_above_zero() -> None:
    slower = {name: [1.15 * value for value in values] for name, values in QUIET.items()}

    found = slow_down(QUIET, slower)

    assert found is not None
    assert found.share == pytest.approx(0.15)
    assert 0.1 < found.low < found.high < 0.2


def test_noise_is_no_slow_down_and_one_repeat_says_nothing() -> None:
    wide = {"one": [1.0, 1.6, 0.8]}

    found = slow_down(wide, {"one": [1.15, 0.9, 1.7]})

    assert found is not None
    assert found.low < 0 < found.high
    assert slow_down({"one": [1.0]}, {"one": [1.0, 2.0]}) is None


def test_the_busy_processes_run_under_their_names_and_are_ended() -> None:
    with busy_processes():
        listed = subprocess.run(["ps", "-eo", "comm"], capture_output=True, text=True, check=True).stdout.split()
        assert set(BUSY) <= set(listed)
    listed = subprocess.run(["ps", "-eo", "comm"], capture_output=True, text=True, check=True).stdout.split()
    assert not set(BUSY) & set(listed)


def test_rows_that_are_not_accepted_are_counted_where_the_cores_changed_their_speed() -> None:
    row = {"verdict": "accepted", "scenario": "one", "core_work_ms": 0.2}
    slow, known = row | {"verdict": "suspect", "core_work_ms": 0.25}, row | {"scenario": "four", "verdict": "suspect"}
    older = {"verdict": "suspect", "scenario": "one"}
    night, before = Night(0, 100.0, (row, slow, known)), Night(0, 100.0, (older,))

    found = core_speed_in_words([Pair(night, before)])

    assert "took 0.2 to 0.25 ms, so they ran at 80% to 100% of their best speed; lowest of one night: 80%" in found
    assert "1 of 3 rows that are not accepted" in found
    assert core_speed_in_words([Pair(before, before)]) == "speed of the cores: not measured"


def test_pairs_of_several_evenings_are_counted_together(tmp_path: Path) -> None:
    wide = {"verdict": "suspect", "is_wide": True, "said": "busy_host: busy_cpu took 60 %", "seconds": None}
    rows = ({"verdict": "accepted", "is_wide": False, "said": "", "seconds": None}, wide)
    night = Night(0, 100.0, rows)
    file = tmp_path / "pairs.json"
    file.write_text(json.dumps(asdict(Pairs([Pair(night, night)], [Pair(night, night)]))))

    found = bars_of(read_pairs(file))

    assert found[ACCEPTED.name].value == 0.5
    assert found[NAMED.name].value == 1.0
    assert found[REJECTED.name].value == 0
    assert bars_of(read_pairs(tmp_path / "none yet")).keys() == {REJECTED.name}
