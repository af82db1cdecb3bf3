"""The Pareto frontier by its definition, its value between two loads, and how it moved."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.schema.row import Row
from warehouse.site.frontier import (
    EARLIER,
    NEWEST,
    PRICE,
    SPEED,
    THROUGHPUT,
    at_fixed_speeds,
    moved,
    on_frontier,
    value_at,
    with_frontiers,
)
from warehouse.site.frontier_charts import _charts as charts_of

_VALUES = st.integers(1, 9).map(float)


def point(speed: float, throughput: float, price: float | None = None, when: str = NEWEST) -> Row:
    named: Row = {"setup": "m", "isl": 128, "osl": 64, "night": when, "when": when, "joules_per_token": None}
    return {SPEED: speed, THROUGHPUT: throughput, PRICE: price} | named


@settings(max_examples=60)
@given(st.lists(st.tuples(_VALUES, _VALUES), max_size=8), st.sampled_from([THROUGHPUT, PRICE]))
def test_a_point_is_on_the_frontier_where_no_other_beats_it_on_the_axes_shown(
    pairs: list[tuple[float, float]], column: str
) -> None:
    points = [point(speed, value, value) for speed, value in pairs]
    sign = -1 if column == PRICE else 1

    found = on_frontier(points, column)

    for (speed, value), is_on in zip(pairs, found, strict=True):
        beaten = any(
            other >= speed and sign * worth >= sign * value and (other, worth) != (speed, value)
            for other, worth in pairs
        )
        assert is_on <= (not beaten)
    assert {pair for pair, is_on in zip(pairs, found, strict=True) if is_on} == {
        (speed, value)
        for speed, value in pairs
        if not any(o >= speed and sign * w >= sign * value and (o, w) != (speed, value) for o, w in pairs)
    }


def test_prices_of_earlier_nights_alone_have_no_chart() -> None:
    about: Row = {"model": "m", "precision": "fp8"}
    earlier = [point(10, 100, 5.0, EARLIER) | about, point(10, 90) | about]

    assert "Price" not in charts_of("m", with_frontiers(earlier), None)


def test_a_load_may_be_dominated_in_price_and_not_in_throughput() -> None:
    points = [point(10, 100, 5.0), point(20, 50, 4.0)]

    marked = with_frontiers(points)

    assert [row["is_dominated"] for row in marked] == [False, False]
    assert [row["is_dominated_by_price"] for row in marked] == [True, False]


def test_an_earlier_load_does_not_dominate_a_newer_one() -> None:
    marked = with_frontiers([point(10, 100, when=EARLIER), point(10, 90)])

    assert [row["is_dominated"] for row in marked] == [False, False]


def test_a_value_between_two_loads_is_that_of_the_frontier_and_not_of_a_dominated_load() -> None:
    points = [point(10, 100), point(20, 10), point(40, 50)]

    assert value_at(points, THROUGHPUT, 20) == pytest.approx(100 / 2**0.5)
    assert value_at(points, THROUGHPUT, 9) is None
    assert value_at(points, THROUGHPUT, 41) is None


def test_a_frontier_that_moved_says_so_at_each_speed_that_both_nights_have() -> None:
    points = [*(point(speed, 100 / speed, when=EARLIER) for speed in (10, 40)), point(20, 5.5), point(60, 5.5 / 3)]

    rows = list(moved(points, THROUGHPUT))

    assert [row["tok/s per user"] for row in rows] == [20, 30]
    assert [row["change (%)"] for row in rows] == pytest.approx([10, 10])


def test_a_frontier_without_a_common_speed_has_not_moved() -> None:
    assert list(moved([point(10, 5, when=EARLIER), point(20, 5)], THROUGHPUT)) == []


def test_loads_of_two_workloads_are_not_joined() -> None:
    longer = {"isl": 1024}

    assert list(at_fixed_speeds([point(15, 100), point(35, 50) | longer])) == []


def test_speeds_outside_the_measured_range_have_no_row() -> None:
    rows = list(at_fixed_speeds([point(20, 100), point(35, 50)]))

    assert [(row["tok/s per user"], row["how"]) for row in rows] == [(20, "measured"), (30, "interpolated")]
