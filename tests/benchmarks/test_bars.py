"""How measured values are judged, shown and recorded; every measurement here is invented."""

import subprocess
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS
from benchmarks.bars import Bar, Benchmark, Host, Measured, NotMeasuredError, Recorded, Source, exit_code, judge
from benchmarks.recorded import read_recorded, write
from benchmarks.run import run
from benchmarks.table import table_of

HERE, ELSEWHERE = Host(cpu_model="A", cores=2, kernel="6.1"), Host(cpu_model="B", cores=64, kernel="6.1")
SECONDS = Bar("made.wall_s", "a load", "s", 10.0, baseline="cat")
SHARE = Bar("made.share", "a share", "%", 0.9, "at least", is_portable=True)
ERROR = Bar("made.error_ms", "an error", "ms", 1.0, floor=0.005, is_portable=True)
DAY = date(2026, 3, 1)


def recorded(bar: Bar, value: float, ratio: float | None = None, host: Host = HERE) -> Recorded:
    return Recorded(
        value=value,
        ratio=ratio,
        limit=bar.limit,
        is_met=bar.is_met(value),
        measured_on=DAY,
        commit="0" * 40,
        host=host,
    )


@pytest.mark.parametrize(
    ("bar", "now", "then", "expected", "code"),
    [
        (SECONDS, 5.0, None, "met", 0),
        (SECONDS, 5.0, 4.1, "met", 0),
        (SECONDS, 5.0, 3.9, "slipped", 1),
        (SECONDS, 11.0, 9.9, "missed", 1),
        (SECONDS, 11.0, 10.5, "missed, as recorded", 0),
        (SECONDS, 14.0, 10.5, "slipped", 1),
        (SECONDS, 11.0, None, "missed, never recorded", 0),
        (SHARE, 0.95, 1.0, "met", 0),
        (SHARE, 0.85, 0.95, "missed", 1),
        (SHARE, 0.5, 0.8, "slipped", 1),
        (SHARE, 0.7, 0.8, "missed, as recorded", 0),
        (ERROR, 0.004, 0.0, "met", 0),
        (ERROR, 0.006, 0.0, "met", 0),
        (ERROR, 0.007, 0.0, "slipped", 1),
    ],
)
def test_a_value_is_judged_by_its_limit_and_its_recorded_run(
    bar: Bar, now: float, then: float | None, expected: str, code: int
) -> None:
    line = judge(bar, Measured(now), None if then is None else recorded(bar, then), HERE)

    assert (line.result, exit_code([line])) == (expected, code)


def test_a_recorded_zero_of_a_bar_without_a_floor_slips_with_any_value() -> None:
    leaks = Bar("made.leaks", "leaks", "leaks", 1.0, is_portable=True)

    assert judge(leaks, Measured(1.0), recorded(leaks, 0.0), HERE).result == "slipped"
    assert judge(leaks, Measured(0.0), recorded(leaks, 0.0), HERE).result == "met"


def test_a_ratio_is_compared_with_a_ratio_even_from_another_host() -> None:
    then = recorded(SECONDS, 1.0, ratio=4.0, host=ELSEWHERE)

    assert judge(SECONDS, Measured(9.0, 4.9), then, HERE).result == "met"
    assert judge(SECONDS, Measured(9.0, 5.1), then, HERE).result == "slipped"


def test_seconds_of_another_host_are_not_compared_and_the_line_says_why() -> None:
    line = judge(SECONDS, Measured(9.0), recorded(SECONDS, 1.0, host=ELSEWHERE), HERE)

    assert (line.result, line.worse_by) == ("met", None)
    assert "recorded on another host" in line.note


def test_a_value_read_from_a_file_shows_its_date_and_is_compared_on_its_own_host() -> None:
    source = Source("earlier.json", DAY, ELSEWHERE)

    line = judge(SECONDS, Measured(9.0, source=source), recorded(SECONDS, 9.0, host=ELSEWHERE), HERE)

    assert (line.result, line.worse_by) == ("met", 0.0)
    assert line.note == "measured 2026-03-01, read from earlier.json"


def benchmark_of(values: Mapping[str, Measured] | Exception, *, is_slow: bool = False) -> Benchmark:
    def measure() -> Mapping[str, Measured]:
        if isinstance(values, Exception):
            raise values
        return values

    return Benchmark("made", (SECONDS, SHARE), measure, is_slow)


