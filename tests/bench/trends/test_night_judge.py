"""The night judge says suspect, confirmed, equivalent or inconclusive, and never more than its power allows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bench.trends.night_judge import (
    confirm,
    coupling,
    false_discoveries_left_out,
    judge_night,
    min_effect_of,
)
from bench.trends.series import Point

START = datetime(2026, 3, 1, tzinfo=UTC)


def nights(count: int = 30, sd: float = 0.01, host_sd: float = 0.0, seed: int = 0) -> list[Point]:
    """Nights whose host moves them and, where it does so, their control."""
    random = np.random.default_rng(seed)
    host, own, control = random.normal(0, host_sd, count), random.normal(0, sd, count), random.normal(0, sd, count)
    return [
        Point(f"{at}", START + timedelta(days=at), 2000 * np.exp(h + o), control=7.6 + h + c if host_sd else None)
        for at, (h, o, c) in enumerate(zip(host, own, control, strict=True))
    ]


def night(value: float, control: float | None = None) -> Point:
    return Point("tonight", START + timedelta(days=99), value, control=control)


def test_a_usual_night_is_equivalent_where_the_interval_is_within_what_counts() -> None:
    assert judge_night(nights(sd=0.004), night(2000), 0.02).judgement == "equivalent"


def test_a_usual_night_is_inconclusive_where_the_noise_hides_what_counts() -> None:
    verdict = judge_night(nights(sd=0.02), night(2000), 0.02)

    assert verdict.judgement == "inconclusive"
    assert verdict.mde_pct == pytest.approx(10, abs=3)
    assert verdict.reason == f"changes below {verdict.mde_pct:.1f} % would not be seen"


def test_a_night_far_off_is_suspect_with_its_effect() -> None:
    verdict = judge_night(nights(), night(1800), 0.02)

    assert verdict.judgement == "suspect"
    assert verdict.effect_pct == pytest.approx(-10, abs=1)


@pytest.mark.parametrize(("error", "judgement"), [(0.005, "suspect"), (0.08, "inconclusive")])
def test_a_night_that_its_repeats_say_less_exactly_is_held_against_its_own_interval(
    error: float, judgement: str
) -> None:
    wide = replace(night(1800), standard_error=error)

    verdict = judge_night(nights(), wide, 0.02)

    assert verdict.judgement == judgement
    assert verdict.high_pct is not None
    assert (verdict.high_pct > 0) == (judgement == "inconclusive")


def test_a_clear_but_small_change_is_not_suspect() -> None:
    assert judge_night(nights(sd=0.0005), night(1985), 0.02).judgement == "equivalent"


def test_few_nights_are_insufficient_unless_an_earlier_segment_tells_the_noise() -> None:
    few = nights(4, sd=0.004)

    assert judge_night(few, night(1800), 0.02).judgement == "insufficient"
    assert judge_night(few, night(1800), 0.02, sd_before=0.005).judgement == "suspect"
    assert judge_night(few[:2], night(1800), 0.02, sd_before=0.005).judgement == "insufficient"


def test_invalid_nights_are_left_out_of_the_baseline() -> None:
    bad = [Point("x", START, float("nan"), is_valid=False)] * 3

    assert judge_night([*nights(), *bad], night(1800), 0.02) == judge_night(nights(), night(1800), 0.02)


def test_a_rerun_that_agrees_confirms_and_one_that_does_not_blames_the_host() -> None:
    assert confirm(nights(), night(1850), night(1860), 0.02).judgement == "confirmed"
    assert confirm(nights(), night(1850), night(2001), 0.02).judgement == "host outlier"
    assert confirm(nights(), night(1850), night(2150), 0.02).judgement == "host outlier"


def test_a_rerun_confirms_no_change_that_is_too_small_to_count() -> None:
    quiet = nights(sd=0.0005)

    assert confirm(quiet, night(1950), night(1985), 0.015).judgement == "confirmed"
    assert confirm(quiet, night(1950), night(1985), 0.02).judgement == "host outlier"


def test_a_slow_host_is_no_suspect_where_the_control_is_as_slow() -> None:
    history = nights(sd=0.003, host_sd=0.02)

    slow = judge_night(history, night(2000 * np.exp(-0.08), control=7.6 - 0.08), 0.02)
    slower = judge_night(history, night(2000 * np.exp(-0.12), control=7.6 - 0.08), 0.02)

    assert slow.slope == pytest.approx(1, abs=0.25)
    assert (slow.judgement, slower.judgement) == ("equivalent", "suspect")


def test_a_control_whose_coupling_was_not_measured_is_not_used() -> None:
    random = np.random.default_rng(5)
    alone, against = random.normal(0, 0.01, (2, 30))

    assert coupling(alone, against) == 0.0
    assert coupling(alone, -alone) == 0.0
    assert coupling(alone[:5], alone[:5]) == 0.0
    assert coupling(alone, alone + random.normal(0, 0.001, 30)) == pytest.approx(1, abs=0.1)


def test_of_many_tests_only_those_beyond_chance_stand() -> None:
    assert false_discoveries_left_out([0.001, 0.04, 0.9, 0.02]) == [True, False, False, True]
    assert false_discoveries_left_out([0.2] * 3) == [False] * 3
    assert false_discoveries_left_out([]) == []


@pytest.mark.parametrize(
    ("metric", "share"),
    [("output_throughput_tok_per_s", 0.02), ("ttft_p50_ms", 0.03), ("tpot_p99_ms", 0.05), ("cold_start_s", 0.02)],
)
def test_what_counts_depends_on_the_metric(metric: str, share: float) -> None:
    assert min_effect_of(metric) == share
