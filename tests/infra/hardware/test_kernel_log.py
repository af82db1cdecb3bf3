"""Errors of GPUs in the kernel's log during a load."""

from pathlib import Path

import pytest

from infra.hardware.kernel_log import KernelLog, is_gpu_error


@pytest.mark.parametrize(
    ("line", "is_error"),
    [
        ("4,1,2,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.", True),
        ("3,1,2,-;amdgpu 0000:05:00.0: amdgpu: GPU reset begin!", True),
        ("3,1,2,-;amdgpu 0000:05:00.0: amdgpu: [gfxhub0] retry page fault (src_id:0 ring:0)", True),
        ("6,1,2,-;amdgpu: 4 uncorrectable hardware errors detected in umc block", True),
        ("6,1,2,-;amdgpu 0000:05:00.0: amdgpu: SMU is initialized successfully!", False),
        ("6,1,2,-;eth0: link is up", False),
    ],
)
def test_errors_of_gpus_are_told_from_other_lines(line: str, *, is_error: bool) -> None:
    assert is_gpu_error(line) is is_error


def test_only_what_is_new_counts(tmp_path: Path) -> None:
    kmsg = tmp_path / "kmsg"
    kmsg.write_text("4,1,2,-;NVRM: Xid (PCI:0000:3b:00): 31, before\n")
    log = KernelLog(kmsg)

    log.begin()
    with kmsg.open("a") as file:
        file.write("4,2,3,-;NVRM: Xid (PCI:0000:3b:00): 48,\x1b[2J during\n6,3,4,-;eth0: up\n" * 30)
    log.end()

    assert log.lines == ("NVRM: Xid (PCI:0000:3b:00): 48, during",) * 20
    assert log.why_unknown is None


def test_a_log_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "kmsg")
    log.begin()
    log.end()

    assert log.lines is None
    assert log.why_unknown == f"the kernel's log {tmp_path / 'kmsg'} cannot be read: No such file or directory"
