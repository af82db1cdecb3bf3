"""An emulated DigitalOcean and our side of it: real pydo over TLS, the ledger, and one clock for both."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bench.machine.cloud_init import HostKey, user_data
from bench.machine.names import MachineName
from infra.clock import Clock
from infra.clouds.digitalocean.client import Calls, make_client
from infra.clouds.digitalocean.cloud import AccountSetup, DigitalOcean
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, LeaseRequest
from infra.leases.reaper import Reaped, reap
from infra.leases.release import explain_loss, release_lease
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.processes.identity import own_start
from infra.remote.ssh_keys import LeaseKeys
from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock

KIND = "gpu-mi300x1-192gb"
DROPLETS, ONE_DROPLET = "/v2/droplets", r"/v2/droplets/\d+"
HOUR_S = 3600.0
BUDGET_USD = 20.0


def lease_request(**fields: Any) -> LeaseRequest:
    return LeaseRequest(**{"choices": (Choice(KIND),), "minutes": 60, "regions": ("atl1",), **fields})


def start_of_an_exited_process() -> str:
    """The start of a process that has exited, in a record of this boot and PID namespace."""
    return own_start() + "0"


@dataclass(frozen=True)
class Door:
    """What another process needs to rent from the same account, with the same clock and ledger."""

    token: str
    url: str
    ca: Path
    clock: VirtualClock
    folder: Path

    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger.sqlite", self.clock)

    def cloud(self) -> DigitalOcean:
        calls = Calls("digitalocean", self.clock, jitter=lambda: 0.5)
        client = make_client(SecretStr(self.token), self.url, self.ca, self.clock)
        return DigitalOcean(client, calls, self.folder / "keys", first_boot, AccountSetup())


def first_boot(_name: MachineName, keys: LeaseKeys) -> str:
    return user_data(HostKey(keys.host_private.read_text(), keys.host_public), dead_man=None)


@dataclass
class Rig:
    """One account and one controller; `before_post` is called with a machine's name just before its request."""

    emulator: Emulator
    clock: VirtualClock
    folder: Path
    endpoint: str = ""
    read_timeout_s: float = 10.0  # shorter only in tests of a silent cloud
    before_post: Callable[[MachineName], None] = lambda _name: None
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.folder / "ledger.sqlite", self.clock)
        self.cloud = self.cloud_with()

    def cloud_with(self, token: str | None = None, clock: Clock | None = None, **account: Any) -> DigitalOcean:
        secret, url, clock = (
            SecretStr(token or self.emulator.token),
            self.endpoint or self.emulator.url,
            clock or self.clock,
        )
        client = make_client(secret, url, self.emulator.ca, clock, read_timeout_s=self.read_timeout_s)
        calls = Calls("digitalocean", clock, jitter=lambda: 0.5)
        return DigitalOcean(client, calls, self.folder / "keys", self._first_boot, AccountSetup(**account))

    def _first_boot(self, name: MachineName, keys: LeaseKeys) -> str:
        self.before_post(name)
        return first_boot(name, keys)

    def door(self) -> Door:
        return Door(self.emulator.token, self.emulator.url, self.emulator.ca, self.clock, self.folder)

    def take(self, cloud: DigitalOcean | None = None, **fields: Any) -> Lease:
        night = fields.pop("night", "2026-11-21")
        request = lease_request(**fields)
        return take_lease(cloud or self.cloud, self.ledger, self.clock, request, night=night, say=self.said.append)

    def release_lease(self, lease: Lease, cloud: DigitalOcean | None = None, **fields: Any) -> Lease:
        return release_lease(
            cloud or self.cloud, self.ledger, self.clock, lease.lease_id, say=self.said.append, **fields
        )

    def reap(self, **fields: Any) -> Reaped:
        clouds = {"digitalocean": fields.pop("cloud", self.cloud)}
        ledger, clock = fields.pop("ledger", self.ledger), fields.pop("clock", self.clock)
        return reap(clouds, ledger, clock, say=self.said.append, **fields)

    def explain_loss(self, lease: Lease) -> str | None:
        return explain_loss(self.cloud, self.clock, lease)

    def move_to_another_host(self, lease: Lease) -> None:
        """Record another host as the owner of this lease."""
        with sqlite3.connect(self.folder / "ledger.sqlite") as file:
            file.execute("UPDATE leases SET owner_host = 'elsewhere' WHERE lease_id = ?", [lease.lease_id])

    def move_to_a_dead_process(self) -> None:
        """Record a process that has exited as the owner of every lease."""
        with sqlite3.connect(self.folder / "ledger.sqlite") as file:
            file.execute("UPDATE leases SET owner_start = ?", [start_of_an_exited_process()])

    def lost_ledger(self) -> Ledger:
        return Ledger(self.folder / "another" / "ledger.sqlite", self.clock)

    def quiet_down(self) -> None:
        """Run a reaper without records once every deadline has passed."""
        self.clock.sleep(HOUR_S + HOUR_S)
        reaped = self.reap(ledger=self.lost_ledger())
        assert reaped.failed == {}

    def posts(self) -> int:
        """How often a droplet was requested."""
        return len(self.emulator.requests("POST", DROPLETS))

    def billing(self) -> list[str]:
        """The names of the droplets that are billed now."""
        return [droplet.name for droplet in self.emulator.living("nb")]

    def outcomes(self) -> list[str | None]:
        return [attempt.outcome for attempt in self.ledger.attempts()]
