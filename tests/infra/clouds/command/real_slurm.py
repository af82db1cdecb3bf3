"""A cluster of Slurm with one node, which is this computer, in a folder of its own; as root, or as any user."""

import getpass
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from infra.clock import SystemClock, poll

PROGRAMS = ("munged", "slurmctld", "slurmd", "salloc", "squeue", "scancel", "sinfo")
PATIENCE_S = 60.0
NODE, PARTITION, KIND = "node17", "amd", "mi300x"
CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
GresTypes=gpu
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=1 Gres=gpu:{kind}:1
PartitionName={partition} Nodes={node} Default=YES
PartitionName=gpu Nodes={node}
"""


def require_slurm() -> None:
    """Skip the test where Slurm is not installed."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=path()) is None]
    if missing:
        pytest.skip(f"there is no Slurm here: no {missing[0]}")


def path() -> str:
    """PATH with the folder of daemons, which is not on everybody's."""
    return f"{os.environ['PATH']}:/usr/sbin"


@contextmanager
def cluster(folder: Path) -> Iterator[Path]:
    """The configuration of a cluster, which runs meanwhile and has an idle node."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "munge.key").write_bytes(secrets.token_bytes(1024))
    (folder / "munge.key").chmod(0o600)
    controller, daemon = _free_ports()
    names = {"host": socket.gethostname(), "user": getpass.getuser(), "node": NODE, "kind": KIND}
    text = CONFIGURATION.format(folder=folder, controller=controller, daemon=daemon, partition=PARTITION, **names)
    (folder / "gres.conf").write_text(f"NodeName={NODE} Name=gpu Type={KIND} File=/dev/null\n")
    file = folder / "slurm.conf"
    file.write_text(text)
    munge = [
        f"--{name}={folder}/munge.{name.partition('-')[0]}"
        for name in ("key-file", "socket", "pid-file", "log-file", "seed-file")
    ]
    with ExitStack() as daemons:
        for argv in (
            ["munged", "--foreground", "--force", *munge],
            ["slurmctld", "-D", "-f", str(file)],
            ["slurmd", "-D", "-N", NODE, "-f", str(file)],
        ):
            daemons.enter_context(_running(argv, folder / f"{argv[0]}.log"))
        idle = poll(
            SystemClock(), 0.2, lambda: "idle" in _slurm(file, "sinfo", "--noheader", "--format=%T"), PATIENCE_S
        )
        assert idle, "".join(log.read_text() for log in folder.glob("*.log"))
        yield file


def job_names(configuration: Path) -> list[str]:
    """The names of the jobs of a cluster."""
    return sorted(_slurm(configuration, "squeue", "--noheader", "--format=%j").splitlines(), reverse=True)


def _slurm(configuration: Path, *argv: str) -> str:
    env = {**os.environ, "SLURM_CONF": str(configuration)}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S).stdout


@contextmanager
def _running(argv: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as sink:
        process = subprocess.Popen(argv, stdout=sink, stderr=sink, env={**os.environ, "PATH": path()})
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_S)


def _free_ports() -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        return [int(one.getsockname()[1]) for one in sockets]
