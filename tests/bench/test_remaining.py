"""What is left of a night, by its plan and by what is there: every case of a resume."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from bench.plan import on_kind, plan_runs
from bench.record import NightRecord, PlannedRun
from bench.remaining import is_done, missing_runs, search_results, still_missing
from bench.search.probe import Probe, failed_probe
from bench.suite.parse import parse_suite
from bench.suite.slo import Slo
from tests.bench.search.servers import KneeServer

SUITE = """
name = "left"
repeats = 2
[model]
name = "tiny"
source = "generated:tiny?seed=0"
[engine]
version = "0.32.0"
max_model_len = 4096
[machine]
kind = "gpu-mi300x1-192gb"
[[ladder]]
max_num_seqs = 8
[[ladder]]
max_num_seqs = 4
[[scenarios]]
name = "chat"
isl = 16
osl = 8
concurrency = 1
request_count = 12
[[sweeps]]
name = "users"
isl = 16
osl = 4
concurrency_max = 64
repeats = 1
"""
OTHER_KIND = "gpu-mi325x1-256gb"


class There:
    """Results by name, `chat/0` or on the first rung `chat/0^1`: measured, or the class of the failure."""

    def __init__(self, results: Mapping[str, str]) -> None:
        self._results = results

    def has(self, run: PlannedRun) -> bool:
        return name_of(run) in self._results

    def failure(self, run: PlannedRun) -> str | None:
        found = self._results.get(name_of(run))
        return None if found == "measured" else found

    def probe(self, run: PlannedRun, slo: Slo | None) -> Probe:
        assert slo is None, "a sweep has none"
        if (failure := self.failure(run)) is not None:
            return failed_probe(run.scenario, failure)
        return KneeServer(5, noise=0.0).probe(run.scenario.workload.concurrency or 0)


def name_of(run: PlannedRun) -> str:
    moved = "" if run.scenario.machine.kind != OTHER_KIND else "@325"
    return f"{run.scenario.name}/{run.repeat}" + (f"^{run.scenario.rung}" if run.scenario.rung else "") + moved


@pytest.fixture
def night() -> NightRecord:
    suite = parse_suite(SUITE, "left.toml")
    return NightRecord(
        night="2026-11-23T020000Z",
        target="digitalocean",
        started_at=datetime(2026, 11, 23, 2, tzinfo=UTC),
        suite=suite,
        suite_sha256="0",
        seed=1,
        runs=plan_runs(suite, 1),
    )


DONE = {"chat/0": "measured", "chat/1": "measured"}


@pytest.mark.parametrize(
    ("there", "left"),
    [
        ({}, {"chat/0", "chat/1", "users/0"}),  # killed before its first run
        ({"chat/0": "measured"}, {"chat/1", "users/0"}),
        ({**DONE, "chat/0": "gpu_fault"}, {"users/0"}),  # a failure is a result
        ({**DONE, "chat/0": "oom_kv"}, {"users/0", "chat/0^1"}),
        ({**DONE, "chat/0": "oom_kv", "chat/0^1": "measured"}, {"users/0"}),
        ({**DONE, "chat/0": "oom_kv", "chat/0^1": "oom_kv"}, {"users/0", "chat/0^2"}),
        ({**DONE, "chat/0": "oom_kv", "chat/0^1": "oom_kv", "chat/0^2": "oom_kv"}, {"users/0"}),  # the last rung
        ({**DONE, "chat/0": "oom_kv", "chat/0^1": "gpu_fault"}, {"users/0"}),
        ({**DONE, "users/0": "measured"}, {"users/concurrency=4/0"}),  # one probe at a time
        ({**DONE, "users/0": "gpu_fault"}, set()),  # a search whose first probe fails is at its end
        ({**DONE, "users/0": "oom_kv"}, {"users/0^1"}),  # begun again on the next rung
        ({**DONE, "users/0": "oom_kv", "users/0^1": "measured"}, {"users/concurrency=4/0^1"}),
        ({"elsewhere/0": "measured"}, {"chat/0", "chat/1", "users/0"}),  # a result that the plan does not name
    ],
)
def test_what_a_resume_runs(night: NightRecord, there: Mapping[str, str], left: set[str]) -> None:
    runs = missing_runs(night, There(there))

    assert {name_of(run) for run in runs} == left
    assert len(runs) == len(left)


def test_on_another_kind_of_machine_only_what_is_not_there_is_run(night: NightRecord) -> None:
    there = There({**DONE, "chat/0": "oom_kv", "chat/0^1": "measured", "chat/1": "oom_kv", "users/0": "measured"})

    moved = on_kind(night, OTHER_KIND, [run for run in night.runs if is_done(night, there, run)])

    # The rung that was measured stays; the sweep begins anew, since its numbers are compared with each other.
    assert {name_of(run) for run in missing_runs(moved, there)} == {"chat/1^1@325", "users/0@325"}


@pytest.mark.parametrize(
    ("there", "measured", "left"),
    [
        (DONE, "chat/1", ["users/0"]),
        ({"chat/1": "measured", "users/0": "measured"}, "users/0", ["users/concurrency=4/0", "chat/0"]),
        ({**DONE, "users/0": "gpu_fault"}, "users/0", []),
    ],
)
def test_the_probe_that_follows_comes_first(
    night: NightRecord, there: Mapping[str, str], measured: str, left: list[str]
) -> None:
    (run,) = (one for one in night.runs if name_of(one) == measured)

    assert [name_of(one) for one in still_missing(night, There(there), run, night.runs)] == left


def test_a_search_shows_what_its_probes_found_until_now(night: NightRecord) -> None:
    (before,) = search_results(night, There({}))
    (begun,) = search_results(night, There({"users/0": "oom_kv", "users/0^1": "measured"}))

    assert (before.is_over, before.probes) == (False, ())
    assert [(one.probe.concurrency, one.probe.reason) for one in begun.probes] == [(1, None)]
