"""The choice of cases: no pair of values is left out, and little is repeated."""

import itertools
import subprocess
import sys

import pytest

from tests.pairs import every_pair, matrix, thin_matrix

STEPS = [f"S{number}" for number in range(15)]
YES_NO = (False, True)


def ttest_each_value_meets_each_value_of_every_other_factor() -> None:
    factors = (STEPS, YES_NO, YES_NO, ("a", "b", "c"))

    cases = every_pair(*factors)

    for i, j in itertools.combinations(range(len(factors)), 2):
        assert {(case[i], case[j]) for case in cases} == set(itertools.product(factors[i], factors[j]))


def ttest_a_matrix_of_three_factors_shrinks_to_the_product_of_the_two_largest() -> None:
    assert len(every_pair(STEPS, YES_NO, YES_NO)) == 15 * 2


def ttest_two_factors_are_combined_in_full() -> None:
    assert every_pair(STEPS, YES_NO) == list(itertools.product(STEPS, YES_NO))


def ttest_the_cases_are_the_same_in_every_worker() -> None:
    program = "from tests.pairs import every_pair; print(every_pair('abcdefgh', 'ijk', 'lm', 'no'))"
    argv = [sys.executable, "-c", program]

    shown = {subprocess.run(argv, capture_output=True, text=True, check=True).stdout for _ in range(2)}

    assert len(shown) == 1


def ttest_a_soak_runs_every_combination() -> None:
    program = "from tests.pairs import every_pair; print(len(every_pair('abcdefgh', 'ijk', 'lm')))"

    done = subprocess.run(
        [sys.executable, "-c", program], env={"SOAK": "1"}, capture_output=True, text=True, check=True
    )

    assert done.stdout == "48\n"


def ttest_one_of_each_three_cases_of_a_matrix_stays_and_the_others_are_marked() -> None:
    cases = thin_matrix([(1, "a"), (2, "b"), (3, "c"), (4, "d")], each=3)

    marked = [pytest.param(*case, marks=pytest.mark.matrix) for case in ((2, "b"), (3, "c"))]
    assert cases == [(1, "a"), *marked, (4, "d")]


def ttest_the_cases_of_one_value_are_marked_too() -> None:
    assert matrix("ab", kept=1) == ["a", pytest.param("b", marks=pytest.mark.matrix)]
