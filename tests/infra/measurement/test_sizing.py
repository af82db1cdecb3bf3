"""How many requests fill the time of a load."""

import pytest

from bench.suite.workload import Workload
from infra.measurement.sizing import sized_count


def _closed(concurrency: int, load_s: float) -> Workload:
    return Workload(isl=8, osl=8, concurrency=concurrency, request_count=40, load_s=load_s)


@pytest.mark.parametrize(
    ("rate_per_s", "count"),
    [
        (4.4, 12),  # 11 requests take 2.5 s, and one slot would have none at the end
        (3.6, 8),
        (6.0, 16),
        (0.1, 8),  # what the suite requires of a slot takes longer
        (1000.0, 40),
    ],
)
def test_each_slot_of_a_closed_loop_has_as_many_requests_and_no_fewer_than_the_suite_requires(
    rate_per_s: float, count: int
) -> None:
    assert sized_count(_closed(4, 2.5), rate_per_s, min_requests_per_slot=2.0) == count


def test_a_part_of_a_request_in_a_slot_is_a_whole_one() -> None:
    assert sized_count(_closed(4, 2.5), 0.1, min_requests_per_slot=2.5) == 12


def test_an_open_loop_has_those_that_are_due() -> None:
    work = Workload(isl=8, osl=8, request_rate_per_s=3.0, arrivals="poisson", request_count=40, load_s=4.0)

    assert sized_count(work, 3.0, min_requests_per_slot=10.0) == 12
