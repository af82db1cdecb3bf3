"""Machines over SSH: a real sshd, through a wire that can fail."""

import hashlib
import logging
import os
import shutil
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bench.errors import (
    HostError,
    HostKeyError,
    LoginRefusedError,
    LostConnectionError,
    NotReadyError,
    RemoteCommandError,
    SilentHostError,
    TransferError,
    UnreachableHostError,
)
from infra.remote.host import Access
from infra.remote.ssh_host import SshHost
from infra.remote.ssh_shell import wait_until_ready
from tests.emulators.sshd import Sshd, make_key, running_machine
from tests.emulators.wire import Wire

SECRET = "hf_abcdef0123456789"  # noqa: S105


@dataclass(frozen=True)
class Far:
    """A machine, the wire to it, and how to reach it through that wire."""

    machine: Sshd
    wire: Wire
    access: Access

    def host(self, patience_s: float = 20.0, connect_s: float = 3.0) -> SshHost:
        return SshHost(self.access, patience_s=patience_s, connect_s=connect_s)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    path = tmp_path_factory.mktemp("keys") / "client"
    return path, make_key(path)


@pytest.fixture
def far(tmp_path: Path, keys: tuple[Path, str]) -> Iterator[Far]:
    private, public = keys
    with running_machine(tmp_path / "machine", public) as machine, Wire((machine.address, machine.port)) as wire:
        yield Far(machine, wire, Access("127.0.0.1", wire.port, "root", private, machine.host_public_key))


def until(is_so: Callable[[], bool], patience_s: float = 60.0) -> None:
    end = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def cut_once_it_runs(far: Far) -> Iterator[None]:
    """Cut the connection once the script in the block has created the file `begun`, and not while it connects."""

    def cut() -> None:
        until((far.machine.home / "begun").exists)
        far.machine.cut()

    cutter = threading.Thread(target=cut)
    cutter.start()
    yield
    cutter.join()


def test_a_script_runs_in_the_home_folder_and_returns_its_exit_code(far: Far) -> None:
    ran = far.host().run("pwd; cat; echo oh >&2; exit 7", stdin=b"given")

    assert (ran.out, ran.err, ran.exit_code) == (f"{far.machine.home}\ngiven", "oh\n", 7)


def test_output_is_passed_on_while_the_script_runs(far: Far) -> None:
    heard = far.machine.home / "heard"
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        heard.touch()

    far.host().run("echo one; for _ in $(seq 600); do [ -e heard ] && echo two && break; sleep 0.1; done", say=say)

    assert said[:2] == ["one", "two"]


def test_a_failing_command_raises_its_own_output(far: Far) -> None:
    with pytest.raises(RemoteCommandError, match="failed with exit code 2: no such disk"):
        far.host().output_of("echo no such disk >&2; exit 2")


def test_a_first_boot_that_replaces_commands_is_not_ready(far: Far) -> None:
    far.machine.please_wait(True)

    with pytest.raises(NotReadyError, match="Please wait while we get your droplet ready"):
        far.host().run("true")


def test_waiting_ends_with_the_first_boot(far: Far) -> None:
    far.machine.please_wait(True)
    threading.Timer(1.5, far.machine.please_wait, [False]).start()

    wait_until_ready(far.host(), patience_s=60)

    assert far.host().run("true").exit_code == 0


def test_another_host_key_is_refused_before_anything_is_sent(far: Far, tmp_path: Path) -> None:
    other = replace(far.access, host_public_key=make_key(tmp_path / "other"))
    began = time.monotonic()

    with pytest.raises(HostKeyError, match="host key mismatch") as caught:
        wait_until_ready(SshHost(other), patience_s=120)

    assert (caught.value.exit_code, time.monotonic() - began < 60) == (3, True)
    assert "Accepted" not in (far.machine.folder / "sshd.log").read_text()


def test_a_host_key_of_another_kind_is_refused_too(far: Far) -> None:
    rsa = replace(far.access, host_public_key="ecdsa-sha2-nistp256 " + ECDSA)

    with pytest.raises(HostKeyError):
        SshHost(rsa).run("true")


def test_a_refused_login_and_an_unreachable_machine_raise_different_errors(far: Far, tmp_path: Path) -> None:
    make_key(tmp_path / "stranger")
    host = SshHost(replace(far.access, private_key=tmp_path / "stranger"), connect_s=60)

    with pytest.raises(LoginRefusedError, match="add its public part to"):
        wait_until_ready(host, patience_s=2)


@pytest.mark.parametrize("count", range(2700, 3600, 100))
def test_a_connection_that_is_cut_during_its_login_is_no_refused_login(far: Far, count: int) -> None:
    far.wire.cut_after(count)

    with pytest.raises((UnreachableHostError, LostConnectionError)):
        far.host().run("true")


