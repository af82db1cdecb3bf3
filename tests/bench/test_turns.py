"""The servers of variants take turns: as many as the suite has, in an order that favours none."""

from itertools import groupby

import pytest

from bench.plan import plan_runs, turn_of
from bench.suite.parse import parse_suite

SUITE = """
name = "ab"
repeats = {repeats}
turns = {turns}
[model]
name = "m"
source = "generated:tiny"
[engine]
version = "1"
max_model_len = 4096
[[variants]]
name = "a"
[[variants]]
name = "b"
flags = ["--x"]
[[scenarios]]
name = "s"
isl = 16
osl = 8
concurrency = 1
request_count = 10
"""


def order(turns: int, repeats: int, seed: int = 0) -> str:
    """The variants in their order, each with as many letters as it has runs there."""
    runs = plan_runs(parse_suite(SUITE.format(turns=turns, repeats=repeats), "suite.toml"), seed)
    return "".join(run.scenario.name[-1] for run in runs)


@pytest.mark.parametrize("seed", range(4))
def test_eight_turns_are_four_rounds_each_the_mirror_of_the_one_before(seed: int) -> None:
    found = order(turns=8, repeats=8, seed=seed)

    assert found in {"abbabaababbabaab", "baababbabaababba"}


def test_two_turns_are_one_round_and_each_has_half_of_the_repeats() -> None:
    assert order(turns=2, repeats=4) in {"aabbbbaa", "bbaaaabb"}


def test_a_drift_in_a_line_falls_out_of_each_round() -> None:
    found = order(turns=8, repeats=8)

    for begin in range(0, len(found), 4):
        places = {side: sum(at for at in range(4) if found[begin + at] == side) for side in "ab"}
        assert places["a"] == places["b"]


@pytest.mark.parametrize(("repeats", "turns"), [(1, 2), (3, 2), (5, 2), (7, 4), (16, 8)])
def test_the_first_turns_have_the_odd_repeats(repeats: int, turns: int) -> None:
    found = [turn_of(repeat, repeats, turns) for repeat in range(repeats)]
    counts = [len(list(group)) for _, group in groupby(found)]

    assert found == sorted(found)
    assert max(counts) - min(counts) <= 1
    if turns == 2:
        assert found.count(0) == (repeats + 1) // 2
