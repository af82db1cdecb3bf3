"""Causes are what differs between two nights, and changes of one event have one id."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain

import numpy as np
import pytest

from bench.metrics import Floats
from bench.trends.causes import cause_of
from bench.trends.changes import Change, changes_of
from bench.trends.events import with_events
from bench.trends.lasting import is_lasting
from bench.trends.series import Point, Series, SeriesKey, lower_is_better, measured_of, varying

START = datetime(2026, 3, 1, 2, tzinfo=UTC)


def night(at: int, value: float = 1.0, **stack: str) -> Point:
    moment = START + timedelta(days=at)
    return Point(moment.isoformat(), moment, value, stack=stack)


def series(values: Floats, name: str = "m/a", **changed_at: int) -> Series:
    """A series whose commit is new each night and whose other fields change once, at the given night."""
    stacks = [
        {field: "new" if at >= when else "old" for field, when in changed_at.items()} for at in range(len(values))
    ]
    points = (night(at, float(v), engine_commit=f"c{at}", **stacks[at]) for at, v in enumerate(values))
    return Series(SeriesKey("us", name, "throughput", "tok/s"), tuple(points), is_lower_better=False)


def values(seed: int = 0, at: int = 20, by: float = -0.1, nights: int = 40) -> Floats:
    found = 1000 * np.exp(np.random.default_rng(seed).normal(0, 0.01, nights))
    found[at:] *= 1 + by
    return np.asarray(found)


def in_events(*all_series: Series) -> list[Change]:
    changes = [change for one in all_series for change in changes_of(one)]
    measured = Counter(chain.from_iterable(measured_of(one) for one in all_series))
    return with_events(changes, measured)


@pytest.mark.parametrize(
    ("field", "cause", "state"),
    [
        ("host", "host", "host"),
        ("driver", "driver", "confirmed"),
        ("client_version", "client", "confirmed"),
        ("arrivals", "client", "confirmed"),
        ("repeats", "repeats", "confirmed"),
        ("image", "image", "confirmed"),
    ],
)
def test_what_changes_rarely_explains_more_than_a_commit_that_is_new_each_night(
    field: str, cause: str, state: str
) -> None:
    (change,) = changes_of(series(values(), "m/a", **{field: 20}))

    assert (change.cause.kind, change.state, next(iter(change.cause.differs))) == (cause, state, field)
    assert "engine_commit changed, too" in change.cause.sentence


def test_a_field_that_changed_on_another_night_is_no_cause() -> None:
    (change,) = changes_of(series(values(), host=25))

    assert change.cause.kind == "engine"


def test_only_what_differs_is_named() -> None:
    cause = cause_of(night(0, host="a", driver="1"), night(1, host="b", driver="1"), {})

    assert cause.sentence == "only host changed from a to b (client version not recorded)"


def test_where_nothing_differs_the_cause_is_unknown() -> None:
    cause = cause_of(night(0), night(1), {})

    assert (cause.kind, cause.sentence) == ("unknown", "nothing is recorded that could explain it")


@pytest.mark.parametrize(("field", "cause"), [("method_version", "method"), ("workload", "workload")])
def test_a_new_method_or_workload_ends_a_segment_and_says_so(field: str, cause: str) -> None:
    (change,) = changes_of(series(values(), "m/a", **{field: 20}, host=20))

    assert (change.kind, change.state, change.cause.kind) == ("new_method", "explained", cause)
    assert change.effect.pct == pytest.approx(-10, abs=2)


def test_a_loss_and_a_gain_are_told_apart_by_the_metric() -> None:
    loss, gain = (changes_of(series(values(by=by)))[0].is_worse for by in (-0.1, 0.1))

    assert (loss, gain) == (True, False)


@pytest.mark.parametrize(
    ("metric", "unit", "is_lower"),
    [
        ("throughput", "tok/s", False),
        ("value", "μs", True),
        ("value", "s", True),
        ("value", "M keys/sec", False),
        ("ttft_p50_ms", "", True),
        ("acceptance_rate", "%", False),
        ("cold_start_s", "", True),
        ("tokens_per_s", "", False),
        ("value", "point", None),
    ],
)
def test_the_better_direction_is_known_by_unit_and_name(metric: str, unit: str, is_lower: bool | None) -> None:
    assert lower_is_better(metric, unit) is is_lower


@pytest.mark.parametrize(("apart", "events"), [(1, 1), (3, 1), (4, 2)])
def test_series_with_one_new_driver_are_one_event_though_dated_up_to_three_nights_apart(
    apart: int, events: int
) -> None:
    one, other = series(values(0), "a/x", driver=20), series(values(1, 20 + apart, 0.2), "b/x", driver=20 + apart)

    found = in_events(one, other)

    assert [change.cause.kind for change in found] == ["driver", "driver"]
    assert len({change.event_id for change in found}) == events


def test_changes_a_week_apart_are_two_events() -> None:
    found = in_events(series(values(0, 15), "a/x", driver=15), series(values(1, 25), "b/x", driver=25))

    assert len({change.event_id for change in found}) == 2


def test_changes_of_two_models_by_two_commits_are_two_events() -> None:
    found = in_events(series(values(0, 20), "a/x"), series(values(1, 21), "b/x"))

    assert sorted(Counter(one.event_id for one in found).values()) == [1, 1]


def test_changes_of_one_metric_in_two_units_are_two() -> None:
    in_tokens = series(values())
    in_words = replace(in_tokens, key=replace(in_tokens.key, unit="words/s"))

    found = in_events(in_tokens, in_words)

    assert [change.series.key.unit for change in found] == ["tok/s", "words/s"]
    assert len({change.event_id for change in found}) == 1


def test_changes_of_two_models_by_one_commit_are_one_event() -> None:
    found = in_events(series(values(0, 20), "a/x"), series(values(1, 20), "b/x"))

    assert list(Counter(one.event_id for one in found).values()) == [2]


def test_an_event_has_the_same_id_when_a_night_is_added() -> None:
    ids = [{c.event_id for c in in_events(series(values(0, nights=40)[:count]))} for count in (35, 36, 40)]

    assert ids[0] == ids[1] == ids[2]


def test_an_odd_night_of_one_series_is_weak_and_of_three_is_suspect() -> None:
    odd = [values(seed, by=0.0) for seed in range(3)]
    for one in odd:
        one[30] *= 0.6
    lone, three = in_events(series(odd[0])), in_events(*(series(one, f"m{at}/a") for at, one in enumerate(odd)))

    assert [(change.kind, change.state) for change in lone] == [("excursion", "weak")]
    assert [(change.kind, change.state) for change in three] == [("excursion", "suspect")] * 3


def test_three_odd_series_of_a_night_that_measured_many_are_weak() -> None:
    odd, usual = [values(seed, by=0.0) for seed in range(3)], [values(seed, by=0.0) for seed in range(3, 13)]
    for one in odd:
        one[30] *= 0.6
    found = in_events(*(series(one, f"m{at}/a") for at, one in enumerate([*odd, *usual])))

    assert {(change.kind, change.state) for change in found} == {("excursion", "weak")}


@pytest.mark.parametrize(("nights", "state"), [(24, "weak"), (25, "confirmed")])
def test_a_step_is_confirmed_once_its_level_lasts_five_nights(nights: int, state: str) -> None:
    assert [change.state for change in changes_of(series(values(nights=nights)))] == [state]


def test_a_weak_step_is_reported_again_only_as_a_confirmed_one() -> None:
    early, late = (series(values(nights=nights)) for nights in (24, 25))
    (weak,) = changes_of(early)
    said = {weak.first_bad.night: (False, False)}

    assert changes_of(early, said=said) == []
    assert [change.state for change in changes_of(late, said=said)] == ["confirmed"]


def test_a_step_within_the_scatter_of_its_levels_is_weak() -> None:
    wide = values(by=-0.03)
    wide[::3] *= 1.06

    assert not is_lasting(wide[:20], wide[20:], 0.01)
    assert is_lasting(values(by=-0.03)[:20], values(by=-0.03)[20:], 0.01)
    assert not is_lasting(values(by=-0.03)[:20], values(by=-0.03)[20:], 0.05)


def test_how_often_a_field_changes_is_counted_where_it_is_known() -> None:
    points = (night(0, host="a"), night(1), night(2, host="b"), night(3, host="c"))

    assert varying(points)["host"] == 1


@pytest.mark.parametrize("nights", [14, 30])
def test_values_that_move_slowly_are_a_drift_and_a_step_is_none(nights: int) -> None:
    drifts = steps = 0
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(0, 0.01, 90)
        slow = 1000 * np.exp(noise - 0.05 * np.clip((np.arange(90) - 30) / nights, 0, 1))
        drifts += "drift" in {change.kind for change in changes_of(series(slow))}
        steps += "drift" in {change.kind for change in changes_of(series(values(seed, 45, -0.05, 90)))}

    assert drifts >= 10
    assert steps == 0
