"""The runner of the GPU tools, on tools that behave as they do: slow, cut off, hanging, failing, gone."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bench.machine.gpu_telemetry import amd_smi, nvidia_smi, rocm_smi
from infra.hardware.gpu_sampler import GpuSampler, Limits, find_tools
from tests.infra.fake_tools import FakeTools, twin

QUICK = Limits(silent_s=0.5, pause_s=0.01, starts=3, barren_lines=50, samples=400, last_s=5.0)
AMD_HEADER, AMD_ROW = "timestamp,gpu,socket_power,hotspot", "1772939616,0,350,72"
NVIDIA = twin("nvidia-smi-watch.csv").splitlines()
PATIENCE_S = 300.0


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    """A machine without tools, and whose shell still finds sleep."""
    made = FakeTools(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{made.folder}:{os.environ['PATH']}")
    before = running_children()
    yield made
    assert running_children() <= before


def running_children() -> set[psutil.Process]:
    """The children of this process; other tests may have left a fork server, which serves them all."""
    return {one for one in psutil.Process().children() if one.status() != psutil.STATUS_ZOMBIE}


def until(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    ends_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends_s
        time.sleep(0.005)


def test_a_machine_without_a_tool_has_no_rows_and_no_trouble() -> None:
    with GpuSampler(()) as sampler:
        pass

    assert (sampler.rows, sampler.trouble, sampler.tool) == ([], None, None)


def test_the_preferred_tool_of_a_machine_is_used(tools: FakeTools) -> None:
    for name in ("nvidia-smi", "rocm-smi", "amd-smi"):
        tools.says(name, "")

    assert [tool.name for tool in find_tools()] == ["amd-smi", "rocm-smi", "nvidia-smi"]


def test_rows_are_kept_as_they_come_and_the_tool_ends_with_the_load(tools: FakeTools) -> None:
    tools.says("nvidia-smi", "", then=f"while :; do printf '%s\\n' '{NVIDIA[0]}' '{NVIDIA[2]}'; sleep 0.05; done")

    with GpuSampler([nvidia_smi.TOOL], QUICK) as sampler:
        until(lambda: len(sampler.rows) > 2)
        seen = len(sampler.rows)
    rows = sampler.rows

    assert len(rows) > seen  # one after the end of the load
    assert (sampler.trouble, sampler.tool) == (None, "nvidia-smi")
    assert {(row["gpu_index"], row["gpu_power_w"], row["gpu_throttle_reasons"]) for row in rows} == {
        (0, 691.1, "power cap")
    }
    assert [row["monotonic_ns"] for row in rows] == sorted(row["monotonic_ns"] for row in rows)


def test_an_older_tool_gets_a_simpler_command_and_is_not_at_fault(tools: FakeTools) -> None:
    tools.says("amd-smi", "amd-smi: error: unrecognized arguments: -v\n", exit_code=2)
    tools.says("amd-smi", twin("amd-list.json"), when="list --json")
    tools.says("amd-smi", "", when="-p -c -t -u -w 1", then=f"printf '%s\\n' '{AMD_HEADER}' '{AMD_ROW}'; sleep 60")

    with GpuSampler([amd_smi.TOOL], Limits(pause_s=0.01, last_s=0.01)) as sampler:
        until(lambda: sampler.rows)

    assert sampler.trouble is None
    assert sampler.rows[0]["gpu_uuid"] == "5aff74a1-0000-1000-80d5-58eb34b4b7a1"
    assert len(tools.called("amd-smi")) == 4


def test_a_tool_without_a_watch_is_called_again(tools: FakeTools) -> None:
    tools.says("rocm-smi", twin("rocm-smi.json"))

    with GpuSampler([rocm_smi.TOOL], QUICK) as sampler:
        until(lambda: len(sampler.rows) > 1)

    assert sampler.trouble is None


def test_a_tool_that_vanishes_in_a_load_leaves_its_rows_and_a_sentence(tools: FakeTools) -> None:
    tools.says(
        "nvidia-smi",
        "",
        exit_code=9,
        then=f'printf "%s\\n" "{NVIDIA[0]}" "{NVIDIA[1]}"; rm "{tools.folder}/nvidia-smi"',
    )

    with GpuSampler([nvidia_smi.TOOL], QUICK) as sampler:
        until(lambda: sampler.trouble and "given up" in sampler.trouble)

    assert len(sampler.rows) == 1
    assert (
        sampler.trouble
        == "nvidia-smi could not be started: No such file or directory, and failed 4 times in all; it was given up"
    )


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo 'Failed to initialize NVML: Unknown Error'; exit 255", "ended with exit code 255: unknown line 'Failed"),
        ("sleep 600 & sleep 600", "printed no sample for 0.5 s"),
        ("while :; do echo '\033[2Jgarbage, \"'; done", "lines in a row without a sample: unknown line"),
        ("while :; do printf '%09000d' 1; done", "lines in a row without a sample"),
        (f"while :; do echo '{NVIDIA[0]}'; done", "lines in a row without a sample"),
    ],
    ids=["fails", "hangs", "prints garbage", "prints no end of line", "prints headers only"],
)
def test_a_broken_tool_is_given_up_with_a_sentence(tools: FakeTools, script: str, sentence: str) -> None:
    tools.says("nvidia-smi", "", then=script)
    # A tool that prints may be slow on a busy host, and is not silent.
    silent_s = 0.5 if "sleep" in script else 60.0
    limits = Limits(silent_s=silent_s, pause_s=0.01, starts=1, barren_lines=20)

    with GpuSampler([nvidia_smi.TOOL], limits) as sampler:
        until(lambda: sampler.trouble and "given up" in sampler.trouble)

    assert sampler.rows == []
    assert sampler.trouble is not None
    assert sentence in sampler.trouble
    assert sampler.trouble.isprintable()
    assert "failed 3 times" in sampler.trouble


def test_a_tool_that_prints_too_fast_is_ended(tools: FakeTools) -> None:
    tools.says("nvidia-smi", "", then=f"echo '{NVIDIA[0]}'; while :; do echo '{NVIDIA[1]}'; done")

    with GpuSampler([nvidia_smi.TOOL], QUICK) as sampler:
        until(lambda: sampler.trouble and "given up" in sampler.trouble)

    assert sampler.trouble == "nvidia-smi was ended after 400 samples; it was given up"
    assert 400 <= len(sampler.rows) < 5000


def test_no_thread_is_left(tools: FakeTools) -> None:
    tools.says("nvidia-smi", "", then="sleep 600")

    with GpuSampler([nvidia_smi.TOOL], QUICK):
        until(lambda: tools.calls)

    assert "gpu-telemetry" not in {thread.name for thread in threading.enumerate()}
