"""An executor on a machine that is an sshd on this computer."""

import os
import sys
from pathlib import Path

from infra.agent.executor import LeaseContext, SshExecutor
from infra.remote.host import Access
from infra.remote.ssh_host import SshHost
from tests.emulators.sshd import Sshd

LEASE = f"lease-{os.getpid()}"  # its mark ends processes on the whole computer: no other run of tests may have it
NO_ENGINE = ("NIGHTBENCH_VLLM_EXECUTABLE", "/bin/false")  # no test here starts a server


def installers() -> dict[str, str]:
    """The variables of this computer's package installers, which a machine on the same network needs as well."""
    return {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}


def access_to(sshd: Sshd, key: Path) -> Access:
    return Access(sshd.address, sshd.port, "root", key, sshd.host_public_key)


def far(
    sshd: Sshd,
    keys: tuple[Path, str],
    data: Path,
    python: str | None = sys.executable,
    *,
    night: str = "night",
    machine: str | None = None,
) -> SshExecutor:
    lease = LeaseContext(LEASE, night, data, python, machine, {"HF_TOKEN": "a secret"})
    return SshExecutor(SshHost(access_to(sshd, keys[0])), lease)
