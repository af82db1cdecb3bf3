"""Each rule about the canary fires on a machine that is near its floor or became slower, and on no other."""

import pytest

from bench import evidence_columns as ev
from bench.audit.evidence.canary import canary_evidence
from bench.audit.evidence.evidence import EvidenceByColumn, Observed
from bench.audit.judge import finding_of
from bench.audit.rules import BY_COLUMN, judge
from bench.machine.canary import CanaryResult
from catalog.read import find_gpu, read_canary_floors
from tests.bench.machine.canaries import record


def evidence(before: dict[str, float], after: dict[str, float]) -> EvidenceByColumn:
    return canary_evidence((record(before), record(after, "after")), find_gpu, read_canary_floors())


def found(column: str, evidence: EvidenceByColumn) -> tuple[str, str]:
    value = evidence[column]
    assert isinstance(value, Observed)
    status = judge(BY_COLUMN[column], value.value)
    return status, finding_of(BY_COLUMN[column], value, status).message


@pytest.mark.parametrize(("value", "status"), [(3300.0, "WARN"), (3195.0, "WARN"), (3600.0, "PASS"), (4200.0, "PASS")])
def test_a_machine_near_its_floor_is_a_warning(value: float, status: str) -> None:
    assert found(ev.CANARY_OVER_FLOOR, evidence({"memory_copy": value}, {}))[0] == status


def test_the_finding_names_the_slowest_test_its_gpu_and_its_speed() -> None:
    _, message = found(ev.CANARY_OVER_FLOOR, evidence({"memory_copy": 4200.0, "matmul_fp8": 540.0}, {}))

    assert message == (
        "the canary reached 1.03 times the floor of this GPU; a healthy one is well above it: "
        "matmul_fp8 of GPU 0 (AMD Instinct MI300X VF) reached 540 TFLOP/s"
    )


def test_a_machine_that_falls_below_its_floor_during_the_runs_is_a_warning_too() -> None:
    assert found(ev.CANARY_OVER_FLOOR, evidence({"memory_copy": 4200.0}, {"memory_copy": 1000.0}))[0] == "WARN"


@pytest.mark.parametrize(("after", "status"), [(4200.0, "PASS"), (3900.0, "PASS"), (3700.0, "WARN")])
def test_a_machine_that_became_slower_is_a_warning(after: float, status: str) -> None:
    told = found(ev.CANARY_KEPT_SHARE, evidence({"memory_copy": 4200.0}, {"memory_copy": after}))

    assert told[0] == status
    assert told[1].endswith(f"memory_copy of GPU 0, 4,200 before and {after:,.4g} after")


def test_a_link_that_became_slower_is_named_by_both_its_ends() -> None:
    before, after = (
        canary.model_copy(update={"results": (CanaryResult(test="link", device=0, peer=3, value=value),)})
        for canary, value in ((record({}), 48.0), (record({}, "after"), 12.0))
    )

    found_ = canary_evidence((before, after), find_gpu, read_canary_floors())

    assert found_ == {
        ev.CANARY_KEPT_SHARE: Observed(0.25, "link from GPU 0 to GPU 3, 48 before and 12 after"),
    }


def test_a_cpu_a_test_without_a_value_and_a_missing_second_canary_are_no_evidence() -> None:
    cpu = record({}).model_copy(update={"results": (CanaryResult(test="memory_copy", value=12.0),), "gpus": ()})
    lacking = (CanaryResult(test="memory_copy", device=0, reason="out of memory"),)

    for canaries in (
        (cpu, cpu.model_copy(update={"position": "after"})),
        (record({}).model_copy(update={"results": lacking}), record({"link": 1.0}, "after")),
        (record({"host_to_device": 0.1}).model_copy(update={"gpus": ("Some GPU",)}),),
        (),
    ):
        assert canary_evidence(canaries, find_gpu, read_canary_floors()) == {}
