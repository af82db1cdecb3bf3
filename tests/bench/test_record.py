from typing import Any

import pytest
from pydantic import ValidationError

from bench.host import HostFacts
from bench.host_use import Busy
from bench.plan import plan_runs
from bench.record import (
    METHOD_VERSION,
    RECORD_VERSION,
    LeaseFacts,
    LoadRun,
    NightRecord,
    RunRecord,
)
from bench.server_facts import Weights
from bench.suite.suite import ScenarioEntry, Suite
from tests.bench.builders import CLOSED, OPEN, SCENARIO, STARTED_AT, run_record

FULL = run_record().model_copy(
    update={
        "host": HostFacts(
            hostname="bench-1",
            kernel="6.8.0",
            cpu_model="EPYC 9575F",
            cpu_count=64,
            memory_bytes=2**38,
            gpus=("MI300X",),
            python_version="3.11.7",
        ),
        "weights": Weights(revision="seed-0", sha256="1" * 64, bytes=12_345_678),
        "load": LoadRun(
            driver="meter", driver_version="0.1.0", argv=("python", "-I", "meter.pyz"), seed=3, exit_code=0
        ),
        "busy": Busy(load_average_before=0.1, load_average_after=1.9, steal_share=None),
        "lease": LeaseFacts(lease_id="l-1", cloud="local", machine_id="m-1", usd_per_hour=0.0),
        "stage_s": {"load": 12.5},
        "file_sha256": {"server.log.gz": "2" * 64},
    }
)
FAILED = run_record().model_copy(
    update={"outcome": "failed", "stage": "server", "reason": "the engine never became ready", "server": None}
)


def _night() -> NightRecord:
    entries = tuple(
        ScenarioEntry.model_validate(work.model_dump() | {"name": name})
        for name, work in (("closed", CLOSED), ("open", OPEN))
    )
    suite = Suite(name="night", model=SCENARIO.model, engine=SCENARIO.engine, scenarios=entries)
    return NightRecord(
        night="2026-11-21",
        target="local",
        started_at=STARTED_AT,
        suite=suite,
        suite_sha256="0" * 64,
        seed=suite.seed,
        runs=plan_runs(suite),
    )


@pytest.mark.parametrize("record", [run_record(), FULL, FAILED], ids=["bare", "full", "failed"])
def test_a_run_record_is_the_same_when_read_back(record: RunRecord) -> None:
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


def test_a_night_record_is_the_same_when_read_back() -> None:
    night = _night()

    assert NightRecord.model_validate_json(night.model_dump_json()) == night


def test_what_was_asked_keeps_its_id_when_read_back() -> None:
    read = RunRecord.model_validate_json(FULL.model_dump_json())

    assert read.asked.scenario_id == FULL.scenario_id


def _with_unknown_key(raw: dict[str, Any], *path: str) -> dict[str, Any]:
    table = raw
    for part in path:
        table = table[part]
    table["surprise"] = 1
    return raw


@pytest.mark.parametrize(
    "path",
    [(), ("host",), ("server",), ("weights",), ("load",), ("busy",), ("lease",), ("lineage",), ("quality",), ("asked",)]
    + [("asked", part) for part in ("machine", "model", "engine", "workload")],
    ids=lambda path: ".".join(path) or "record",
)
def test_a_run_record_refuses_a_key_it_does_not_know(path: tuple[str, ...]) -> None:
    raw = _with_unknown_key(FULL.model_dump(), *path)

    with pytest.raises(ValidationError, match="surprise"):
        RunRecord.model_validate(raw)


@pytest.mark.parametrize("path", [(), ("suite",), ("suite", "quality")], ids=lambda path: ".".join(path) or "night")
def test_a_night_record_refuses_a_key_it_does_not_know(path: tuple[str, ...]) -> None:
    raw = _with_unknown_key(_night().model_dump(), *path)

    with pytest.raises(ValidationError, match="surprise"):
        NightRecord.model_validate(raw)


def test_a_record_says_which_version_of_the_record_it_is() -> None:
    assert FULL.model_dump()["record_version"] == RECORD_VERSION


def test_a_record_says_which_version_of_the_method_made_it() -> None:
    assert FULL.lineage.method_version == METHOD_VERSION


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        FULL.outcome = "failed"  # type: ignore[misc]  # that mypy forbids it too is the point


def test_an_outcome_nobody_knows_is_refused() -> None:
    with pytest.raises(ValidationError, match="outcome"):
        RunRecord.model_validate(FULL.model_dump() | {"outcome": "done"})
