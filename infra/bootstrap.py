"""Builds what the settings name: clouds, hosts, the ledger and its stage costs, volumes and keys."""

from functools import partial
from pathlib import Path

from pydantic import SecretStr

import infra.clouds.dead_man_switch
from bench.errors import UsageError
from bench.machine.cloud_init import DeadMan, HostKey, user_data
from bench.machine.names import MachineName
from bench.record import NightRecord
from bench.suite.machine import Machine
from infra.clock import WallClock
from infra.clouds.cloud import Cloud
from infra.clouds.digitalocean.client import Calls, make_client
from infra.clouds.digitalocean.cloud import AccountSetup, DigitalOcean
from infra.clouds.image_cloud import ImageCloud
from infra.clouds.local import LocalCloud
from infra.clouds.static import StaticCloud, is_own, machine_on_own_host, parse_target, read_access
from infra.clouds.volume_cloud import VolumeCloud
from infra.ledger.ledger import Lease, Ledger
from infra.ledger.stage_costs import StageBook
from infra.ledger.volumes import VolumeBook
from infra.remote.ssh_host import SshHost
from infra.remote.ssh_keys import LeaseKeys
from infra.settings import Settings

CLOUDS = ("local", "digitalocean")
OWN_PATIENCE_S = 30.0  # of one question to a host of one's own; whoever asks repeats it


def ledger_file(settings: Settings) -> Path:
    """Where the ledger of the data folder lies."""
    return settings.data / "ledger.sqlite"


def ledger(settings: Settings) -> Ledger:
    """The ledger of the data folder."""
    return Ledger(ledger_file(settings))


def stage_book(settings: Settings) -> StageBook:
    """When each stage of each lease began and ended."""
    return StageBook(settings.data / "ledger.sqlite")


def volume_book(settings: Settings) -> VolumeBook:
    """Which volumes were asked for."""
    return VolumeBook(ledger_file(settings))


def clouds(settings: Settings) -> dict[str, Cloud]:
    """Every cloud we can rent from now, by name: this computer, those whose token is set, and hosts that we hold."""
    found: dict[str, Cloud] = {"local": LocalCloud(settings.data / "machines")}
    if settings.do_token is not None and settings.do_token.get_secret_value():
        found["digitalocean"] = _digitalocean(settings, settings.do_token)
    return found | {name: _own_host(settings, name) for name in _own_held(settings)}


def _own_held(settings: Settings) -> set[str]:
    """The hosts of one's own that the ledger says we hold; looking makes no ledger."""
    if not (settings.data / "ledger.sqlite").exists():
        return set()
    return {lease.cloud for lease in ledger(settings).open_leases() if is_own(lease.cloud)}


def cloud_named(settings: Settings, name: str) -> Cloud:
    """One cloud; UsageError where it is not set up."""
    if is_own(name):
        return _own_host(settings, name)
    found = clouds(settings)
    if name in CLOUDS and name not in found:
        raise UsageError(
            f"there is no token for {name}: set NIGHTBENCH_DO_TOKEN (its scopes: docs/how-to/rent-a-gpu.md)"
        )
    if name not in found:
        raise UsageError(_unknown(name))
    return found[name]


def image_cloud(settings: Settings, target: str) -> ImageCloud | None:
    """The cloud of a target that machine images can be made at; None where its machines boot what they have."""
    cloud = None if is_own(target) else cloud_named(settings, target)
    return cloud if isinstance(cloud, DigitalOcean) else None


def volume_cloud(settings: Settings, name: str) -> VolumeCloud | None:
    """The cloud of a lease, where it keeps volumes."""
    cloud = None if is_own(name) else cloud_named(settings, name)
    return cloud if isinstance(cloud, DigitalOcean) else None


def known_target(settings: Settings, target: str) -> str:
    """A target in its one spelling; UsageError, with what to do, where nothing could be measured there."""
    if not is_own(target):
        cloud_named(settings, target)
        return target
    named = str(parse_target(target))
    read_access(named, settings.ssh_key, settings.ssh_known_hosts)
    return named


def planned_target(target: str) -> str:
    """A target in its one spelling, for a plan, which needs neither token nor key; UsageError where it names none."""
    if is_own(target):
        return str(parse_target(target))
    if target not in CLOUDS:
        raise UsageError(_unknown(target))
    return target


def why_unreachable(settings: Settings, target: str) -> str | None:
    """Why a night would not try to reach a host of one's own; None where it would. The host is asked nothing."""
    if not is_own(target):
        return None
    try:
        read_access(target, settings.ssh_key, settings.ssh_known_hosts)
    except UsageError as error:
        return str(error)
    return None


def _unknown(target: str) -> str:
    return f"--target {target!r} is not known; it can be: {', '.join(CLOUDS)}, ssh:user@host[:port]"


def wanted_machine(night: NightRecord) -> Machine:
    """What the suite asks for of the night's target."""
    return machine_on_own_host(night.suite.machine) if is_own(night.target) else night.suite.machine


def is_rented(lease: Lease) -> bool:
    """Whether a lease's machine is ours alone, to be changed as we like, and gone afterwards."""
    return lease.cloud != "local" and not is_own(lease.cloud)


def _own_host(settings: Settings, target: str) -> Cloud:
    def reach() -> SshHost:
        return SshHost(read_access(target, settings.ssh_key, settings.ssh_known_hosts), patience_s=OWN_PATIENCE_S)

    return StaticCloud(target, reach, WallClock(), settings.prefix)


def lease_keys(settings: Settings) -> Path:
    """Where the keys of open leases lie."""
    return settings.data.absolute() / "keys"


def _digitalocean(settings: Settings, token: SecretStr) -> Cloud:
    client = make_client(
        token,
        settings.do_endpoint,
        settings.do_ca,
        connect_timeout_s=settings.do_connect_timeout_s,
        read_timeout_s=settings.do_read_timeout_s,
    )
    account = AccountSetup(
        prefix=settings.prefix, settle_s=settings.do_settle_s, image=settings.do_image, priced_sizes=settings.do_sizes
    )
    calls = Calls(account.name, WallClock())
    return DigitalOcean(client, calls, lease_keys(settings), partial(first_boot, settings), account)


def first_boot(settings: Settings, name: MachineName, keys: LeaseKeys) -> str:
    """What a machine is told for its first boot: its own key, and how to end itself where the settings want that."""
    token = settings.do_dead_man_token
    dead_man = None
    if token is not None and token.get_secret_value() and name.expires_at is not None:
        dead_man = DeadMan(
            program=Path(infra.clouds.dead_man_switch.__file__).read_text(),
            endpoint=settings.do_endpoint,
            token=token.get_secret_value(),
            machine_name=str(name),
            deadline=int(name.expires_at.timestamp()),
            ca=settings.do_ca.read_text() if settings.do_ca else None,
        )
    return user_data(HostKey(keys.host_private.read_text(), keys.host_public), dead_man=dead_man)
