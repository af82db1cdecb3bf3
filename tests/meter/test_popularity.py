"""Requests are spread over models by Zipf's law, the same for a seed, and the warm-up asks for each."""

import json
from collections import Counter

import pytest

from meter.plan import Plan, parse_plan
from meter.popularity import draw_models
from tests.meter.conftest import PLAN


def _plan(zipf: float) -> Plan:
    models = {"names": ["a", "b", "c"], "zipf": zipf}
    return parse_plan(json.dumps(PLAN | {"models": models, "request_count": 3000, "warmup_count": 3}))


def test_the_first_is_most_popular_and_the_warm_up_asks_for_each() -> None:
    drawn = draw_models(_plan(1.0))

    assert drawn[:3] == ["a", "b", "c"]
    assert drawn == draw_models(_plan(1.0))
    counts = Counter(drawn[3:])
    assert [counts[name] / 3000 for name in "abc"] == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.03)


def test_with_an_exponent_of_zero_all_are_alike() -> None:
    counts = Counter(draw_models(_plan(0.0))[3:])

    assert [counts[name] / 3000 for name in "abc"] == pytest.approx([1 / 3] * 3, abs=0.03)