@pytest.mark.parametrize("mode", ["refuse", "reset", "silence", "banner"])
def test_an_unreachable_machine_is_reported_within_the_timeout(far: Far, mode: str) -> None:
    far.wire.set(mode)
    began = time.monotonic()

    with pytest.raises(UnreachableHostError, match=r"cannot be reached|refuses connections"):
        wait_until_ready(far.host(connect_s=2), patience_s=3)

    assert time.monotonic() - began < 60


@pytest.mark.parametrize("mode", ["refuse", "reset"])
def test_a_machine_that_starts_late_is_waited_for(far: Far, mode: str) -> None:
    far.wire.set(mode)
    threading.Timer(2.0, far.wire.set, ["pass"]).start()

    wait_until_ready(far.host(), patience_s=60)


def test_a_silent_machine_ends_the_command_with_an_error(far: Far) -> None:
    host = far.host()
    host.run("true")
    far.wire.set("silence")
    began = time.monotonic()

    with pytest.raises(SilentHostError, match="did not finish `echo x` within 2 s"):
        host.run("echo x", timeout_s=2)

    assert time.monotonic() - began < 30
    far.wire.set("pass")
    assert host.run("echo x").out == "x\n"


def test_a_cut_in_mid_command_is_a_lost_connection_and_the_next_step_connects_again(far: Far) -> None:
    host = far.host()

    with cut_once_it_runs(far), pytest.raises(LostConnectionError, match="broke during `touch begun; sleep 60`"):
        host.run("touch begun; sleep 60")

    assert host.output_of("echo there") == "there\n"


def test_a_command_is_repeated_after_a_lost_connection(far: Far) -> None:
    with cut_once_it_runs(far):
        assert far.host().output_of("touch begun; sleep 2; echo answer") == "answer\n"


def test_files_and_folders_arrive_as_they_were(far: Far, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "big").write_bytes(os.urandom(3_000_000))
    (folder / "empty").touch()
    host = far.host()

    host.put(folder, "nightbench/there")
    host.put(folder / "deep" / "big", "nightbench/one file", mode=0o755)
    host.get("nightbench/there", tmp_path / "back")
    host.get("nightbench/one file", tmp_path / "file")

    same = (folder / "deep" / "big").read_bytes()
    assert (tmp_path / "back" / "deep" / "big").read_bytes() == (tmp_path / "file").read_bytes() == same
    assert sorted(path.name for path in (tmp_path / "back").rglob("*")) == ["big", "deep", "empty"]
    assert stat.S_IMODE((far.machine.home / "nightbench" / "one file").stat().st_mode) == 0o755
    assert [path for path in far.machine.home.rglob("*") if ".partial" in path.name or ".tar" in path.name] == []


def test_output_without_an_end_is_refused(far: Far) -> None:
    host = far.host()

    with pytest.raises(RemoteCommandError, match=r"`yes` failed on .*: it sent more than 67,108,864 bytes"):
        host.run("yes")

    assert host.output_of("echo there") == "there\n"


def test_a_file_that_is_longer_than_the_machine_says_is_not_taken(far: Far, tmp_path: Path) -> None:
    (far.machine.home / "bin").mkdir()
    liar = far.machine.home / "bin" / "xargs"
    liar.write_text("#!/bin/sh\nexec yes\n")
    liar.chmod(0o755)
    (far.machine.home / "file").write_bytes(bytes(100_000))

    with pytest.raises(TransferError, match=r"the download of file failed on .*: it sent more than 100,000 bytes"):
        far.host(patience_s=0.0).get("file", tmp_path / "here")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["machine"]


def test_a_log_that_grows_after_it_was_listed_is_listed_again(far: Far, tmp_path: Path) -> None:
    home = far.machine.home
    (home / "bin").mkdir()
    real, growing = shutil.which("xargs"), home / "bin" / "xargs"
    growing.write_text(
        f"#!/bin/sh\n[ -e grown ] || {{ echo 'one more line' >> log; touch grown; }}\nexec {real} \"$@\"\n"
    )
    growing.chmod(0o755)
    (home / "log").write_text("started\n")

    far.host().get("log", tmp_path / "here")

    assert (tmp_path / "here").read_text() == "started\none more line\n"


def test_a_download_that_is_cut_raises_in_no_other_thread(far: Far, tmp_path: Path) -> None:
    (far.machine.home / "big").write_bytes(os.urandom(20_000_000))
    host = far.host()
    host.run("true")

    for cut in (6_000, 20_000):
        far.wire.cut_after(cut)
        host.get("big", tmp_path / f"back after {cut}")

    assert far.wire.cuts == 2


