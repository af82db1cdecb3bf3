"""The command cloud among the clouds: whether a folder of scripts is set, and what opens it."""

from bench.machine.cloud_init import HostKey, user_data
from bench.machine.names import MachineName
from infra.clock import SystemClock
from infra.clouds.cloud import Cloud
from infra.clouds.command.cloud import NAME, CommandCloud, CommandSetup
from infra.clouds.command.scripts import Scripts
from infra.clouds.module import SwitchToken
from infra.processes.bounded_command import Limits
from infra.remote.ssh_keys import LeaseKeys, keys_folder
from infra.settings import Settings

__all__ = [
    "NAME",
    "SWITCH_TOKEN",
    "is_named",
    "missing_scopes",
    "open_cloud",
    "ssh_login",
    "why_closed",
    "why_no_switch",
]
OUTPUT_BYTES = 4 << 20  # of a script; a list of 10,000 machines has less
SWITCH_TOKEN: SwitchToken | None = None  # the scripts' own


def why_closed(settings: Settings) -> str | None:
    """Return that the folder is missing, with the remedy; None if there is one."""
    if settings.command_cloud is None:
        return f"no scripts for {NAME}: set NIGHTBENCH_COMMAND_CLOUD to their folder (docs/reference/command-cloud.md)"
    if not settings.command_cloud.is_dir():
        return f"{settings.command_cloud} is not a folder: set NIGHTBENCH_COMMAND_CLOUD to that of the scripts"
    return None


def is_named(settings: Settings) -> bool:
    """Return whether a folder is set; it may be away for a moment, as where a disk is not mounted."""
    return settings.command_cloud is not None


def open_cloud(settings: Settings) -> Cloud:
    """Return the cloud behind the settings' scripts; none of them is run."""
    assert settings.command_cloud is not None  # noqa: S101 - `is_named` allows no other
    scripts = Scripts(settings.command_cloud.absolute(), Limits(settings.command_timeout_s, OUTPUT_BYTES))
    # A `rent` whose caller was killed may still create its machine, until its time is over.
    settle_s = settings.command_lag_s + settings.command_timeout_s
    setup = CommandSetup(keys_folder(settings.data), first_boot, settings.prefix, settle_s)
    return CommandCloud(scripts, SystemClock(), setup)


def first_boot(_name: MachineName, keys: LeaseKeys) -> str:
    """Return the user data of a machine's first boot, which installs its host key and the key that logs in."""
    host_key = HostKey(keys.host_private.read_text(), keys.host_public)
    return user_data(host_key, dead_man=None, login_key=keys.client_public)


def ssh_login(settings: Settings) -> tuple[str, int]:
    """Return NIGHTBENCH_COMMAND_SSH_USER and NIGHTBENCH_COMMAND_SSH_PORT."""
    return settings.command_ssh_user, settings.command_ssh_port


def why_no_switch(settings: Settings) -> str | None:
    """Return how to declare that the cloud itself ends a machine when its lease expires; None if that is declared."""
    if settings.command_expires:
        return None
    return "let the `rent` script give the cloud the `expires_at` that it gets, and set NIGHTBENCH_COMMAND_EXPIRES=1"


def missing_scopes(settings: Settings) -> list[str] | None:
    """Return None: the scripts have logins of their own."""
    del settings
    return None
