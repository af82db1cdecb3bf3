"""Canary floors from earlier nights: a case for each thing that must not move them, and for each that must."""

from collections.abc import Sequence

import pytest

from bench.catalog.rows import CanaryFloor
from bench.machine.canary import compare, with_verdict
from bench.machine.canary_history import NIGHTS, EarlierCanary, floors_from
from catalog.read import find_gpu
from tests.bench.machine.canaries import record

GPU, TEST, CONSTANT = "MI300X", "memory_copy", 3195.0
HEALTHY = (4200.0, 4210.0, 4190.0, 4205.0, 4195.0, 4220.0, 4180.0, 4200.0, 4215.0, 4185.0)
FLOOR = 0.8 * 4200  # these values are close to each other, so the floor is the least width below their median


def constant(floor: float = CONSTANT, *, is_verified: bool = False) -> CanaryFloor:
    return CanaryFloor(gpu=GPU, test=TEST, floor=floor, is_verified=is_verified, source="a test")


def nights(values: Sequence[float]) -> list[EarlierCanary]:
    return [
        EarlierCanary(f"2026-{at // 28 + 1:02}-{at % 28 + 1:02}", GPU, TEST, value) for at, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "of_catalog", "floor"),
    [
        pytest.param(HEALTHY[:-1], constant(), None, id="one night too few: the constant stands"),
        pytest.param(HEALTHY, constant(), FLOOR, id="enough nights"),
        pytest.param(HEALTHY, None, FLOOR, id="a test for which the catalogue has no constant"),
        pytest.param(HEALTHY, constant(is_verified=True), None, id="a verified constant stands"),
        pytest.param(HEALTHY, constant(3500.0), None, id="a higher constant stands"),
        pytest.param((*HEALTHY[:6], *4 * (3200.0,)), constant(), 0.8 * 4192.5, id="four slow hosts of ten"),
        pytest.param((*HEALTHY[:9], 3200.0), constant(), FLOOR, id="one slow host hardly moves it"),
        pytest.param((*HEALTHY[:9], 1e9), constant(), 0.8 * 4202.5, id="one absurd value hardly moves it"),
        pytest.param((*HEALTHY, *500 * (3300.0,)), constant(), FLOOR, id="slow nights after the first ten"),
        pytest.param(
            (*HEALTHY, *(4200 - 2.0 * at for at in range(400))), constant(), FLOOR, id="a slow drift over a year"
        ),
        pytest.param(5 * (1000.0, 8000.0), None, None, id="values of no use: no floor at all"),
        pytest.param(10 * (4200.0,), constant(), FLOOR, id="nights that agree to the last digit"),
    ],
)
def test_a_floor_of_earlier_nights(
    values: Sequence[float], of_catalog: CanaryFloor | None, floor: float | None
) -> None:
    found = floors_from(nights(values), () if of_catalog is None else (of_catalog,))

    assert [one.floor for one in found] == ([] if floor is None else [pytest.approx(floor)])


def test_widely_spread_nights_have_a_floor_five_spreads_below_their_median() -> None:
    (found,) = floors_from(nights([4200 + 300 * (at % 3 - 1) for at in range(NIGHTS)]), ())

    assert found.median == 4200.0
    assert found.spread == pytest.approx(1.4826 * 300)
    assert found.floor == pytest.approx(4200 - 5 * 1.4826 * 300)


def test_each_gpu_and_test_has_a_floor_of_its_own() -> None:
    other = [EarlierCanary(one.night, "H200", "disk_read", one.value / 1000) for one in nights(HEALTHY)]

    found = floors_from((*other, *nights(HEALTHY)), (constant(),))

    assert [(one.gpu, one.test) for one in found] == [("H200", "disk_read"), (GPU, TEST)]
    assert [one.floor for one in found] == [pytest.approx(FLOOR / 1000), pytest.approx(FLOOR)]


def test_a_host_above_the_constant_and_below_its_own_history_is_unfit_and_both_numbers_have_their_source() -> None:
    floors = floors_from(nights(HEALTHY), (constant(),))
    slow = record({TEST: 3300.0}).model_copy(update={"floors": floors})

    assert with_verdict(record({TEST: 3300.0}), find_gpu, (constant(),)).unfit is None
    assert with_verdict(slow, find_gpu, (constant(),)).unfit == (
        "the canary is below its floor: memory_copy of GPU 0 (AMD Instinct MI300X VF) reached 3,300 GB/s, the floor is "
        "3,360 GB/s (from 10 nights on this kind of machine, median 4,200); use another machine"
    )
    (compared,) = compare(slow, find_gpu, (constant(),))
    assert compared.floor == floors[0]
    assert (floors[0].night_count, floors[0].first_night, floors[0].last_night) == (10, "2026-01-01", "2026-01-10")
