"""What a night does next: every case of its server, its failed starts and its machines."""

import pytest

from bench.engines.failures import Retry
from bench.night_steps import (
    MACHINES_MAX,
    ServerStep,
    StartStep,
    after_failed_start,
    is_replaced,
    longest_start_s,
    server_steps,
)


@pytest.mark.parametrize(
    ("needed", "ready_for", "is_process", "is_serving", "steps"),
    [
        ("a", None, False, False, ("start",)),  # the first run
        ("a", "a", True, True, ()),
        ("a", "a", True, False, ("stop", "start")),  # it exited during a run: nothing is there to evaluate
        ("a", "a", False, False, ()),  # an engine without a server, or the error of all its runs
        ("b", "a", True, False, ("evaluate", "stop", "start")),
        ("b", "a", False, False, ("start",)),
        (None, "a", True, False, ("evaluate", "stop")),  # the last run was measured
        (None, "a", False, False, ()),
        (None, None, False, False, ()),  # nothing was missing
    ],
)
def test_a_server_is_kept_for_its_runs_and_evaluated_before_it_stops(
    needed: str | None, ready_for: str | None, is_process: bool, is_serving: bool, steps: tuple[ServerStep, ...]
) -> None:
    assert server_steps(needed, ready_for, is_process=is_process, is_serving=is_serving) == steps


@pytest.mark.parametrize(
    ("retry", "starts", "left_s", "may_replace", "step"),
    [
        ("never", 1, 900.0, True, "accept"),
        ("ladder", 1, 900.0, True, "accept"),  # the same run on the next rung follows as a missing run
        ("same", 1, 100.0, True, "start_again"),
        ("same", 1, 99.0, True, "no_time"),
        ("longer", 1, 200.0, True, "start_again"),
        ("longer", 1, 199.0, True, "no_time"),
        ("same", 2, 900.0, True, "accept"),
        ("longer", 2, 900.0, True, "accept"),
        ("replace_machine", 1, 900.0, True, "replace_machine"),
        ("replace_machine", 2, 0.0, True, "replace_machine"),
        ("replace_machine", 1, 900.0, False, "accept"),
    ],
)
def test_a_failed_start_is_followed_by_what_its_class_and_the_lease_allow(
    retry: Retry, starts: int, left_s: float, may_replace: bool, step: StartStep
) -> None:
    again_s = longest_start_s(retry, 100.0)

    assert after_failed_start(retry, starts, again_s=again_s, left_s=left_s, may_replace=may_replace) == step


@pytest.mark.parametrize(
    ("machines", "is_lost", "missing", "is_next"),
    [
        (1, True, 2, True),
        (MACHINES_MAX - 1, True, 1, True),
        (MACHINES_MAX, True, 1, False),
        (1, True, 0, False),  # lost after its last run
        (1, False, 2, False),  # the budget or a defect ended it, and would end the next one
    ],
)
def test_a_lost_machine_is_replaced_while_runs_are_missing(
    machines: int, is_lost: bool, missing: int, is_next: bool
) -> None:
    assert is_replaced(machines, is_lost=is_lost, missing=missing) is is_next
