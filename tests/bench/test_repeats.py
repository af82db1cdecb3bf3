from collections.abc import Mapping

import pytest

from bench.repeats import PILOT, PlannedRepeats, Precision, Spread, cap_repeats, choose_repeats, reach

METRIC = "output_throughput_tok_per_s"


def chosen(*spreads: Spread) -> PlannedRepeats:
    return choose_repeats("chat", "a" * 16, spreads)


def precision_of(planned: PlannedRepeats, metric: str = METRIC) -> Precision:
    return next(one for one in planned.precisions if one.metric == metric)


@pytest.mark.parametrize(
    ("within", "repeats", "said"),
    [
        (0.005, 2, "needs 1 repeats, and a plan has at least 2"),
        (0.01, 4, "varies by 1.00% between repeats (30 degrees of freedom): a mean within 1.00% needs 4 repeats"),
        (0.02, 16, "needs 16"),
        (0.03, 30, "needs 35 repeats, and a plan has at most 30"),
        (0.0, 2, "needs 1 repeats, and a plan has at least 2"),
    ],
)
def test_the_repeats_are_those_that_the_spread_of_earlier_nights_needs(within: float, repeats: int, said: str) -> None:
    planned = chosen(Spread(METRIC, within, 30))

    assert planned.repeats == repeats
    assert said in planned.reason
    assert precision_of(planned).half_width_expected == pytest.approx(1.96 * within / repeats**0.5, rel=1e-4)


def test_the_metric_that_varies_most_decides() -> None:
    planned = chosen(Spread(METRIC, 0.01, 40), Spread("ttft_p50_ms", 0.03, 40), Spread("cold_start_s", 0.5, 40))

    assert planned.repeats == 16
    assert planned.reason.startswith("ttft_p50_ms varies by 3.00%")
    assert precision_of(planned).half_width_expected == pytest.approx(1.96 * 0.01 / 4, rel=1e-4)


@pytest.mark.parametrize("spreads", [(), (Spread(METRIC, 0.02, 29),), (Spread(METRIC, None, 0),)])
def test_without_enough_history_the_default_is_run_and_the_plan_says_so(spreads: tuple[Spread, ...]) -> None:
    planned = chosen(*spreads)

    assert planned.repeats == PILOT
    degrees = max((spread.degrees_within for spread in spreads), default=0)
    assert planned.reason == f"the default, because earlier nights give {degrees} of 30 degrees of freedom"
    assert [one.half_width_expected for one in planned.precisions] == [None] * 3


@pytest.mark.parametrize(("degrees_between", "repeats"), [(7, 4), (6, 16)])
def test_no_repeats_are_run_for_a_precision_below_the_spread_between_leases(degrees_between: int, repeats: int) -> None:
    planned = chosen(Spread(METRIC, 0.02, 40, between=0.02, degrees_between=degrees_between))

    assert planned.repeats == repeats


@pytest.mark.parametrize(("most", "repeats"), [(100, [16, 4]), (12, [8, 4]), (6, [3, 3]), (1, [1, 1])])
def test_the_budget_limits_the_repeats_and_the_plan_says_why(most: int, repeats: list[int]) -> None:
    planned = [chosen(Spread(METRIC, 0.02, 30)), choose_repeats("other", "b" * 16, [Spread(METRIC, 0.01, 30)])]

    def why(asked: Mapping[str, int]) -> str | None:
        return f"{sum(asked.values())} are too many" if sum(asked.values()) > most else None

    found = cap_repeats(planned, why)

    assert [one.repeats for one in found] == repeats
    assert ("; limited to" in found[0].reason) == (repeats[0] < 16)
    assert precision_of(found[0]).half_width_expected == pytest.approx(1.96 * 0.02 / repeats[0] ** 0.5, rel=1e-4)
    exceeding = sum(min(one.repeats, repeats[0] + 1) for one in planned)
    assert repeats[0] == 16 or found[0].reason.endswith(f"; limited to {repeats[0]}, because {exceeding} are too many")


@pytest.mark.parametrize(
    ("spread", "half_width", "is_reached"),
    [
        (Spread(METRIC, 0.01, 34), 0.0098, True),
        (Spread(METRIC, 0.02, 34), 0.0196, False),
        (Spread(METRIC, 0.01, 12), 0.0159, False),
    ],
)
def test_what_is_reached_is_by_the_spread_of_all_nights_where_it_is_known_else_by_that_of_the_night(
    spread: Spread, half_width: float, is_reached: bool
) -> None:
    planned = chosen(Spread(METRIC, 0.01, 30))

    found = reach(planned, precision_of(planned), 4, spread, 0.0159)

    assert found.half_width_reached == pytest.approx(half_width, rel=1e-3)
    assert (found.is_reached, found.half_width_asked) == (is_reached, 0.01)
    assert str(found).startswith(f"chat: 4 repeats give the mean of {METRIC} with ±{half_width:.2%}; requested: ±1.00%")


def test_one_repeat_without_history_reaches_no_interval() -> None:
    planned = chosen()

    found = reach(planned, precision_of(planned), 1, Spread(METRIC, None, 0), None)

    assert (found.half_width_reached, found.is_reached) == (None, None)
    assert "with no interval" in str(found)
