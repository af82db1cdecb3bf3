"""What a night costs besides its leases, held against arithmetic done by hand."""

from typing import Any

import pytest

from bench.cost.kept import other_costs
from bench.suite.suite import Suite
from bench.suite.target import parse_target
from catalog.read import read_catalog
from tests.warehouse.folders import Shape, suite

DAYS = 28  # of a month that is paid in full
IMAGE = 50 * 0.06 / DAYS
BUCKET = 2 * 70.55e9 / 1024**3 * 0.02 / DAYS  # weights of 16 bits
FREE: dict[str, float | None] = {"volume": 0.0, "bucket": 0.0, "image": 0.0, "traffic": 0.0}


def _suite(**keeps: Any) -> Suite:
    asked = suite({"chat": Shape()})
    model = asked.model.model_copy(update={"source": "hf:meta-llama/Llama-3.3-70B-Instruct@main", **keeps})
    return asked.model_copy(update={"model": model})


@pytest.mark.parametrize(
    ("keeps", "target", "expected"),
    [
        ({}, "digitalocean", {"image": IMAGE}),
        ({"cache_volume_gib": 150}, "digitalocean", {"image": IMAGE, "volume": 150 * 0.10 / DAYS}),
        ({"cache_bucket_minutes": 30}, "digitalocean", {"image": IMAGE, "bucket": BUCKET}),
        (
            {"cache_bucket_minutes": 0},
            "digitalocean",
            {"image": IMAGE, "bucket": BUCKET},
        ),  # read, and kept all the same
        ({}, "local", {}),
        ({"cache_volume_gib": 150}, "ssh:me@gpu1", {}),
        ({"cache_bucket_minutes": 30}, "ssh:me@gpu1", {"bucket": BUCKET}),
        ({}, "acme", {"volume": None, "image": None, "traffic": None}),
    ],
)
def test_a_night_pays_a_day_of_what_it_keeps_and_what_has_no_known_price_is_unknown(
    keeps: dict[str, int], target: str, expected: dict[str, float | None]
) -> None:
    found = other_costs(_suite(**keeps), parse_target(target), read_catalog())

    expected = FREE | expected
    assert [item for item, usd in found.items() if usd is None] == [item for item in found if expected[item] is None]
    assert [usd or 0.0 for usd in found.values()] == pytest.approx([expected[item] or 0.0 for item in found], rel=0.01)


def test_a_bucket_with_a_model_of_unknown_size_has_an_unknown_cost() -> None:
    unknown = _suite(source="hf:nobody/knows@main", cache_bucket_minutes=30)

    assert other_costs(unknown, parse_target("local"), read_catalog()) == FREE | {"bucket": None}
