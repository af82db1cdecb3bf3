"""Two variants by rounds: a drift of the host falls out, noise stays in the interval, and a loss is confirmed."""

from datetime import UTC, datetime

import numpy as np
import pytest

from bench.trends.paired import Run, difference, paired
from bench.trends.sides import judged

AT = datetime(2026, 3, 1, tzinfo=UTC)
ROUNDS = 4
ORDER = "ABBABAABABBABAAB"  # a run a turn
METRIC = "output_throughput_tok_per_s"


def runs(values: dict[str, list[float]], firsts: tuple[int, ...] = ()) -> list[Run]:
    return [
        Run("chat", side, repeat, len(listed), repeat in firsts, {METRIC: value})
        for side, listed in values.items()
        for repeat, value in enumerate(listed)
    ]


def drifting(slope: float, effect: float = 0.0, sd: float = 0.0, seed: int = 0) -> dict[str, list[float]]:
    """What each side has in its turns on a host that gets slower by `slope` with each turn."""
    noise = np.random.default_rng(seed).normal(0, sd, len(ORDER))
    logs = [-slope * at - effect * (side == "B") + noise[at] for at, side in enumerate(ORDER)]
    found: dict[str, list[float]] = {"A": [], "B": []}
    for side, log in zip(ORDER, logs, strict=True):
        found[side].append(100 * float(np.exp(log)))
    return found


def test_a_host_that_gets_slower_in_a_line_favours_no_side() -> None:
    (pair,) = judged(paired(runs(drifting(slope=0.02)), ROUNDS, AT))

    assert pair.difference.shift == pytest.approx(0, abs=1e-9)
    assert pair.verdict == "equivalent"


def test_a_loss_is_confirmed_on_a_drifting_host_and_a_gain_is_none() -> None:
    loss, gain = (judged(paired(runs(drifting(0.02, effect, 0.002)), ROUNDS, AT))[0] for effect in (0.05, -0.05))

    assert (loss.verdict, gain.verdict) == ("loss", "gain")
    assert loss.difference.shift == pytest.approx(-0.05, abs=0.005)


def test_equal_sides_are_a_loss_in_few_of_many_nights() -> None:
    """At p < 0.005 and 2 %, of noise that makes changes above the threshold likely."""
    found = [judged(paired(runs(drifting(0, sd=0.03, seed=seed)), ROUNDS, AT))[0].verdict for seed in range(300)]

    assert found.count("loss") + found.count("gain") <= 5


def test_an_interval_of_95_percent_holds_the_truth_that_often() -> None:
    held = 0
    for seed in range(400):
        (pair,) = paired(runs(drifting(0.01, 0.05, 0.02, seed)), ROUNDS, AT)
        margin = pair.difference.margin
        assert margin is not None
        held += abs(pair.difference.shift + 0.05) <= margin

    assert 0.92 <= held / 400 <= 0.98


def test_the_first_run_after_a_start_counts_only_where_its_round_has_no_other() -> None:
    cold = {"A": [50.0, 100.0] * ROUNDS, "B": [100.0] * 2 * ROUNDS}
    evens = tuple(range(0, 2 * ROUNDS, 2))
    (warm,) = paired([run for run in runs(cold, evens) if run.side == "A"] + runs({"B": cold["B"]}), ROUNDS, AT)
    (alone,) = paired(runs({"A": [50.0] * ROUNDS, "B": [100.0] * ROUNDS}, tuple(range(ROUNDS))), ROUNDS, AT)

    assert warm.difference.shift == pytest.approx(0)
    assert alone.difference.shift == pytest.approx(np.log(2))


def test_fewer_than_two_common_rounds_are_no_pair() -> None:
    values = runs({"A": [100.0] * 8, "B": [100.0] * 8})

    assert paired([run for run in values if run.side == "A" or run.repeat < 2], ROUNDS, AT) == []
    assert len(paired([run for run in values if run.side == "A" or run.repeat < 4], ROUNDS, AT)) == 1


def test_rounds_that_agree_exactly_still_have_an_interval() -> None:
    assert difference([1.0, 1.0], [1.0, 1.0]).margin
