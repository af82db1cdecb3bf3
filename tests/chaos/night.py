"""One night and one round of the reaper, with the real lease code; each can run in a process of its own."""

import getpass
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr

from bench.errors import HostError, LeaseError, NightbenchError
from bench.machine.cloud_init import READY_FILE, HostKey, user_data
from bench.machine.names import MachineName
from flows.ending import handle_stop_signals
from infra.clock import Clock
from infra.clouds.abilities import Volume
from infra.clouds.digitalocean.client import Calls, make_client
from infra.clouds.digitalocean.cloud import AccountSetup
from infra.leases.acquire import take_lease
from infra.leases.ledger_recovery import open_ledger
from infra.leases.reaper import Reaped, reap
from infra.leases.release import explain_loss, release_lease
from infra.leases.volumes import VolumeContext, VolumeRequest, acquire_volume, detach_volume
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.remote.host import Access
from infra.remote.ssh_host import SshHost
from infra.remote.ssh_keys import LeaseKeys, keys_of
from infra.reporting import silent
from tests.chaos.clocks import WanderingClock
from tests.chaos.place import Life, Place, lease_request
from tests.chaos.steps import MortalBook, MortalCloud, MortalLedger, Steps
from tests.emulators.virtual_clock import VirtualClock

__all__ = ["Life", "Place", "lease_request"]
MINUTE_S = 60.0
RETRY_S = 60.0
PATIENCE_S = 600.0  # of real time, with a machine that is a real sshd: longer than any busy computer takes
NIGHT = "2026-11-21"
SOURCE = f"hf:org/model@{40 * '0'}"
OUTSIDE_FAILED = 3


def cloud_at(place: Place, clock: Clock, steps: Steps, seed: int = 0) -> MortalCloud:
    """The cloud with the real client and short timeouts."""
    client = make_client(SecretStr(place.token), place.url, place.ca, clock, connect_timeout_s=5.0, read_timeout_s=0.5)
    calls = Calls("digitalocean", clock, jitter=random.Random(seed).random)
    return MortalCloud(steps, client, calls, place.keys, _first_boot, AccountSetup())


def _first_boot(name: MachineName, keys: LeaseKeys) -> str:
    del name
    return user_data(HostKey(keys.host_private.read_text(), keys.host_public), dead_man=None)


def live(place: Place, life: Life) -> None:
    """Rent, work and release, unless killed on the way; exits with a night's exit code."""
    handle_stop_signals(place.data)
    try:
        _live(place, life, Steps(life.dies_after, life.dies_by, life.dies_times))
    except NightbenchError as error:
        _note(place, "night.log", error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def _live(place: Place, life: Life, steps: Steps) -> None:
    clock = WanderingClock(VirtualClock(place.clock))
    ledger = MortalLedger(steps, place.ledger_file, clock)
    cloud = cloud_at(place, clock, steps, life.seed)
    cloud.offers()
    steps.after("S0")
    lease = _take(cloud, ledger, clock, life)
    keeper = VolumeContext(cloud, MortalBook(steps, place.ledger_file, clock), clock)
    volume = None
    try:
        _prepare(place, lease, steps)
        volume = _lend(keeper, lease, life, steps)
        clock.off_s = life.clock_off_s
        _work(cloud, ledger, clock, lease, (life, steps))
        _let_go(keeper, lease, volume)
    finally:
        release_lease(cloud, ledger, clock, lease.lease_id)


def _lend(keeper: VolumeContext, lease: Lease, life: Life, steps: Steps) -> Volume | None:
    """The model's volume, where the night wants one and it is available; else None."""
    if life.volume_gib is None or lease.machine_id is None or lease.region is None:
        return None
    wanted = VolumeRequest(SOURCE, life.volume_gib, lease.machine_id, lease.region, lease.expires_at)
    try:
        volume = acquire_volume(keeper, wanted, silent)
    except NightbenchError:
        return None
    steps.after("V5")
    return volume


def _let_go(keeper: VolumeContext, lease: Lease, volume: Volume | None) -> None:
    if volume is not None and lease.machine_id is not None:
        with suppress(NightbenchError):
            detach_volume(keeper.cloud, keeper.clock, volume, lease.machine_id)


def _take(cloud: MortalCloud, ledger: Ledger, clock: Clock, life: Life) -> Lease:
    for _ in range(life.tries - 1):
        with suppress(LeaseError):
            return take_lease(cloud, ledger, clock, life.request, night=NIGHT)
        clock.sleep(RETRY_S)
    return take_lease(cloud, ledger, clock, life.request, night=NIGHT)


def _prepare(place: Place, lease: Lease, steps: Steps) -> None:
    """Wait until the machine is ready; then start a process on it that must end with it."""
    if place.ssh_port is None:
        steps.after("S5")
        steps.after("S6")
        return
    keys = keys_of(place.keys, lease.lease_id)
    access = Access(
        str(lease.address), place.ssh_port, getpass.getuser(), keys.client_private, keys.host_public
    )  # fmt: skip
    host = SshHost(access, patience_s=PATIENCE_S)
    _wait_until(lambda: _is_ready(host))
    steps.after("S5")
    host.start_detached(["sleep", "613"], "nightbench/engine")
    steps.after("S6")
    host.close()


def _is_ready(host: SshHost) -> bool:
    try:
        return host.run(f"test -e {READY_FILE}").exit_code == 0
    except HostError:
        return False


def _wait_until(holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    until = time.monotonic() + patience_s
    while not holds() and time.monotonic() < until:
        time.sleep(0.1)


def _work(cloud: MortalCloud, ledger: Ledger, clock: Clock, lease: Lease, told: tuple[Life, Steps]) -> None:
    """Work in five steps, with heartbeats, and a check whether the machine still exists."""
    life, steps = told
    if life.snapshot is not None and lease.machine_id is not None:
        cloud.snapshot(lease.machine_id, life.snapshot)
    for step in ("S7", "S8", "S9", "S10", "S11"):
        until = clock.now() + timedelta(seconds=life.work_s / 5)
        while clock.now() < until:
            clock.sleep(5 * MINUTE_S)
            ledger.record_heartbeat(lease.lease_id)
            if clock.now() > lease.expires_at or explain_loss(cloud, clock, lease):
                return
        steps.after(step)


def reap_once(place: Place, seed: int = 0, steps: Steps | None = None) -> Reaped:
    """One round of the reaper, with the records that are left."""
    clock = VirtualClock(place.clock)
    steps = steps or Steps(None)
    cloud = cloud_at(place, clock, steps, seed)
    open_ledger(place.ledger_file, clock, silent)
    return reap({cloud.name: cloud}, MortalLedger(steps, place.ledger_file, clock), clock)


def reap_and_die(place: Place, step: str) -> None:
    """A reaper that is killed during its round."""
    reap_once(place, steps=Steps(step))


def reap_beside(place: Place, period_s: float, until: Path) -> None:
    """A reaper beside the night: a round each period of the night's time, until the file `until` is there.

    It waits for the clock and never moves it, or its idle hours would be the night's.
    """
    clock = VirtualClock(place.clock)
    due = clock.now_s()
    while not until.exists():
        if clock.now_s() >= due:
            try:
                reap_once(place)
            except NightbenchError as error:
                _note(place, "reaper.log", error)
            due = clock.now_s() + period_s
        time.sleep(0.02)


def _note(place: Place, name: str, error: NightbenchError) -> None:
    with (place.data.parent / name).open("a") as log:
        log.write(f"{type(error).__name__}: {error}\n")
