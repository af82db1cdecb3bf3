"""Which machine a lease is, how it is reached, and who hears what it does."""

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from prefect import get_run_logger

from bench.errors import LeaseError
from bench.machine.cloud_init import is_ready_command
from infra.agent.executor import Executor, LeaseContext, LocalExecutor, SshExecutor
from infra.bootstrap import lease_keys, ledger
from infra.clouds.static import is_own, read_access
from infra.ledger.ledger import Lease
from infra.measurement.run import RunContext
from infra.remote.host import Access
from infra.remote.ssh_host import SshHost
from infra.remote.ssh_keys import keys_of
from infra.remote.ssh_shell import wait_until_ready
from infra.reporting import Reporter
from infra.settings import Settings

# What a machine is told of this process's environment. It goes there as a secret, since a token is among it.
TOLD = ("HF_TOKEN", "NIGHTBENCH_HUB_ENDPOINT", "NIGHTBENCH_HUB_STALL_S")


def machine_of(lease: Lease) -> Executor:
    """The machine of a lease."""
    settings = Settings()
    if lease.cloud == "local":
        return LocalExecutor(settings)
    access = access_of(settings, lease)
    context = (lease.lease_id, lease.night, settings.data.absolute(), settings.machine_python)
    return _remote_executor(access, context, settings.ssh_patience_s)


def machine_under(context: RunContext) -> Executor:
    """The machine that a bench stands on."""
    return machine_of(ledger(Settings()).lease(context.lease.lease_id))


@lru_cache(maxsize=4)
def _remote_executor(access: Access, context: tuple[str, str, Path, str | None], patience_s: float) -> SshExecutor:
    """A machine over SSH, kept with its connection for the next verb."""
    told = {name: os.environ[name] for name in TOLD if os.environ.get(name)}
    return SshExecutor(SshHost(access, patience_s=patience_s), LeaseContext(*context, told))


def access_of(settings: Settings, lease: Lease) -> Access:
    """How a lease's machine is reached; LeaseError where it has no address yet."""
    if is_own(lease.cloud):
        return read_access(lease.cloud, settings.ssh_key, settings.ssh_known_hosts)
    if lease.address is None:
        raise LeaseError(f"machine {lease.machine_id} of lease {lease.lease_id} has no address to reach it at")
    keys = keys_of(lease_keys(settings), lease.lease_id)
    return Access(lease.address, settings.do_ssh_port, settings.do_ssh_user, keys.client_private, keys.host_public)


def wait_for_machine(settings: Settings, lease: Lease) -> None:
    """Wait until a machine runs what it is asked and its first boot is over; the last reason why not is raised."""
    if lease.cloud != "local":
        access = access_of(settings, lease)
        # A machine that we do not rent has had its first boot long ago.
        is_booted = "true" if is_own(lease.cloud) else is_ready_command(access.host_public_key)
        wait_until_ready(SshHost(access), settings.ssh_ready_s, is_booted)


def make_reporter(progress: Callable[[float], None] = lambda _share: None) -> Reporter:
    """Whoever reads the log of the run that calls this."""
    return Reporter(get_run_logger().info, progress)
