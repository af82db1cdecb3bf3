"""A search finds the version that moved a number, wherever it is, with few leases more than a binary search needs."""

import math

import numpy as np
import pytest

from bench.trends.bisect import (
    END_LEASES,
    LEASES_MAX,
    Bisection,
    Measured,
    Step,
    candidates_between,
    leases_expected,
    levels_of,
    next_step,
    with_night,
)


def search(versions: int) -> Bisection:
    names = tuple(f"v{at}" for at in range(versions))
    return Bisection(metric="output_throughput_tok_per_s", suite="s.toml", target="local", candidates=names)


def simulated(
    versions: int, first_bad: int, step: float, sd: float = 0.01, seed: int = 0, broken: tuple[int, ...] = ()
) -> tuple[Step, Bisection]:
    """A whole search over an engine history that steps once."""
    random, found = np.random.default_rng(seed), search(versions)
    while (step_next := next_step(found)).candidate is not None:
        at = int(step_next.candidate[1:])
        level = math.exp(5.0 + (step if at >= first_bad else 0.0) + sd * float(random.standard_normal()))
        values = {} if at in broken else {"chat": level}
        found = with_night(
            found, Measured(candidate=step_next.candidate, night=f"n{len(found.measured)}", by_series=values)
        )
    return step_next, found


@pytest.mark.parametrize(("sd", "share", "extra"), [(0.002, 1.0, 1.0), (0.01, 0.97, 4.0)])
def test_a_step_of_5_percent_is_found_at_every_position(sd: float, share: float, extra: float) -> None:
    versions, hits, leases = 16, 0, list[int]()
    for first_bad in range(1, versions):
        for seed in range(4):
            last, found = simulated(versions, first_bad, -0.05, sd, seed)
            hits += last.bad == f"v{first_bad}" and last.is_found
            leases.append(len(found.measured))
    trials = 4 * (versions - 1)

    assert hits / trials >= share
    assert np.mean(leases) <= leases_expected(versions)[0] + extra
    assert max(leases) <= leases_expected(versions)[1]


def test_ends_that_are_alike_stop_the_search() -> None:
    last, found = simulated(8, 99, -0.05)

    assert not last.is_found
    assert "v0 and v7 are alike" in last.reason
    assert {one.candidate for one in found.measured} == {"v0", "v7"}
    assert len(found.measured) == 2 * LEASES_MAX


def test_a_gain_is_found_as_well() -> None:
    assert simulated(8, 3, +0.05)[0].bad == "v3"


def test_versions_that_do_not_start_are_passed_over_and_measured_once() -> None:
    last, found = simulated(9, 4, -0.1, 0.002, broken=(4, 5))

    assert (last.good, last.bad, last.skipped, last.is_found) == ("v3", "v6", ("v4", "v5"), False)
    assert [one.candidate for one in found.measured].count("v4") <= 1
    far, _ = simulated(9, 2, -0.1, 0.002, broken=(4,))
    assert (far.good, far.bad, far.is_found) == ("v1", "v2", True)


def test_an_end_that_does_not_start_stops_the_search() -> None:
    last, found = simulated(5, 2, -0.1, broken=(4,))

    assert "v4 is an end and has no accepted value" in last.reason
    assert len(found.measured) <= 2 * END_LEASES


def test_a_search_goes_on_where_its_file_stopped() -> None:
    whole = simulated(8, 5, -0.05)[1]
    half = whole.model_copy(update={"measured": whole.measured[:5]})
    read = Bisection.model_validate_json(half.model_dump_json())

    assert next_step(read).candidate == whole.measured[5].candidate


def test_the_candidates_are_those_from_good_to_bad_in_either_order() -> None:
    assert candidates_between(["a", "b", "c", "d"], "b", "d") == ("b", "c", "d")
    assert candidates_between(["a", "b", "c", "d"], "d", "b") == ("d", "c", "b")


def test_a_scenario_that_is_missing_in_a_night_does_not_move_it() -> None:
    chat, long = 100.0, 10.0
    nights = [
        {"chat": chat, "long": long},
        {"chat": chat},
        {"chat": 0.9 * chat, "long": 0.9 * long},
        {"other": 1.0},
        {},
    ]

    first, without, slower, *others = levels_of(nights)

    assert first is not None
    assert without == pytest.approx(first)
    assert slower == pytest.approx(0.9 * first)
    assert others == [None, None]
    assert levels_of([]) == []
    assert levels_of([{}]) == [None]


def test_a_scenario_is_not_taken_for_a_model_or_a_scenario_whose_name_holds_its_own() -> None:
    asked = Bisection(metric="m", suite="s", target="local", candidates=("1", "2"), scenario="small")

    counting = [
        f"small/bf16/0xcpu/{parallel}/{scenario}/vllm/meter"
        for parallel in ("tp1-pp1-dp1", "tp8-pp1-dp1-ep8")
        for scenario in ("chat", "small-chat", "chat-small", "small")
        if asked.counts(f"small/bf16/0xcpu/{parallel}/{scenario}/vllm/meter")
    ]

    assert [series.split("/")[4] for series in counting] == ["small", "small"]
    assert asked.model_copy(update={"scenario": None}).counts("small/bf16/0xcpu/tp1-pp1-dp1/chat/vllm/meter")


@pytest.mark.parametrize(("flaky", "is_found"), [(0, False), (4, False), (2, True)])
def test_a_candidate_that_is_accepted_once_and_never_again_does_not_keep_a_search_from_its_end(
    flaky: int, is_found: bool
) -> None:
    found, step = search(5), next_step(search(5))
    while step.candidate is not None and len(found.measured) < 100:
        at = int(step.candidate[1:])
        is_accepted = at != flaky or not found.tries(step.candidate)
        night, level = f"n{len(found.measured)}", (100.0 if at < 2 else 80.0) * (1 + 0.001 * (len(found.measured) % 3))
        values = {"chat": level} if is_accepted else {}
        found = with_night(found, Measured(candidate=step.candidate, night=night, by_series=values))
        step = next_step(found)

    assert max(found.tries(name) for name in found.candidates) <= LEASES_MAX
    assert (step.candidate, step.is_found) == (None, is_found)
    assert is_found or "of its 6 nights is accepted" in step.reason
