"""Builds what the settings name: clouds, hosts, the ledger and its stage costs, volumes and keys."""

import os
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from bench.errors import LeaseError, LedgerError, UsageError
from bench.machine.cloud_init import is_ready_command
from bench.suite.target import LOCAL, OwnHost, Target, parse_target
from infra.agent.executor import Executor, LeaseContext, LocalExecutor, SshExecutor
from infra.clock import SystemClock
from infra.clouds.abilities import ImageCloud, VolumeCloud
from infra.clouds.by_name import RENTED, named, set_up
from infra.clouds.cloud import Cloud
from infra.clouds.local import LocalCloud
from infra.clouds.static import StaticCloud
from infra.leases.nets import Net, Unguarded, exposure, nets_under
from infra.leases.used import kept_costs
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.ledger.month import NOT_ASKED, KeptCosts, MonthSpending, month_spending
from infra.ledger.stage_costs import StageBook
from infra.ledger.volumes import VolumeBook
from infra.measurement.run import RunContext
from infra.remote.host import Access
from infra.remote.own_access import read_access
from infra.remote.ssh_host import SshHost
from infra.remote.ssh_keys import keys_folder, keys_of
from infra.remote.ssh_shell import wait_until_ready
from infra.settings import Settings
from infra.storage.bucket import bucket_location

MACHINES_AT_ONCE = 16  # of which each keeps its connection
OWN_PATIENCE_S = 30.0  # for one command on a host of your own; the caller repeats it
# The environment variables of this process that a machine gets. Only a download gets the tokens.
FORWARDED = ("NIGHTBENCH_HF_TOKEN", "HF_TOKEN", "NIGHTBENCH_HUB_ENDPOINT", "NIGHTBENCH_HUB_STALL_S")


def ledger_file(settings: Settings) -> Path:
    """The path of the data folder's ledger."""
    return settings.data / "ledger.sqlite"


def ledger(settings: Settings) -> Ledger:
    """The ledger of the data folder."""
    return Ledger(ledger_file(settings))


def stage_book(settings: Settings) -> StageBook:
    """The times of each stage of each lease."""
    return StageBook(ledger_file(settings))


def volume_book(settings: Settings) -> VolumeBook:
    """The volumes that were requested."""
    return VolumeBook(ledger_file(settings))


def clouds(settings: Settings) -> dict[str, Cloud]:
    """Every cloud that can be rented from, by name: this computer, clouds that are set up, own hosts with a lease."""
    rented = {name: one.open_cloud(settings) for name, one in set_up(settings).items()}
    return {LOCAL: _local(settings), **rented, **{str(own): _own_host(settings, own) for own in _own_held(settings)}}


def clouds_to_search(settings: Settings) -> dict[str, Cloud]:
    """The same, and each cloud that settings name and that cannot be opened now: a search there raises why."""
    return {**{name: one.open_cloud(settings) for name, one in named(settings).items()}, **clouds(settings)}


def _local(settings: Settings) -> Cloud:
    return LocalCloud(settings.data / "machines")


def _own_held(settings: Settings) -> set[OwnHost]:
    """The own hosts with an open lease; a missing ledger is not created, and a broken one names none."""
    if not ledger_file(settings).exists():
        return set()
    readable: list[Lease] = []
    with suppress(LedgerError):  # the other clouds' machines are found without it, and the reaper replaces it
        readable, _unreadable = ledger(settings).readable_leases()
    return {lease.where.host for lease in readable if lease.state != "released" and lease.where.host is not None}


def cloud_named(settings: Settings, name: str) -> Cloud:
    """The cloud of a target or of a lease; UsageError if it is not set up."""
    where = planned_target(name)
    if where.host is not None:
        return _own_host(settings, where.host)
    if where.is_here:
        return _local(settings)  # before an endpoint, the client's machine is all that is leased
    if why := RENTED[name].why_closed(settings):
        raise UsageError(why)
    return RENTED[name].open_cloud(settings)


def image_cloud(settings: Settings, target: str) -> ImageCloud | None:
    """The cloud of a target, if it can make machine images; else None."""
    cloud = cloud_named(settings, target)
    return cloud if isinstance(cloud, ImageCloud) else None


def volume_cloud(settings: Settings, name: str) -> VolumeCloud | None:
    """The cloud of a lease, if it has volumes; else None."""
    cloud = cloud_named(settings, name)
    return cloud if isinstance(cloud, VolumeCloud) else None


def known_target(settings: Settings, text: str) -> Target:
    """The target of a command; UsageError, with the remedy, if nothing can be measured there."""
    cloud_named(settings, text)
    target = parse_target(text)
    if target.host is not None:
        _own_access(settings, target.host)
    return target


def planned_target(text: str) -> Target:
    """The target of a command, without the token or key that a plan does not need; UsageError if unknown."""
    target = parse_target(text)
    if target.is_rented and text not in RENTED:
        names = ", ".join((LOCAL, *RENTED))
        raise UsageError(f"--target {text!r} is unknown: use {names}, ssh:user@host[:port] or http(s)://host:port")
    return target


def why_unreachable(settings: Settings, target: Target) -> str | None:
    """Why a night would not connect to a host of one's own; None if it would. The host is not contacted."""
    try:
        if target.host is not None:
            _own_access(settings, target.host)
    except UsageError as error:
        return str(error)
    return None


