"""A small night of every kind of workload on the real engine, whose tokens are counted one by one."""

from pathlib import Path

import pytest

from benchmarks.token_counts import count_night
from benchmarks.token_loads import write_suite
from infra.loadgen.workload_kinds import KINDS
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.real_engine import with_python

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.timeout(1500),
    pytest.mark.usefixtures("calibrated", "nights_without_prefect"),
]
REQUESTS = 32
FORMS = {"structured output", "tool calls"}  # of one kind, counted apart
WITHOUT_A_ROW = {"start-up by phase", "structured output and tool calls", "tool calls scored by BFCL"}


def test_every_token_of_every_kind_is_as_requested_on_the_real_engine(
    house: NightFixture, engine: str, quick_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = with_python(quick_engine, engine, house.data.parent / "bin")
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", str(quick))
    write_suite(house.suite.parent, REQUESTS)

    night = run_nightly(house).night

    counted = count_night(house.data, night, Path(engine).with_name("python"))
    assert counted.faults(REQUESTS) == []
    assert {row.kind for row in counted.rows} >= {kind.name for kind in KINDS} - WITHOUT_A_ROW | FORMS
