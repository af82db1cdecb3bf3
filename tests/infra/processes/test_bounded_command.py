import errno
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench.errors import CloudError, NotAskedError
from infra.clock import SystemClock, poll
from infra.clouds.command.scripts import Scripts
from infra.processes.bounded_command import KilledError, Limits, run_bounded
from infra.processes.environment import child_environment

PATIENCE_S = 600.0
ROOT = Path(__file__).parents[3]
QUICK, SLOW = Limits(1.0, 1000), Limits(PATIENCE_S, 1000)


def script(folder: Path, lines: str) -> list[str]:
    return ["/bin/sh", "-c", lines, str(folder / "marker")]


def sleepers(folder: Path) -> list[psutil.Process]:
    """The processes whose command line names this test's folder."""
    return [one for one in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(one.info["cmdline"] or ())]


def test_a_program_gets_its_input_and_its_output_is_returned(tmp_path: Path) -> None:
    ended = run_bounded(script(tmp_path, "cat; echo why >&2; exit 3"), b'{"a": 1}', child_environment(), SLOW)

    assert (ended.exit_code, ended.out, ended.err) == (3, '{"a": 1}', "why\n")


def test_a_program_that_hangs_is_killed_with_its_whole_process_group(tmp_path: Path) -> None:
    hangs = f"sh -c 'sleep 613; : {tmp_path}' & sleep 613"

    ended = run_bounded(script(tmp_path, hangs), b"", child_environment(), QUICK)

    assert ended.exit_code is None
    assert poll(SystemClock(), 0.05, lambda: not sleepers(tmp_path), PATIENCE_S)


def test_what_a_program_leaves_running_is_killed_when_it_exits(tmp_path: Path) -> None:
    leaves = f"sh -c 'sleep 613; : {tmp_path}' & echo done"

    ended = run_bounded(script(tmp_path, leaves), b"", child_environment(), SLOW)

    assert (ended.exit_code, ended.out) == (0, "done\n")
    assert poll(SystemClock(), 0.05, lambda: not sleepers(tmp_path), PATIENCE_S)


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_program_that_writes_without_end_is_killed(tmp_path: Path, stream: str) -> None:
    with pytest.raises(KilledError, match="more than 1000 bytes"):
        run_bounded(script(tmp_path, f"exec yes {tmp_path} >&{stream}"), b"", child_environment(), SLOW)

    assert poll(SystemClock(), 0.05, lambda: not sleepers(tmp_path), PATIENCE_S)


def test_a_program_that_cannot_be_watched_is_killed_and_not_taken_for_one_that_was_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptor_left(_pid: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", no_descriptor_left)

    with pytest.raises(KilledError, match=r"could not be watched .*Too many open files"):
        run_bounded(script(tmp_path, f"sleep 613; : {tmp_path}"), b"", child_environment(), SLOW)
    assert poll(SystemClock(), 0.05, lambda: not sleepers(tmp_path), PATIENCE_S)

    program = tmp_path / "rent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with pytest.raises(CloudError, match="rent was killed: it could not be watched") as raised:
        Scripts(tmp_path, SLOW).run("rent", {})
    assert not isinstance(raised.value, NotAskedError), "it may have rented a machine"


def test_a_program_whose_starter_was_killed_is_killed_at_its_time_limit_too(tmp_path: Path) -> None:
    code = f"""
import os, signal
from infra.processes.bounded_command import Limits, run_bounded
from infra.processes.environment import child_environment
hangs = "touch $0; kill -9 {{}}; sleep 613; : {tmp_path}".format(os.getpid())
run_bounded(["/bin/sh", "-c", hangs, {str(tmp_path / "started")!r}], b"", child_environment(), Limits(1.0, 1000))
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=PATIENCE_S)

    assert (ended.returncode, (tmp_path / "started").exists()) == (-9, True)
    assert poll(SystemClock(), 0.05, lambda: not sleepers(tmp_path), PATIENCE_S)
