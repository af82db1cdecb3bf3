"""A night on the real vLLM on CPU that traces its scenario."""

import gzip
import json
from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.real_engine import with_python
from tests.flows.test_profiling import PROFILE, records_of

pytestmark = [pytest.mark.matrix, pytest.mark.e2e, pytest.mark.timeout(900)]

SUITE = """
name = "traced"
repeats = 1
ready_timeout_s = 300

[model]
name = "tiny"
source = "generated:tiny?seed=0"

[engine]
version = "0.32.0"
max_model_len = 2048
flags = ["--dtype", "bfloat16", "--enforce-eager", "--no-enable-prefix-caching"]
environment = { VLLM_CPU_KVCACHE_SPACE = "1", TORCHDYNAMO_DISABLE = "1" }

[quality]
min_duration_s = 0.2
min_requests_per_slot = 2
max_other_cpu_share = 1.0

[[scenarios]]
name = "chat"
isl = 32
osl = 16
concurrency = 2
request_count = 8
warmup_count = 1
"""


@pytest.mark.usefixtures("calibrated", "nights_without_prefect")
def test_the_trace_of_the_real_engine_has_its_operators(
    house: NightFixture, engine: str, quick_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = with_python(quick_engine, engine, house.data.parent / "bin")
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", str(quick))
    house.suite.write_text(SUITE + PROFILE.format(name="chat"))

    night = run_nightly(house).night

    ((folder, record),) = records_of(house, night).items()
    assert record.reason is None
    events = json.loads(gzip.decompress((folder / record.traces[0]).read_bytes()))["traceEvents"]
    operators = [event["name"] for event in events if event.get("cat") == "cpu_op"]
    assert operators.count("_C::onednn_mm") > 1
    assert "Self CPU time total" in next(folder.glob("*.txt")).read_text()
