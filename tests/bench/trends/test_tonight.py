"""A night's verdicts on all series, the changes that it says, and what later nights make of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest

from bench.trends.judgement import NightJudgement, SaidChange, SeriesVerdict
from bench.trends.robust import SD_MIN
from bench.trends.series import Point, Series
from bench.trends.tonight import Known, judge_series, known_of
from tests.bench.trends.test_changes import night, series, values

SD = 0.01


def judged(
    listed: Sequence[Series], at: int, earlier: Sequence[tuple[list[SeriesVerdict], list[SaidChange]]] = (), **more: str
) -> tuple[list[SeriesVerdict], list[SaidChange]]:
    """What is said on night `at`, after what was said on earlier ones."""
    said = [change for _, changes in earlier for change in changes]
    verdicts = [verdict for found, _ in earlier for verdict in found]
    shown = [replace(one, points=one.points[: at + 1]) for one in listed]
    return judge_series(shown, night(at).night, known_of(said, verdicts), said, **more)


def steps(count: int = 5, *, at: int = 20, by: float = -0.1, nights: int = 40, **changed_at: int) -> list[Series]:
    return [series(values(seed, at, by, nights), f"m/{seed}", **changed_at) for seed in range(count)]


def test_a_step_is_suspect_in_every_series_on_its_night_and_one_event() -> None:
    verdicts, said = judged(steps(engine_version=20), 20)

    assert {verdict.judgement for verdict in verdicts} == {"suspect"}
    assert {(one.state, one.cause, one.first_bad, one.direction) for one in said} == {
        ("suspect", "engine", night(20).night, "worse")
    }
    assert len({one.event_id for one in said}) == 1


def test_a_night_before_the_step_is_not_suspect() -> None:
    verdicts, said = judged(steps(), 19)

    assert {verdict.judgement for verdict in verdicts} <= {"inconclusive", "equivalent"}
    assert said == []


def test_a_second_bad_night_elsewhere_confirms_it_and_a_new_level_begins() -> None:
    listed = steps()
    first = judged(listed, 20)
    second = judged(listed, 21, [first], rerun_of=night(20).night)

    assert {(one.judgement, one.night, one.rerun) for one in second[0]} == {
        ("confirmed", night(20).night, night(21).night)
    }
    assert {one.state for one in second[1]} == {"confirmed"}
    assert {one.event_id for one in second[1]} == {one.event_id for one in first[1]}
    after = judged(listed, 25, [first, second])
    assert {verdict.baseline_nights for verdict in after[0]} == {5}
    assert "suspect" not in {verdict.judgement for verdict in after[0]}


def test_a_usual_second_night_makes_the_first_a_host_outlier_that_no_level_counts() -> None:
    listed = [
        replace(
            one,
            points=tuple(
                replace(point, value=point.value * (0.8 if at == 20 else 1)) for at, point in enumerate(one.points)
            ),
        )
        for one in steps(by=0.0)
    ]
    first = judged(listed, 20)
    second = judged(listed, 21, [first], rerun_of=night(20).night)
    after = judged(listed, 22, [first, second])

    assert {verdict.judgement for verdict in second[0]} == {"host outlier"}
    assert {(one.kind, one.state, one.until) for one in second[1]} == {("excursion", "host", night(20).night)}
    assert {verdict.baseline_nights for verdict in after[0]} == {21}


@pytest.mark.parametrize("by", [0.0, -0.01])
def test_a_second_night_says_nothing_of_what_was_not_suspect(by: float) -> None:
    slower, usual = steps(1)[0], series(values(by=by), "m/usual")
    quiet = tuple(replace(point, value=100.0 * (1 + by * (at >= 20)) + at % 3) for at, point in enumerate(usual.points))
    listed = [slower, replace(usual, points=quiet)]
    first = judged(listed, 20)
    second = judged(listed, 21, [first], rerun_of=night(20).night)

    assert [one.judgement == "suspect" for one in first[0]] == [True, False]
    assert [(one.series, one.judgement) for one in second[0]] == [(slower.key.series, "confirmed")]
    assert {one.series for one in second[1]} == {slower.key.series}


def test_a_suspect_that_was_not_measured_again_is_confirmed_by_the_nights_after_it() -> None:
    listed = steps()
    found = [judged(listed, 20)]
    for at in range(21, 26):
        found.append(judged(listed, at, found))

    confirmed = [one for _, said in found for one in said if one.state == "confirmed"]
    assert {one.series for one in confirmed} == {one.key.series for one in listed}
    assert {one.event_id for one in confirmed} == {found[0][1][0].event_id}


def test_a_small_change_that_lasts_is_said_within_five_nights_and_once() -> None:
    listed, found = steps(10, by=-0.03), list[tuple[list[SeriesVerdict], list[SaidChange]]]()
    for at in range(15, 26):
        found.append(judged(listed, at, found))

    said = [change for _, changes in found[5:] for change in changes]
    assert len({change.series for change in said}) >= 8
    states = Counter((change.series, change.state) for change in said)
    assert max(states.values()) == 1


def test_a_suspect_is_said_on_its_first_night_only() -> None:
    listed = steps()
    first = judged(listed, 20)
    second = judged(listed, 21, [first])

    assert "suspect" in {verdict.judgement for verdict in second[0]}
    assert "suspect" not in {change.state for change in second[1]}


def test_a_change_is_said_once() -> None:
    listed, found = steps(), list[tuple[list[SeriesVerdict], list[SaidChange]]]()
    for at in range(12, 40):
        found.append(judged(listed, at, found))
    said = [(one.series, one.state) for _, changes in found for one in changes if one.state == "confirmed"]

    assert sorted(said) == sorted((one.key.series, "confirmed") for one in listed)


def test_what_one_of_many_tests_shows_by_chance_is_inconclusive() -> None:
    quiet = [series(values(seed, 20, 0.0), f"m/{seed}") for seed in range(200)]
    verdicts, _ = judged(quiet, 30)

    chance = [one for one in verdicts if one.p is not None and one.p < 0.005]
    assert not [one for one in verdicts if one.judgement == "suspect"]
    assert {one.reason for one in chance} <= {
        "among 200 tests of this night one so far off is expected by chance",
        *(f"changes below {one.mde_pct:.1f} % would not be seen" for one in chance),
    }


def test_nights_of_another_method_are_no_baseline() -> None:
    verdicts, said = judged(steps(by=-0.3, method_version=20), 20)

    assert {(one.judgement, one.baseline_nights) for one in verdicts} == {("insufficient", 0)}
    assert said == []  # the end of a segment is no loss


def test_the_end_of_a_segment_by_rule_is_said_once_it_has_a_night_after_it() -> None:
    _, said = judged(steps(by=-0.3, method_version=20), 21)

    assert {(one.kind, one.state, one.cause) for one in said} == {("new_method", "explained", "method")}


def test_what_was_said_of_a_night_stays_when_it_is_judged_again() -> None:
    verdicts, said = judged(steps(1), 20)
    at = verdicts[0].measured_at
    first = NightJudgement(night="n", said_at=at, verdicts=tuple(verdicts), changes=tuple(said))
    again = NightJudgement(night="n", said_at=at, verdicts=tuple(verdicts[:0]))

    assert again.with_earlier(first).changes == first.changes
    assert first.with_earlier(first).changes == first.changes
    assert again.with_earlier(None) == again


@pytest.mark.parametrize("points", [0, 1, 2])
def test_a_series_of_few_nights_is_not_judged(points: int) -> None:
    verdicts, said = judged([series(np.full(max(points, 1), 100.0))], points - 1 if points else 0)

    assert {one.judgement for one in verdicts} == {"insufficient"}
    assert said == []


def test_the_nights_of_a_judged_series_are_not_held() -> None:
    """Of five million values they are gigabytes; what is left is tonight, the last good night, and those of changes."""
    alive: list[int] = []
    seen: list[ref[Point]] = []

    def one_by_one() -> Iterator[Series]:
        for one in range(12):
            alive.append(sum(point() is not None for point in seen))
            listed = steps(1, nights=60)[0]
            seen.extend(ref(point) for point in listed.points)
            yield replace(listed, key=replace(listed.key, series=f"m/{one}"))

    _, said = judge_series(one_by_one(), None, {}, ())

    assert len(said) == 12
    assert alive[-1] < 2 * 60 + 5 * 12


def on_two_leases(one: Series, at: int, first: float) -> Series:
    """The same with another value of one night, from a lease of it that was lost."""
    lost = replace(one.points[at], value=one.points[at].value * first)
    return replace(one, points=(*one.points[:at], lost, *one.points[at:]))


def test_the_first_lease_of_a_night_is_not_among_the_nights_that_the_second_is_held_against() -> None:
    shown = on_two_leases(series(values(by=0.0)[:21]), 20, 0.5)

    (verdict,), _ = judge_series([shown], night(20).night, {}, [])

    assert (verdict.last_good, verdict.baseline_nights) == (night(19).night, 20)
    assert verdict.judgement in {"inconclusive", "equivalent"}


def test_a_night_that_measures_again_is_held_against_the_last_lease_of_the_night_it_repeats() -> None:
    shown = on_two_leases(series(values()[:22]), 20, 1 / 0.9)

    (verdict,), _ = judge_series([shown], night(21).night, {}, [], rerun_of=night(20).night)

    assert (verdict.judgement, verdict.last_good) == ("confirmed", night(19).night)


def test_a_level_that_begins_on_a_night_of_two_leases_is_judged_by_the_noise_before_it() -> None:
    shown = on_two_leases(series(values()[:24]), 20, 1.001)
    known = {shown.key: Known(begins=frozenset({night(20).night}))}

    (verdict,), _ = judge_series([shown], night(23).night, known, [])

    assert (verdict.baseline_nights, verdict.judgement == "insufficient") == (4, False)


def test_a_level_without_any_noise_takes_none_from_the_first_nights_of_the_next() -> None:
    points = [night(at, 100.0 if at < 20 else 90.0, engine_commit="c") for at in range(24)]
    one = replace(series(values()[:1]), points=tuple(points))
    known = {one.key: Known(begins=frozenset({night(20).night}))}

    (verdict,), _ = judge_series([one], night(23).night, known, [])

    assert verdict.baseline_nights == 3
    assert verdict.ci_hi is not None
    assert verdict.ci_hi >= 100 * 2 * SD_MIN
