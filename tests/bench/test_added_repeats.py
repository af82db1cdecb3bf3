"""When a night adds a repeat: until the interval is narrow or the time is up, and never because of a failure."""

import pytest

from bench.added_repeats import MOST, EndedBy, Repeat, ended_by, fits_night, half_width

FIRST = Repeat(50.0, 10.0, is_first_after_start=True)


def repeats(*values: float | None, seconds: float = 10.0) -> list[Repeat]:
    return [Repeat(value, seconds) for value in values]


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        (repeats(100.0, 101.0), None),  # two may agree by chance
        (repeats(100.0, 101.0, 100.0), "narrow"),
        ([FIRST, *repeats(100.0, 101.0)], None),
        ([FIRST, *repeats(100.0, 101.0, 100.0)], "narrow"),
        (repeats(100.0, 150.0, 80.0), None),
        (repeats(100.0, 150.0, 80.0, seconds=30.0), "time"),  # a fourth would end after 120 s
        (repeats(100.0, 150.0, 80.0, seconds=25.0), None),
        ([FIRST, *repeats(100.0, seconds=95.0)], None),  # one value has no interval
        (repeats(*[100.0, 200.0] * (MOST // 2), seconds=1.0), "most"),
        (repeats(100.0, None, 150.0), "failure"),
    ],
)
def test_a_repeat_is_added_until_the_interval_is_narrow_or_the_time_is_up(
    done: list[Repeat], expected: EndedBy | None
) -> None:
    assert ended_by(done, half_width_max=0.05, scenario_s=100.0) == expected


@pytest.mark.parametrize(
    ("missing", "runs_s", "fits"), [(0, 30.0, True), (0, 29.0, False), (1, 40.0, True), (1, 39.0, False)]
)
def test_a_repeat_fits_a_night_after_its_missing_runs(*, missing: int, runs_s: float, fits: bool) -> None:
    assert fits_night([10.0, 10.0], missing, 10.0, runs_s) == fits
    assert fits_night([10.0, 10.0], missing, 10.0, None)


def test_the_half_width_is_students_on_logarithms() -> None:
    # t(2) = 4.303, over the square root of 3; logarithms 0.1 apart have this standard deviation.
    assert half_width([1.0, 1.1051709, 1.2214028]) == pytest.approx(4.303 * 0.1 / 3**0.5, rel=1e-4)
    assert half_width([1.0]) is None