def _own_host(settings: Settings, own: OwnHost) -> Cloud:
    def reach() -> SshHost:
        return SshHost(_own_access(settings, own), patience_s=OWN_PATIENCE_S)

    return StaticCloud(own, reach, SystemClock(), settings.prefix)


def _own_access(settings: Settings, own: OwnHost) -> Access:
    return read_access(own, settings.ssh_key, settings.ssh_known_hosts)


def nets(settings: Settings, target: str) -> list[Net]:
    """The nets under a night on this target."""
    return nets_under(
        is_rented=target in RENTED,
        why_no_switch=RENTED[target].why_no_switch(settings) if target in RENTED else None,
        server=os.environ.get("PREFECT_API_URL"),
    )


def unguarded(settings: Settings, target: str) -> Unguarded | None:
    """What a lease on a target may cost without a second net; None where it has one or the risk is accepted."""
    why = None if target not in RENTED or settings.accept_risk else RENTED[target].why_no_switch(settings)
    return None if why is None else Unguarded(settings.unguarded_usd_max, why)


def why_refused_unguarded(settings: Settings, target: str, minutes: int, usd_per_hour: float | None) -> str | None:
    """Why a night on this target is not rented without a second net; None if it would be."""
    limit = unguarded(settings, target)
    return None if limit is None else limit.why_refused(None if usd_per_hour is None else usd_per_hour * minutes / 60)


def require_second_net(settings: Settings, target: str) -> None:
    """Raise UsageError if nothing may be rented without a second net and there is none."""
    limit = unguarded(settings, target)
    if limit is not None and limit.usd_max == 0 and (why := limit.why_refused(None)):
        raise UsageError(f"nothing is rented: {why}")


def if_computer_dies(settings: Settings, target: str, lease_minutes: int, usd_per_hour: float | None) -> str | None:
    """What stays billed if this computer fails during a night on this target; None if nothing is rented."""
    if target not in RENTED:
        return None
    why = RENTED[target].why_no_switch(settings)
    return exposure(why_no_switch=why, lease_minutes=lease_minutes, usd_per_hour=usd_per_hour)


def kept_of_month(settings: Settings, now: datetime | None = None, *, ask: bool = True) -> KeptCosts:
    """What is kept costs in the month; without `ask`, only volumes, which the ledger of the data folder knows."""
    now, volumes = now or SystemClock().now(), volume_book(settings) if ledger_file(settings).exists() else None
    of_clouds, bucket = set_up(settings), bucket_location(settings)
    if ask:
        return kept_costs(volumes, {name: one.open_cloud(settings) for name, one in of_clouds.items()}, bucket, now)
    known = kept_costs(volumes, {}, None, now)
    return replace(known, uncounted=(*known.uncounted, NOT_ASKED)) if of_clouds or bucket else known


def spending_of_month(settings: Settings, now: datetime | None = None, *, ask: bool = True) -> MonthSpending:
    """What the leases of this data folder and what is kept cost in the month; unreadable leases are left out.

    A data folder without a ledger has none of them, and gets no ledger.
    """
    now, has_ledger = now or SystemClock().now(), ledger_file(settings).exists()
    leases = ledger(settings).readable_leases()[0] if has_ledger else []
    return month_spending(leases, now, settings.month_usd_max, kept_of_month(settings, now, ask=ask))


def executor_of(settings: Settings, lease: Lease, *, is_second: bool = False) -> Executor:
    """What runs operations on the machine of a lease.

    `is_second`: while another operation runs there, so with a connection of its own.
    """
    if lease.where.is_here:
        return LocalExecutor(settings)
    context = (lease.lease_id, lease.night, settings.data.absolute(), settings.machine_python, lease.machine)
    made = _new_executor if is_second else _kept_executor
    return made(access_of(settings, lease), context, settings.ssh_patience_s)


def executor_for(settings: Settings, context: RunContext) -> Executor:
    """What runs operations on the machine that a run's context names."""
    return executor_of(settings, ledger(settings).lease(context.lease.lease_id))


def _new_executor(
    access: Access, context: tuple[str, str, Path, str | None, str | None], patience_s: float
) -> SshExecutor:
    """An executor over SSH."""
    forwarded = {name: os.environ[name] for name in FORWARDED if os.environ.get(name)}
    return SshExecutor(SshHost(access, patience_s=patience_s), LeaseContext(*context, forwarded))


_kept_executor = lru_cache(maxsize=MACHINES_AT_ONCE)(_new_executor)  # with its connection, for the next operation


def access_of(settings: Settings, lease: Lease) -> Access:
    """How to reach a lease's machine over SSH; LeaseError if it has no address yet."""
    if lease.host is not None:
        return _own_access(settings, lease.host)
    if lease.address is None:
        raise LeaseError(f"machine {lease.machine_id} of lease {lease.lease_id} has no address yet")
    keys = keys_of(keys_folder(settings.data), lease.lease_id)
    user, port = RENTED[lease.cloud].ssh_login(settings)
    return Access(lease.address, port, user, keys.client_private, keys.host_public)


def wait_for_machine(settings: Settings, lease: Lease) -> None:
    """Wait until a machine runs commands and its first boot is complete; raise the last error after the time limit."""
    if not lease.where.is_here:
        access = access_of(settings, lease)
        # A host of one's own booted long ago.
        is_booted = is_ready_command(access.host_public_key) if lease.host is None else "true"
        wait_until_ready(SshHost(access), settings.ssh_ready_s, is_booted)
