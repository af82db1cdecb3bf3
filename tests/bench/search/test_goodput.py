"""A search finds a goodput that is known, in few probes, and says where there is none."""

import math
from functools import partial

import numpy as np
import pytest

from bench.search.goodput import bracket_of, ending, keeps_slo
from bench.search.probe import Probe
from bench.search.search import longest_course
from bench.suite.parse import parse_suite
from bench.suite.search import Goodput
from tests.bench.search.servers import LawServer, QueueServer, search
from tests.bench.suite.test_load_search import HEAD, SEARCH, SWEEP

ASKED = Goodput(request_rate_per_s_min=0.25, request_rate_per_s_max=64)


def law(truth: float, seed: int = 0) -> LawServer:
    return LawServer(truth, seed=seed)


def test_a_known_goodput_is_found_within_5_percent_in_at_most_12_probes() -> None:
    for seed in range(60):
        server = law(math.exp(np.random.default_rng(seed).uniform(math.log(2), math.log(50))), seed)
        truth = server.goodput_per_s(0.5, 0.99)
        probes = search(ASKED, 0.99, partial(server.probe, bound_s=0.5), 400)
        bracket = bracket_of(0.99, probes)
        assert bracket.low is not None
        assert bracket.high is not None
        assert abs(math.sqrt(bracket.low * bracket.high) / truth - 1) <= 0.05, (seed, truth, bracket)
        assert len(probes) <= 12


def test_a_rate_that_a_queue_cannot_hold_is_none_that_keeps_an_slo() -> None:
    """However short the load is, so that the bound is not yet reached."""
    probe = QueueServer(10.0).probe(12.0, 200, bound_s=60.0)
    assert probe.within_slo == 200
    assert keeps_slo(0.99, [probe]) is False


def test_an_slo_that_no_rate_keeps_needs_one_probe_to_show() -> None:
    server = law(10.0)
    probes = search(ASKED, 0.99, partial(server.probe, bound_s=0.01), 100)
    assert len(probes) == 1
    assert ending(ASKED, 0.99, probes) == "none"


def test_a_server_that_keeps_the_highest_rate_needs_two_probes() -> None:
    server = law(1e4)
    probes = search(ASKED, 0.99, partial(server.probe, bound_s=0.5), 100)
    assert [probe.load for probe in probes] == [0.25, 64]
    assert ending(ASKED, 0.99, probes) == "at-least"


def asked_again(within: int, count: int = 100) -> Probe:
    return Probe(
        scenario="r",
        scenario_id=f"r{count}",
        request_rate_per_s=2.0,
        request_count=count,
        completed=count,
        within_slo=within,
        held_share=1.0,
    )


def test_a_share_near_its_bound_is_decided_by_more_requests() -> None:
    assert keeps_slo(0.99, [asked_again(98)]) is None, "98 of 100 may be 99 %"
    assert keeps_slo(0.99, [asked_again(98), asked_again(200, 200)]) is None
    assert keeps_slo(0.99, [asked_again(98), asked_again(180, 200)]) is False
    assert keeps_slo(0.99, [asked_again(98), asked_again(200, 200), asked_again(400, 400)]) is True


def test_a_rate_that_is_unsure_is_probed_with_twice_the_requests() -> None:
    seen: list[tuple[float, int]] = []

    def probe(rate: float, count: int) -> Probe:
        seen.append((rate, count))
        shares = {0.25: 100, 64: 0}
        within = shares.get(rate, 98 if count == 100 else count)
        return asked_again(within, count).model_copy(update={"request_rate_per_s": rate})

    search(ASKED, 0.99, probe, 100)
    third = seen[2][0]
    assert seen[2:4] == [(third, 100), (third, 200)]


@pytest.mark.parametrize("probes_max", [3, 6])
def test_a_search_has_no_more_probes_than_it_may(probes_max: int) -> None:
    asked = ASKED.model_copy(update={"probes_max": probes_max})
    server = law(10.0)
    probes = search(asked, 0.99, partial(server.probe, bound_s=0.5), 400)
    assert len(probes) == probes_max
    assert ending(asked, 0.99, probes) == "probes"


def test_the_longest_course_of_a_search_has_every_probe_that_it_may_have() -> None:
    suite = parse_suite(HEAD + SWEEP + SEARCH, "load.toml")
    users, chat = (longest_course(entry, first) for entry, first in zip(suite.scenarios, suite.expand(), strict=True))
    assert len(users) == len(chat) == 12
    assert max(one.workload.concurrency or 0 for one in users) == 256
    assert max(one.workload.request_rate_per_s or 0 for one in chat) == 32
    seconds = sum(one.workload.request_count / (one.workload.request_rate_per_s or 1) for one in chat)
    assert seconds > 9 * 400 / 1.0, "where only the lowest rate keeps the SLO, the probes come near to it"
