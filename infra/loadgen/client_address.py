"""Under which address client hosts reach this computer, for a server here that they load."""

import subprocess
from collections.abc import Sequence

from bench.errors import CalibrationError
from bench.loadgen.drivers.target import ClientHost
from infra.processes.environment import child_environment

HERE = "127.0.0.1"
PATIENCE_S = 60.0


def address_for(hosts: Sequence[ClientHost]) -> str:
    """The address of this computer as sshd on each of the hosts sees it; this computer's loopback without hosts.

    Raises CalibrationError where a host cannot be reached, or where they see different addresses.
    """
    seen = {host.name: _seen_by(host) for host in hosts}
    if len(set(seen.values())) > 1:
        which = ", ".join(f"{name} sees {address}" for name, address in seen.items())
        raise CalibrationError(f"the client hosts reach this computer by different addresses: {which}")
    address = next(iter(seen.values()), HERE)
    if ":" in address:
        raise CalibrationError(f"the client hosts reach this computer by {address}, and the truth server has IPv4 only")
    return address


def _seen_by(host: ClientHost) -> str:
    """SSH_CONNECTION begins with the client's address (sshd(8)); a shell of this computer has none."""
    try:
        argv = [*host.argv, "echo $SSH_CONNECTION"]
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=child_environment()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CalibrationError(f"the client host {host.name} cannot be reached: {error}") from error
    if done.returncode != 0:
        raise CalibrationError(f"the client host {host.name} cannot be reached: {done.stderr.strip()[-400:]}")
    return next(iter(done.stdout.split()), HERE)
