"""Successive halving: who goes on, how long the runs are, what is confirmed, and what never wins."""

import random

import pytest

from bench.search.flag_space import OWN, Candidate, candidates_of
from bench.search.halving import Confirmation, Round, Step, Trial, Tuning, course, next_step
from bench.suite.engine import Engine
from bench.suite.engine_searches import Tune
from bench.suite.slo import Slo

ENGINE = Engine(version="1", max_model_len=64, flags=("--max-num-seqs", "256", "--eager"))


def search(count: int, *, is_lower_better: bool = False, slo: Slo | None = None, keep: int = 2) -> Tuning:
    names = [OWN, *(f"c{place}" for place in range(1, count))]
    return Tuning(
        suite="s.toml",
        suite_name="s",
        suite_sha256="0",
        target="local",
        scenario="chat",
        metric="ttft_p50_ms" if is_lower_better else "output_throughput_tok_per_s",
        is_lower_better=is_lower_better,
        slo=slo,
        keep=keep,
        first_count=100,
        full_count=1000,
        candidates=tuple(Candidate(name=name, flags=() if name == OWN else ("--x", name)) for name in names),
    )


def with_round(one: Tuning, values: dict[str, float | None], within: dict[str, int] | None = None) -> Tuning:
    trials = tuple(
        Trial(
            candidate=name,
            value=value,
            request_count=100,
            within_slo=None if within is None else within.get(name, 100),
            reason="" if value else "rejected: cached answers",
        )
        for name, value in values.items()
    )
    done = Round(night=f"n{len(one.rounds)}", request_count=100, trials=trials)
    return one.model_copy(update={"rounds": (*one.rounds, done)})


def confirmed(one: Tuning, candidate: str, verdict: str, ratio: float = 1.2, within: int = 1000) -> Tuning:
    trials = [Trial(candidate=name, value=1.0, request_count=1000, within_slo=within) for name in (OWN, candidate)]
    trials[0] = trials[0].model_copy(update={"within_slo": 1000})
    done = Confirmation(
        night="c", trials=tuple(trials), ratio=ratio, ratio_low=ratio - 0.02, ratio_high=ratio + 0.02, verdict=verdict
    )
    return one.model_copy(update={"confirmations": (*one.confirmations, done)})


def test_the_better_half_goes_on_with_twice_the_requests_until_one_is_left() -> None:
    values: dict[str, float | None] = {OWN: 10.0, "c1": 13.0, "c2": 9.0, "c3": 12.0, "c4": 11.0}
    one = search(5)

    assert next_step(one) == Step((OWN, "c1", "c2", "c3", "c4"), 100)
    one = with_round(one, values)
    assert next_step(one) == Step(("c1", "c3", "c4"), 200)
    one = with_round(one, {name: values[name] for name in ("c1", "c3", "c4")})
    assert next_step(one) == Step(("c1", "c3"), 400)
    one = with_round(one, {"c1": 13.0, "c3": 12.0})
    assert next_step(one) == Step((OWN, "c1"), 1000, is_confirmation=True)
    assert course(search(5)) == [(5, 100), (3, 200), (2, 400)]


@pytest.mark.parametrize("keep", [2, 3])
def test_any_search_ends_whatever_fails_in_it(keep: int) -> None:
    drawn = random.Random(keep)
    for _ in range(50):
        one = search(drawn.randint(2, 30), keep=keep)
        for _night in range(12):
            step = next_step(one)
            if step.answer or step.is_confirmation:
                break
            one = with_round(one, {name: drawn.choice([None, drawn.random() + 1]) for name in step.candidates})
        assert step.answer or step.is_confirmation


def test_the_lowest_wins_where_less_is_better() -> None:
    assert next_step(with_round(search(2, is_lower_better=True), {OWN: 10.0, "c1": 9.0})).candidates == (OWN, "c1")


def test_a_failed_or_rejected_candidate_never_goes_on_nor_one_that_surely_misses_the_slo() -> None:
    slo = Slo(ttft_ms_max=50)
    one = with_round(search(4, slo=slo), {OWN: 10.0, "c1": None, "c2": 99.0, "c3": 11.0}, {"c2": 80, "c3": 98})

    assert next_step(one).candidates == (OWN, "c3"), "98 of 100 may still be a share of 99 %"


def test_where_all_are_dropped_the_answer_has_each_reason() -> None:
    step = next_step(with_round(search(2, slo=Slo(ttft_ms_max=50)), {OWN: 10.0, "c1": None}, {OWN: 10}))

    assert step.answer == (
        "no candidate has an accepted run that keeps the SLO (99% of requests with ttft <= 50 ms): "
        "own: misses the SLO: 10.0% of 100 requests keep it; c1: rejected: cached answers"
    )


def test_own_flags_that_are_the_best_need_no_confirmation() -> None:
    step = next_step(with_round(search(2), {OWN: 10.0, "c1": 9.0}))

    assert (step.winner, step.candidates) == (None, ())
    assert "the suite's own flags are the best of what was tried" in step.answer


def test_only_a_confirmed_gain_is_the_answer() -> None:
    one = with_round(search(2), {OWN: 10.0, "c1": 12.0})

    gain, unsure = (next_step(confirmed(one, "c1", verdict)) for verdict in ("gain", "inconclusive"))

    assert gain.winner == "c1"
    assert gain.answer == (
        "--x c1: output_throughput_tok_per_s +20.0 % [+18.0 %, +22.0 %] against the suite's own flags"
    )
    assert unsure.winner is None
    assert unsure.answer.startswith("no better flags were found: --x c1 is the best: ")


def test_a_candidate_that_misses_the_slo_at_full_length_gives_way_to_the_next_best() -> None:
    one = with_round(search(3, slo=Slo(ttft_ms_max=50)), {OWN: 10.0, "c1": 12.0, "c2": 11.0}, {})
    one = with_round(one, {"c1": 12.0, "c2": 11.0}, {})
    one = confirmed(one, "c1", "gain", within=980)

    second = next_step(one)
    last = next_step(confirmed(one, "c2", "gain", within=980))

    assert second == Step((OWN, "c2"), 1000, is_confirmation=True)
    assert last.winner is None
    assert "c2 was refused at full length: misses the SLO: 98.0% of 1000 requests keep it" in last.answer


def test_candidates_are_drawn_alike_from_a_seed_and_never_repeat_the_suites_own() -> None:
    tune = Tune.model_validate(
        {"flags": {"--max-num-seqs": list(range(200, 300)), "--eager": [True, False]}, "candidates": 8}
    )

    drawn = candidates_of(tune, ENGINE, 7)

    assert drawn == candidates_of(tune, ENGINE, 7)
    assert drawn != candidates_of(tune, ENGINE, 8)
    assert (len(drawn), drawn[0]) == (8, Candidate(name=OWN))
    small = Tune.model_validate({"flags": {"--max-num-seqs": [256, 64], "--eager": [True, False]}})
    assert [str(one) for one in candidates_of(small, ENGINE, 0)] == [
        "the suite's own flags",
        "--max-num-seqs 256 --no-eager",
        "--max-num-seqs 64 --eager",
        "--max-num-seqs 64 --no-eager",
    ]
