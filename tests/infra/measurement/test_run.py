"""What a record says of its host beside what was sampled there."""

import pytest

from bench.host_use import HostUse
from infra.measurement.notes import with_missing_tool

GPUS = ("AMD Instinct MI300X VF",)


def test_a_machine_with_gpus_and_no_tool_says_why_it_has_no_telemetry() -> None:
    use = with_missing_tool(HostUse(unknown={"cpu": "not listed"}), GPUS)

    assert use.unknown == {
        "cpu": "not listed",
        "gpu_telemetry": "the machine has 1 GPUs and none of the tools amd-smi, rocm-smi, nvidia-smi",
    }
    assert use.gpu_telemetry is None


@pytest.mark.parametrize(
    ("use", "gpus"),
    [
        (HostUse(), ()),
        (HostUse(gpu_telemetry="amd-smi"), GPUS),
        (HostUse(unknown={"gpu_telemetry": "amd-smi printed no sample"}), GPUS),
    ],
    ids=["no GPU", "sampled", "said already"],
)
def test_nothing_is_added_where_nothing_is_missing(use: HostUse, gpus: tuple[str, ...]) -> None:
    assert with_missing_tool(use, gpus) == use