def test_nobody_else_can_read_any_part_of_a_file_while_it_arrives(far: Far, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(os.urandom(4_000_000))
    host = far.host(patience_s=0.0)
    host.run("umask 000; mkdir nightbench; touch nightbench/big.partial")
    far.wire.cut_after(2_000_000)

    with pytest.raises((LostConnectionError, UnreachableHostError, SilentHostError)):
        host.put(tmp_path / "big", "nightbench/big", mode=0o600)

    arrived = (far.machine.home / "nightbench" / "big.partial").stat()
    assert stat.S_IMODE(arrived.st_mode) == 0o600


def test_an_interrupted_transfer_is_repeated_and_leaves_no_partial_file(far: Far, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(os.urandom(10_000_000))
    host = far.host()
    host.run("true")
    far.wire.cut_after(5_000_000)

    host.put(big, "big")
    far.wire.cut_after(5_000_000)
    host.get("big", tmp_path / "back")

    assert far.wire.cuts == 2
    assert hashlib.sha256((tmp_path / "back").read_bytes()).digest() == hashlib.sha256(big.read_bytes()).digest()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "big", "machine"]


def test_a_file_that_changes_during_the_transfer_never_gets_its_name(far: Far, tmp_path: Path) -> None:
    host = far.host(patience_s=1.0)
    (far.machine.home / "bin").mkdir()
    liar = far.machine.home / "bin" / "sha256sum"
    liar.write_text("#!/bin/sh\necho 0000  -\n")
    liar.chmod(0o755)
    (tmp_path / "file").write_text("x")

    with pytest.raises(TransferError, match="size or SHA-256 mismatch"):
        host.put(tmp_path / "file", "file")

    assert not (far.machine.home / "file").exists()


def test_a_missing_file_is_reported(far: Far, tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="nowhere does not exist"):
        far.host().get("nowhere", tmp_path / "x")


def test_a_secret_reaches_only_its_process(far: Far, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    host = far.host()

    host.put_secret_environment({"HF_TOKEN": f"{SECRET} it's"}, "nightbench/secret.env")
    argv = ["sh", "-c", 'echo "${HF_TOKEN%% *}" | sha256sum; cat /proc/*/cmdline | tr "\\0" " "']
    host.start_detached(argv, "nightbench/job", environment_file="nightbench/secret.env")
    until(lambda: host.job_status("nightbench/job").state == "ended")

    seen = host.job_status("nightbench/job").log.decode()
    assert seen.startswith(hashlib.sha256(f"{SECRET}\n".encode()).hexdigest())
    assert SECRET not in seen
    assert stat.S_IMODE((far.machine.home / "nightbench" / "secret.env").stat().st_mode) == 0o600
    assert SECRET not in caplog.text


def test_a_detached_process_survives_its_connection_and_is_found_again(far: Far) -> None:
    host = far.host()
    host.start_detached(["sh", "-c", "echo begun; sleep 3; echo done; exit 5"], "nightbench/job")
    before = host.job_status("nightbench/job")

    far.machine.cut()
    lost = SshHost(far.access)
    during = lost.job_status("nightbench/job", log_from=len(before.log))
    until(lambda: lost.job_status("nightbench/job").state != "running")
    after = lost.job_status("nightbench/job")

    assert (before.state, during.state) == ("running", "running")
    assert (after.state, after.exit_code, after.log) == ("ended", 5, b"begun\ndone\n")


def test_starting_twice_starts_once(far: Far) -> None:
    host = far.host()
    for _ in range(3):
        host.start_detached(["sh", "-c", "echo begun; sleep 20"], "nightbench/job")

    assert host.job_status("nightbench/job").log == b"begun\n"
    host.end_detached("nightbench/job")
    until(lambda: host.job_status("nightbench/job").state != "running")
    host.end_detached("nightbench/job")


def test_a_killed_process_is_gone_and_not_ended(far: Far) -> None:
    host = far.host()
    host.start_detached(["sleep", "60"], "nightbench/job")
    leader = int((far.machine.home / "nightbench" / "job" / "pid").read_text())

    os.killpg(leader, signal.SIGKILL)
    until(lambda: host.job_status("nightbench/job").state == "gone")

    assert host.job_status("nightbench/never-started").state == "gone"


def test_every_error_of_a_machine_has_a_stage_and_exit_code_3() -> None:
    kinds = HostError.__subclasses__()

    assert len(kinds) >= 8
    assert {(kind.stage, kind.exit_code) for kind in kinds} == {("machine", 3)}


ECDSA = (
    "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5w"
    "AdT/y6v0mKV0U2w0WZ2YB/++Tpockg="
)
