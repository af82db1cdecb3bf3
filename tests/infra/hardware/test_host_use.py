"""What other processes take of a host during a load: CPU time and GPUs, and what is unknown."""

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from infra.hardware.host_use import CpuTimes, GpuWatch, Look, Use, busiest, plain, read_cpu
from infra.hardware.own_processes import OwnProcesses, ProcessTimes
from infra.hardware.telemetry import SCHEMA, Sampler, write_samples
from tests.infra.fake_tools import FakeTools
from tests.infra.hardware.test_own_processes import BURNS_S, work, worker

PRESSURE = {"cpu": 1.0, "memory": 0.0, "io": 0.0}


def look(at_s: float, processes_s: float, own_s: float, waiting_s: dict[str, float] | None = None) -> Look:
    """Two cores at one moment, from a boot at 0."""
    return Look(at_s, CpuTimes(processes_s, 2 * at_s, PRESSURE if waiting_s is None else waiting_s), own_s)


def test_the_share_of_other_processes_is_that_of_all_less_our_own() -> None:
    used = Use.between(look(10.0, 4.0, 1.0), look(20.0, 20.0, 13.0, {"cpu": 6.0, "memory": 1.0, "io": 2.0}))

    assert used == Use(
        other_cpu_share=4.0 / 20, cpu_pressure_share=0.5, memory_pressure_share=0.1, io_pressure_share=0.2
    )


def test_a_host_whose_clocks_disagree_is_quiet_and_not_below_it() -> None:
    assert Use.between(look(10.0, 4.0, 1.0), look(20.0, 20.0, 17.5)).other_cpu_share == 0.0


def test_what_a_kernel_does_not_tell_is_unknown() -> None:
    used = Use.between(look(10.0, 4.0, 1.0, {}), look(10.0, 4.0, 1.0, {}))

    assert used == Use(None, None, None, None)


def test_a_sampler_tells_the_work_of_other_processes_from_our_own(tmp_path: Path) -> None:
    with worker() as ours, worker() as other:
        sampler = Sampler(OwnProcesses({ours.pid}, {ours.pid}), ours.pid)
        total_s = read_cpu().total_s
        with sampler:
            work(ours, "itself")
            work(other, "itself")
        total_s = read_cpu().total_s - total_s
        use = sampler.host_use
        write_samples(sampler.samples, tmp_path / "telemetry.parquet")

    assert use.other_cpu_share is not None
    # The other one burnt its time, and at most all but ours was burnt by others; the host is counted by ticks.
    assert BURNS_S / 2 / total_s <= use.other_cpu_share <= 1 - BURNS_S / 2 / total_s
    assert f"(pid {ours.pid})" not in "".join(use.other_processes)
    assert ("pressure" in use.unknown) == (use.io_pressure_share is None)
    assert use.run_queue_mean is not None
    assert use.run_queue_mean >= 1  # this very process
    assert (use.other_memory_bytes_per_s is None) == ("memory_bandwidth" in use.unknown)
    assert pq.read_schema(tmp_path / "telemetry.parquet").names == SCHEMA.names


def _at(pid: int, name: str, cpu_s: float, waited_s: float = 0.0, began: int = 0) -> ProcessTimes:
    return ProcessTimes(pid, name, 1, pid, began, cpu_s, waited_s, 0)


def test_the_busiest_processes_are_named_with_what_they_took_in_that_time() -> None:
    before = [_at(1, "init", 500.0, 900.0), _at(2, "browser", 50.0), _at(3, "make", 0.1, 7.0), _at(4, "idle", 9.0)]
    now = [
        *(_at(1, "init", 500.2, 900.0), _at(2, "browser", 62.0), _at(3, "make", 0.2, 27.0), _at(4, "idle", 9.0)),
        *(_at(5, "new", 1.0), _at(6, "browser", 3.0)),
    ]

    assert busiest(before, now, 100.0) == (
        "children of make (pid 3) 20%",
        "browser (2 processes) 15%",
        "new (pid 5) 1%",
    )
    assert busiest(before, before, 100.0) == busiest(before, now, 0.0) == ()


@pytest.mark.parametrize("is_known", [True, False], ids=["exited", "in an unknown session"])
def test_an_engine_that_this_host_does_not_list_leaves_the_share_unknown(*, is_known: bool) -> None:
    with worker() as process:
        gone = process.pid
    sampler = Sampler(OwnProcesses({os.getpid()}, {gone}), gone if is_known else None)
    with sampler:
        pass

    assert sampler.host_use.other_cpu_share is None
    assert "the engine's processes are not among those" in sampler.host_use.unknown["cpu"]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return FakeTools(tmp_path / "bin")


def watched(tools: FakeTools, listed: str, *, exit_code: int = 0) -> tuple[tuple[str, ...] | None, str | None]:
    """What a watch found that nvidia-smi told this, in a run of this very process."""
    tools.says("nvidia-smi", listed, when="--query-compute-apps", exit_code=exit_code)
    with GpuWatch() as watch:
        pass
    return watch.others(OwnProcesses({os.getpid()}, set())), watch.why_unknown


def test_gpu_processes_that_are_not_ours_are_named(tools: FakeTools) -> None:
    ours = f"{os.getpid()}, /opt/venv/bin/python3, 70144, GPU-0\n"

    assert watched(tools, ours) == ((), None)
    assert watched(tools, f"{ours}1, /usr/bin/miner, 900, GPU-0\n") == (("miner (pid 1)",), None)


@pytest.mark.parametrize(("gpus", "held"), [({"GPU-0", "0"}, 0), ({"GPU-0", "GPU-7"}, 900 << 20), (None, 900 << 20)])
def test_who_uses_another_gpu_of_the_host_takes_nothing_of_this_run(
    tools: FakeTools, gpus: set[str] | None, held: int
) -> None:
    listed = f"{os.getpid()}, /opt/venv/bin/python3, 70144, GPU-0\n1, /usr/bin/miner, 900, GPU-7\n"
    tools.says("nvidia-smi", listed, when="--query-compute-apps")
    with GpuWatch(None if gpus is None else frozenset(gpus)) as watch:
        pass
    own = OwnProcesses({os.getpid()}, set())

    assert watch.others(own) == (("miner (pid 1)",) if held else ())
    assert watch.other_bytes(own) == held


def test_a_gpu_tool_that_does_not_list_us_proves_nothing_about_others(tools: FakeTools) -> None:
    others, why = watched(tools, "")

    assert others is None
    assert why is not None
    assert "lists no process of this run" in why


def test_a_gpu_tool_that_fails_leaves_its_reason(tools: FakeTools) -> None:
    others, why = watched(tools, "NVML: GPU is lost", exit_code=15)

    assert others is None
    assert why is not None
    assert "the GPU driver of this machine fails" in why


def test_a_host_without_a_gpu_tool_says_so(tools: FakeTools) -> None:
    with GpuWatch() as watch:
        pass

    assert tools.calls == []
    assert watch.others(OwnProcesses({os.getpid()}, set())) is None
    assert watch.why_unknown == "neither amd-smi nor nvidia-smi is on this machine"


def test_a_process_that_names_itself_with_escapes_moves_no_cursor() -> None:
    assert plain("\x1b[2Jminer\n") == "?[2Jminer?"
