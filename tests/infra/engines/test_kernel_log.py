"""What the kernel says of a server that ended without a word."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.engines import vllm
from bench.engines.by_name import retry_of
from bench.engines.failures import find_failure
from bench.engines.kernel_failures import FAILURES
from infra.engines.engine_log import explain_log
from infra.engines.kernel_log import KernelMark, failure_since, lines_since, mark_kernel

# Written for this test, in the formats of Linux 6.18 and of the amdgpu driver.
DMESG = """\
[    1.597455] EXT4-fs (vda): mounted filesystem 00000000-0000-0000-0000-000000000000 r/w without journal.
[ 2042.100000] amdgpu 0000:05:00.0: amdgpu: GPU reset begin!
[12042.630926] Memory cgroup out of memory: Killed process 25823 (VLLM::Worker) total-vm:91124kB, anon-rss:61124kB
[12042.640000] oom_reaper: reaped process 25823 (VLLM::Worker), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
"""
KILLED = "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor."
EXITED = "Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor."
OUT_OF_KV = "ValueError: No available memory for the cache blocks."
DISK = "OSError: [Errno 28] No space left on device: '/models/model-00001.safetensors'"


@pytest.fixture
def vmstat(tmp_path: Path) -> Path:
    path = tmp_path / "vmstat"
    path.write_text("nr_free_pages 12\noom_kill 3\n")
    return path


@pytest.mark.parametrize(
    ("line", "kind", "retry"),
    [
        (DMESG.splitlines()[2], "oom_killer", "ladder"),
        ("Out of memory: Killed process 7 (python3) total-vm:9kB", "oom_killer", "ladder"),
        ("amdgpu 0000:05:00.0: amdgpu: GPU reset begin!", "gpu_hang", "replace_machine"),
        ("NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU has fallen off the bus.", "gpu_hang", "replace_machine"),
    ],
)
def test_the_kernels_words_have_a_class_and_a_retry(line: str, kind: str, retry: str) -> None:
    failure = find_failure(line, FAILURES)

    assert failure is not None
    assert (failure.kind, failure.is_a.retry, retry_of("vllm", failure.kind)) == (kind, retry, retry)


def test_only_what_the_kernel_logged_since_the_start_counts() -> None:
    since_boot, since_start = (lines_since(KernelMark(at_s, None), DMESG) for at_s in (0.0, 12000.0))

    assert [find_failure(text, FAILURES).kind for text in (since_boot, since_start)] == ["gpu_hang", "oom_killer"]  # type: ignore[union-attr]  # both have one


def test_a_counter_that_rose_is_an_out_of_memory_kill(vmstat: Path) -> None:
    mark = replace(mark_kernel(vmstat), at_s=sys.float_info.max)  # nothing that this computer logs counts

    assert failure_since(mark, vmstat) is None
    vmstat.write_text("oom_kill 5\n")
    failure = failure_since(mark, vmstat)

    assert failure is not None
    assert (failure.kind, "2 processes" in failure.line) == ("oom_killer", True)


def test_a_kernel_that_counts_nothing_says_nothing(tmp_path: Path) -> None:
    mark = replace(mark_kernel(tmp_path / "none"), at_s=sys.float_info.max)

    assert (mark.oom_kills, failure_since(mark, tmp_path / "none")) == (None, None)


@pytest.mark.parametrize(
    ("log", "kind"),
    [("", "oom_killer"), (KILLED, "oom_killer"), (EXITED, "oom_killer"), (OUT_OF_KV, "oom_kv"), (DISK, "disk")],
)
def test_the_kernel_explains_only_an_end_that_the_engine_does_not(tmp_path: Path, log: str, kind: str) -> None:
    file = tmp_path / "server.log"
    file.write_text(f"INFO starting\n{log}\n")
    mark = KernelMark(sys.float_info.max, -1)  # any count is more

    quoted, failure = explain_log(vllm, file, mark=mark)

    assert (failure, kind in quoted) == (kind, True)