BOTH = {SECONDS.name: Measured(5.0, 2.0), SHARE.name: Measured(0.95)}


def test_a_run_prints_every_bar_and_records_only_where_it_is_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bars.json"

    assert run([benchmark_of(BOTH)], [], file) == 0
    assert not file.exists()
    assert run([benchmark_of(BOTH)], ["--record"], file) == 0
    assert run([benchmark_of(BOTH)], [], file) == 0

    first, _second, last = [line.split() for line in capsys.readouterr().out.splitlines() if "a load" in line]
    assert " ".join(first) == "made a load at most 10 s 5 s 2.00 x cat - - - met"
    assert " ".join(last).startswith("made a load at most 10 s 5 s 2.00 x cat 5 s (20")
    assert " ".join(last).endswith("2.00 x cat +0% met")
    found = read_recorded(file)[SECONDS.name]
    assert (found.value, found.ratio, found.limit, found.is_met) == (5.0, 2.0, 10.0, True)


def test_a_run_that_slipped_or_is_missed_exits_1(tmp_path: Path) -> None:
    file = tmp_path / "bars.json"
    run([benchmark_of(BOTH)], ["--record"], file)

    assert run([benchmark_of({**BOTH, SECONDS.name: Measured(5.0, 2.6)})], [], file) == 1
    assert run([benchmark_of({**BOTH, SHARE.name: Measured(0.89)})], [], file) == 1


@pytest.mark.parametrize(
    ("error", "expected", "code"),
    [
        (NotMeasuredError("no C compiler"), "not measured", 0),
        (subprocess.CalledProcessError(3, ["night"]), "failed", 1),
        (FileNotFoundError("no such file"), "failed", 1),
    ],
)
def test_a_benchmark_without_values_has_its_reason_in_the_table_and_keeps_its_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: Exception, expected: str, code: int
) -> None:
    file = tmp_path / "bars.json"
    write({SECONDS.name: recorded(SECONDS, 5.0)}, file)
    before = file.read_bytes()

    assert run([benchmark_of(error)], ["--record"], file) == code

    out = capsys.readouterr().out
    assert out.count(expected) == 2
    assert f"made: {error}" in out
    assert file.read_bytes() == before


def test_quick_leaves_out_a_slow_benchmark_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([benchmark_of(AssertionError("it ran"), is_slow=True)], ["--quick"], tmp_path / "bars.json") == 0

    assert "made: takes over a minute, left out by --quick" in capsys.readouterr().out


def test_a_bar_that_its_benchmark_gave_no_value_for_is_not_measured(tmp_path: Path) -> None:
    (tmp_path / "bars.json").write_text("{}")

    assert run([benchmark_of({SECONDS.name: Measured(5.0)})], ["--record"], tmp_path / "bars.json") == 0
    assert set(read_recorded(tmp_path / "bars.json")) == {SECONDS.name}


def test_only_named_benchmarks_run_and_an_unknown_name_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Benchmark("other", (), lambda: pytest.fail("it ran"), is_slow=False)

    assert run([benchmark_of(BOTH), other], ["made"], tmp_path / "bars.json") == 0
    with pytest.raises(SystemExit) as ended:
        run([benchmark_of(BOTH), other], ["nowhere"], tmp_path / "bars.json")

    assert ended.value.code == 2
    assert "unknown benchmark nowhere; choose from made, other" in capsys.readouterr().err


def test_the_bars_of_every_benchmark_have_names_of_their_own_that_start_with_the_benchmarks() -> None:
    names = [bar.name for benchmark in BENCHMARKS for bar in benchmark.bars]

    assert len(set(names)) == len(names)
    assert all(bar.benchmark == benchmark.name for benchmark in BENCHMARKS for bar in benchmark.bars)


def test_every_recorded_bar_is_still_measured_against_the_same_limit() -> None:
    limits = {bar.name: bar.limit for benchmark in BENCHMARKS for bar in benchmark.bars}

    assert {name: found.limit for name, found in read_recorded().items()}.items() <= limits.items()


def test_a_share_is_shown_in_percent_and_what_is_missing_as_a_dash() -> None:
    (row,) = table_of([judge(SHARE, Measured(0.954), None, HERE)]).rows

    assert row == ("made", "a share", "at least 90.0%", "95.4%", "-", "-", "-", "-", "met")
