"""A sweep finds a knee that is known, in few probes, and says where there is none."""

import math

import numpy as np
import pytest

from bench.search.knee import fit_knee
from bench.search.saturation import ended, knee_of, next_level, statuses
from bench.suite.search import Limits, Saturation
from tests.bench.search.servers import KneeServer, sweep

ASKED = Saturation(concurrency_max=1024)


@pytest.mark.parametrize("sharpness", [math.inf, 4.0, 2.0, 1.0])
def test_a_known_knee_is_found_within_5_percent_in_at_most_12_probes(sharpness: float) -> None:
    covered = 0
    for seed in range(40):
        truth = math.exp(np.random.default_rng(seed).uniform(math.log(6), math.log(300)))
        probes = sweep(ASKED, KneeServer(truth, sharpness, seed=seed))
        knee = knee_of(ASKED, probes)
        assert knee is not None
        assert abs(knee.concurrency / truth - 1) <= 0.05, (seed, truth, knee)
        assert len(probes) <= 12, (seed, truth)
        covered += (knee.low or 0) <= truth <= (knee.high or math.inf)
    assert covered >= 36, "a 95 % interval holds the knee of 36 of 40 servers and more"


def test_a_sweep_stops_where_throughput_surely_grows_less_than_5_percent() -> None:
    probes = sweep(ASKED, KneeServer(50, seed=3))
    assert ended(ASKED, probes) == "saturated"
    assert max(probe.load for probe in probes) <= 256, "1024 is not needed to see a knee at 50"


def test_growth_that_only_the_point_denies_does_not_end_a_sweep() -> None:
    server = KneeServer(1e6, noise=0.0)
    probes = [server.probe(64), server.probe(128)]
    unsure = [one.model_copy(update={"throughput_se_share": 0.05}) for one in probes]
    unsure[1] = unsure[1].model_copy(
        update={"output_throughput_tok_per_s": 1.04 * (unsure[0].output_throughput_tok_per_s or 0)}
    )
    asked = Saturation(concurrency_min=64, concurrency_max=1024)
    assert ended(asked, unsure) is None
    assert next_level(asked, unsure) == 256
    sure = [one.model_copy(update={"throughput_se_share": 0.001}) for one in unsure]
    assert ended(asked, sure) == "saturated"


def test_the_listed_levels_are_probed_in_their_order_first() -> None:
    asked = Saturation(levels=(1, 3, 10, 30, 100))
    probes = sweep(asked, KneeServer(1e6, noise=0.0))
    assert [probe.load for probe in probes][:5] == [1, 3, 10, 30, 100]
    assert ended(asked, probes) == "maximum"


def test_a_server_without_a_knee_in_reach_has_an_open_interval() -> None:
    asked = Saturation(concurrency_max=32)
    probes = sweep(asked, KneeServer(1e6, seed=1))
    knee = knee_of(asked, probes)
    assert knee is not None
    assert knee.high is None
    assert len(probes) <= 12


def test_a_failing_level_ends_the_rise_and_is_no_part_of_the_curve() -> None:
    probes = sweep(ASKED, KneeServer(1e6, fails_from=200, seed=1))
    assert ended(ASKED, probes) == "failing"
    assert max(probe.load for probe in probes) == 256
    assert "FAILING" in statuses(ASKED, probes)


def test_a_server_that_falls_beyond_its_knee_has_the_knee_all_the_same() -> None:
    knee = knee_of(ASKED, sweep(ASKED, KneeServer(60, 8.0, falls=0.1, seed=5)))
    assert knee is not None
    assert knee.concurrency == pytest.approx(60, rel=0.1)


def test_statuses_follow_the_declared_limits() -> None:
    server = KneeServer(8, noise=0.0, fails_from=64)
    probes = [server.probe(level) for level in (1, 8, 16, 17, 64)]
    assert statuses(ASKED, probes) == ["OK", "OK", "SATURATED", "SATURATED", "FAILING"]
    loose = Saturation(limits=Limits(growth_min=1.0, success_share_min=0.1, p99_ratio_max=2.0))
    assert statuses(loose, probes) == ["OK", "OK", "OK", "DEGRADED", "DEGRADED"]


def test_exact_throughputs_have_a_narrow_interval() -> None:
    levels = [1.0, 4.0, 16.0, 64.0, 256.0, 100.0]
    knee = fit_knee(levels, [min(level, 100.0) for level in levels], [0.001] * 6)
    assert knee.concurrency == pytest.approx(100, rel=0.01)
    assert knee.half_width < 0.03


@pytest.mark.parametrize("knee", [1.0, 1.5, 3.0])
def test_a_server_that_saturates_at_the_second_level_gets_the_third_that_a_knee_needs(knee: float) -> None:
    asked = Saturation(concurrency_min=2, concurrency_max=1024)
    probes = sweep(asked, KneeServer(knee, seed=2))

    found = knee_of(asked, probes)

    assert ended(asked, probes) == "saturated"
    assert found is not None
    assert found.high is not None
    assert (found.low or 0) <= max(knee, 2) <= found.high * 1.01


def test_listed_levels_without_one_between_go_on_to_a_third() -> None:
    asked = Saturation(levels=(1, 2, 4, 8))
    assert [probe.load for probe in sweep(asked, KneeServer(1, seed=2))][:3] == [1, 2, 4]


def test_a_second_level_that_fails_leaves_the_levels_between() -> None:
    probes = sweep(ASKED, KneeServer(1e6, fails_from=3, seed=1))
    assert [probe.load for probe in probes] == [1, 4, 2, 3]
    assert knee_of(ASKED, probes) is None, "of two levels that work no knee is known"


def test_a_level_that_fails_and_has_a_throughput_is_no_part_of_the_curve() -> None:
    probes = sweep(ASKED, KneeServer(1e6, fails_from=200, seed=1))
    fewer = [probe.model_copy(update={"output_throughput_tok_per_s": 1.0}) if probe.load >= 200 else probe
             for probe in probes]  # fmt: skip
    assert knee_of(ASKED, fewer) == knee_of(ASKED, probes)
