"""The memory traffic of other processes, by a folder that is laid out like the kernel's resctrl."""

import os
from pathlib import Path

import pytest

from infra.hardware.memory_traffic import GROUP, MemoryTraffic

OURS = f"mon_groups/{GROUP}{os.getpid()}"


def count(resctrl: Path, group: str, *total: str) -> None:
    """What each memory controller has counted for a group."""
    for at, text in enumerate(total):
        folder = resctrl / group / "mon_data" / f"mon_L3_{at:02}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mbm_total_bytes").write_text(f"{text}\n")


def test_the_traffic_of_others_is_that_of_all_groups_less_that_of_ours(tmp_path: Path) -> None:
    count(tmp_path, ".", "1000", "200")
    count(tmp_path, "a-database", "50")
    count(tmp_path, OURS, "300", "0")
    traffic = MemoryTraffic({os.getpid()}, tmp_path)
    count(tmp_path, ".", "2000", "500")
    count(tmp_path, "a-database", "90")
    count(tmp_path, OURS, "1100", "40")

    assert traffic.end() == (1300 + 40) - (800 + 40)
    assert traffic.why_unknown is None


def test_our_group_has_our_threads_and_that_of_a_dead_night_is_removed(tmp_path: Path) -> None:
    count(tmp_path, ".", "1000")
    count(tmp_path, OURS, "300")
    dead = tmp_path / "mon_groups" / f"{GROUP}999999999"
    dead.mkdir()

    MemoryTraffic({os.getpid()}, tmp_path)

    threads = {thread.name for thread in Path("/proc/self/task").iterdir()}
    assert (tmp_path / OURS / "tasks").read_text() in threads  # the kernel adds each one that is written
    assert not dead.exists()


def test_a_host_without_resctrl_leaves_the_traffic_unknown(tmp_path: Path) -> None:
    traffic = MemoryTraffic({os.getpid()}, tmp_path)

    assert traffic.end() is None
    assert traffic.why_unknown == f"{tmp_path} is not mounted, and no other counter tells processes apart"


@pytest.mark.parametrize("text", ["Unavailable", "Error"])
def test_a_counter_that_gives_no_number_leaves_the_traffic_unknown(tmp_path: Path, text: str) -> None:
    count(tmp_path, ".", "1000")
    count(tmp_path, OURS, text)
    at_begin = MemoryTraffic({os.getpid()}, tmp_path)
    count(tmp_path, OURS, "300")
    at_end = MemoryTraffic({os.getpid()}, tmp_path)
    count(tmp_path, OURS, text)

    assert (at_begin.end(), at_end.end()) == (None, None)
    assert "does not count our processes apart" in str(at_begin.why_unknown)
    assert "stopped counting" in str(at_end.why_unknown)


def test_a_processor_that_counts_no_traffic_leaves_no_group(tmp_path: Path) -> None:
    (tmp_path / "mon_data").mkdir()
    (tmp_path / "mon_groups").mkdir()

    traffic = MemoryTraffic(set(), tmp_path)

    assert "has no mbm_total_bytes" in str(traffic.why_unknown)
    assert list((tmp_path / "mon_groups").iterdir()) == []
