"""Simulated runs agree with themselves, and the audit rejects none of them in any tool's format."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from benchmarks.false_alarms import WRITERS, Verdicts, lines, verdicts
from benchmarks.simulated.runs import Load, SimulatedRun, campaigns, run
from benchmarks.simulated.tables import claims_long

ROWS = 8  # of each format


@pytest.fixture(scope="module")
def found() -> dict[str, Verdicts]:
    return verdicts(ROWS * len(WRITERS), seed=7)


@pytest.mark.parametrize("name", WRITERS)
def test_no_clean_row_is_rejected(found: dict[str, Verdicts], name: str) -> None:
    of_format = found[name]

    assert of_format.rows >= ROWS
    assert of_format.alarms == []
    assert of_format.unread == []


def test_a_run_faster_than_its_gpus_is_rejected() -> None:
    def boosted(runs: Sequence[SimulatedRun]) -> Mapping[str, str]:
        setups = {
            each.load: replace(each.setup, bandwidth_share=9.0, compute_share=9.0, overhead_s=0.0) for each in runs
        }
        return claims_long([run(setups[each.load], each.load, each.seed) for each in runs])

    found = verdicts(12, seed=7, writers={"too fast": boosted})["too fast"]

    assert found.verdicts["rejected"] > found.rows / 2
    assert any("roofline" in alarm for alarm in found.alarms)


def test_a_run_is_the_same_again_and_keeps_to_its_load() -> None:
    for runs in islice(campaigns(5), 6):
        first = runs[0]
        again = run(first.setup, first.load, first.seed, first.started_at_s)

        assert np.array_equal(first.end_s, again.end_s)
        if first.load.concurrency:
            in_flight = [int(((first.start_s <= at) & (at < first.end_s)).sum()) for at in first.start_s]
            assert max(in_flight) <= first.load.concurrency
        assert all(len(gaps) == 0 or gaps.min() > 0 for gaps in first.gaps_s)


def test_a_batch_starts_all_requests_at_once() -> None:
    setup = next(campaigns(1))[0].setup

    found = run(setup, Load(drive="batch", requests=30, isl=64, osl=1), seed=0)

    assert np.ptp(found.start_s) < 0.01
    assert not len(found.good(found.tpot_s))


def test_an_alarm_is_printed_with_its_reason() -> None:
    one = Verdicts(alarms=["a row: ['roofline_compute: …']"], unread=["x.json has no known format"])
    one.verdicts.update(rejected=1, accepted=3)

    printed = "\n".join(lines({"a format": one}))

    assert "a format: 4 rows: accepted 75.0%, rejected 25.0%" in printed
    assert "REJECTED a row: ['roofline_compute" in printed
    assert "NOT READ x.json" in printed
