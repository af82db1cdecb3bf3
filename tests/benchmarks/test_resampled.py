"""Resampled A/A nights: without the levels of releases, with the noise and the drift of the measured nights."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.detector import z_score
from benchmarks.history.judged import SIZES, beside, judged_history
from benchmarks.history.resampled import METRICS, Night, Run, Scenario, read_scenarios
from benchmarks.noise_models import series
from tests.benchmarks.small_history import write_small_history
from warehouse.demo.history import load_history
from warehouse.demo.load import CONCURRENCIES, REPEATS
from warehouse.demo.story import NEW_ENGINE, OLD_ENGINE

TTFT = METRICS[1]


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> list[Scenario]:
    """Those of the small history."""
    data, history, loaded = (tmp_path_factory.mktemp(name) for name in ("data", "history", "loaded"))
    write_small_history(data, history)
    return read_scenarios(loaded, history, load_history(loaded, history))


def run(ttft_ms: list[float]) -> Run:
    times = np.array(ttft_ms)
    return Run(1, np.full(len(times), 10.0), times * 10, times, times / 2)


def scenario(levels: dict[str, float], shifts: list[float]) -> Scenario:
    """Nights of releases that take turns, each off by its shift; all requests of a night are equal."""
    releases = list(levels)
    named = [releases[at % len(releases)] for at in range(len(shifts))]
    nights = [Night(one, (run([levels[one] * np.exp(shift)] * 5),)) for one, shift in zip(named, shifts, strict=True)]
    return Scenario("", tuple(nights))


def test_the_nights_of_a_history_are_read_in_the_order_in_which_they_ran(scenarios: list[Scenario]) -> None:
    assert {one.name for one in scenarios} == {f"vllm chat-{each}" for each in CONCURRENCIES}
    for one in scenarios:
        assert [night.release for night in one.nights] == [NEW_ENGINE, OLD_ENGINE] * 5
        assert {len(night.runs) for night in one.nights} == {REPEATS}


def test_a_run_has_the_metrics_of_its_row(scenarios: list[Scenario]) -> None:
    for one in scenarios:
        first = one.nights[0].runs[0]
        busy_s = first.e2el_ms.sum() / first.concurrency / 1e3
        assert first.value(METRICS[0]) == pytest.approx(first.tokens.sum() / busy_s)
        assert first.value(TTFT) == np.median(first.ttft_ms)


def test_the_difference_of_releases_is_no_noise_of_the_resampled_nights() -> None:
    same = scenario({"1": 10.0}, [0.0] * 8).noise(TTFT)(np.random.default_rng(1), 100, 0.0)
    apart = scenario({"1": 10.0, "2": 20.0}, [0.0] * 8).noise(TTFT)(np.random.default_rng(1), 100, 0.0)

    assert np.abs(same).max() == pytest.approx(0.0, abs=1e-12)
    assert np.abs(apart).max() == pytest.approx(0.0, abs=1e-12)


def test_resampled_nights_differ_as_much_as_the_measured_ones_whatever_few_nights_a_release_has() -> None:
    shifts = np.random.default_rng(3).normal(0, 0.02, 400).tolist()
    releases = {str(at): 10.0 for at in range(100)}

    drawn = scenario(releases, shifts).noise(TTFT)(np.random.default_rng(4), 5000, 0.0)

    assert drawn.std() == pytest.approx(0.02, rel=0.1)


def test_neighbouring_nights_stay_neighbours() -> None:
    shifts = np.sin(np.arange(60) / 10).tolist()

    drawn = scenario({"1": 10.0}, shifts).noise(TTFT)(np.random.default_rng(5), 2000, 0.0)

    assert np.corrcoef(drawn[:-1], drawn[1:])[0, 1] > 0.7


def test_the_requests_of_a_night_are_drawn_again() -> None:
    night = Night("1", (run(np.random.default_rng(6).lognormal(2, 0.5, 200).tolist()),))
    again = [night.again(TTFT, np.random.default_rng(seed)) for seed in range(20)]

    assert len(set(again)) > 10
    assert np.mean(again) == pytest.approx(night.log(TTFT), abs=0.05)


def test_a_rule_has_its_false_alarms_and_its_shares_found(scenarios: list[Scenario]) -> None:
    noise = scenarios[0].noise(METRICS[0])

    name, false, *found = beside("z", z_score, [noise])

    assert (name, len(found)) == ("z", len(SIZES))
    assert float(false) >= 0
    assert found[-1].startswith("100%, 100%")
    assert series(noise, (1,), 50).std() > 0


def test_a_checkout_without_a_history_has_no_section(tmp_path: Path) -> None:
    assert judged_history({"z": z_score}, tmp_path / "none") == ""
