"""A closed loop of which the plan cancels many requests: their slots were busy until then, and idle ones still show."""

import heapq
import random
from dataclasses import replace

import numpy as np
import pytest

from bench import evidence_columns as ev
from bench.audit.measurement import evidence
from bench.audit.rules import BY_COLUMN, judge
from bench.metrics import CANCELLED
from bench.suite.workload import Workload
from bench.suite.workloads.cancel import Cancel
from tests.bench.builders import Answer, Measured, healthy

SLOTS, COUNT, E2EL_S = 8, 400, 5.0
COLUMNS = (ev.CONCURRENCY_SHARE, ev.LITTLE_OVER_ASKED, ev.IMPLIED_OVER_MEDIAN_E2EL)


def closed_loop(cancel: Cancel, idle_s: float) -> Measured:
    """Slots that are busy but for `idle_s` after each request; each answer that is not cancelled takes E2EL_S."""
    draw, free = random.Random(1), [0.0] * SLOTS
    answers, outcomes = list[Answer](), list[str]()
    for _ in range(COUNT):
        sent = heapq.heappop(free)
        tokens = np.linspace(sent + 0.5, sent + E2EL_S, 64)
        cut = sent + draw.uniform(*cancel.after_s) if draw.random() < cancel.share else np.inf
        answers.append(Answer(sent, tuple(tokens[tokens <= cut]), is_ok=cut == np.inf))
        outcomes.append("ok" if cut == np.inf else CANCELLED)
        heapq.heappush(free, min(cut, tokens[-1]) + idle_s)
    work = Workload(isl=128, osl=64, request_count=COUNT, warmup_count=SLOTS, concurrency=SLOTS, cancel=cancel)
    run = healthy(answers, work)
    return replace(run, report=replace(run.report, requests=replace(run.report.requests, outcome=tuple(outcomes))))


@pytest.mark.parametrize(("idle_s", "expected"), [(0.0, {"PASS"}), (5.0, {"FAIL"})])
@pytest.mark.parametrize(("share", "after_s"), [(0.2, (0.5, 4.0)), (0.5, (0.5, 4.0)), (0.6, (3.0, 4.5))])
def test_slots_that_cancelled_requests_held_are_not_idle(
    share: float, after_s: tuple[float, float], idle_s: float, expected: set[str]
) -> None:
    run = closed_loop(Cancel(share=share, after_s=after_s), idle_s)

    found = evidence(run.record, run.report, run.row, run.deltas)

    judged = {column: judge(BY_COLUMN[column], found[column]) for column in COLUMNS if found[column] is not None}
    assert set(judged) == set(COLUMNS)
    assert {judged[ev.CONCURRENCY_SHARE], judged[ev.IMPLIED_OVER_MEDIAN_E2EL]} == expected
    assert judged[ev.LITTLE_OVER_ASKED] == "PASS"
