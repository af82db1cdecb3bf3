"""One lease, as a row of the ledger."""

import os
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from bench.errors import LeaseError
from bench.suite.target import OwnHost, Target, parse_target
from infra.processes.identity import has_exited, is_seen, own_start

State = Literal["intended", "held", "releasing", "released"]


class LeaseInUseError(LeaseError):
    """The night of a lease, whose earlier attempt is over, has rented another machine meanwhile."""


class NotSearchedError(LeaseError):
    """Nothing is known of a lease, and no cloud was searched where its machine may be billed."""


@dataclass(frozen=True)
class Lease:
    """One lease. `machine_id` is None until the cloud replied, `address` until the machine is active; times are UTC."""

    lease_id: str
    night: str
    cloud: str
    account: str | None  # that the machine was rented in; None: unknown, as in rows of earlier versions
    name: str | None
    attempt: int
    machine_id: str | None
    address: str | None
    kind: str | None
    region: str | None
    is_spot: bool
    state: State
    usd_per_hour: float
    budget_usd: float | None
    image: str | None  # that it booted: the suite's image, or a golden image's id; None: the cloud's default
    machine: str | None  # its name in a suite of several machines
    earlier_usd: float  # the cost of the lease's earlier machines
    owner_host: str | None  # None: written before hosts were recorded, so on this one
    owner_pid: int
    owner_began_at: float
    owner_start: str | None  # its boot, PID namespace and clock ticks; None: written before they were recorded
    heartbeat_at: datetime | None
    intended_at: datetime
    rented_at: datetime | None
    expires_at: datetime  # by the cloud's clock
    cloud_ahead_s: float  # the cloud's clock, minus that of the computer that rented
    lasts_s: float | None  # from the last request to the expiry; None: written before it was recorded
    released_at: datetime | None

    @property
    def where(self) -> Target:
        """Whose machine it is: this computer's, a host's of your own, or a cloud's."""
        return parse_target(self.cloud)

    @property
    def host(self) -> OwnHost | None:
        """The host of your own that it is of, or that its cloud gives as the address."""
        given = (parse_target(one) for one in (self.cloud, self.address) if one is not None)
        return next((one.host for one in given if one.host is not None), None)

    @property
    def is_free_to_change(self) -> bool:
        """Whether its machine is rented and has a system of its own, whose disks and software are ours to change."""
        return self.where.is_rented and self.host is None

    def is_seen(self) -> bool:
        """Whether the process that took this lease would be seen from here: on this host, boot and PID namespace."""
        is_here = self.owner_host in (None, socket.gethostname())
        return is_here and (self.owner_start is None or is_seen(self.owner_start))

    def is_orphan(self) -> bool:
        """Whether the process that took this lease is known to have exited; its pid may belong to another one by now.

        Of a process that cannot be seen from here nothing is known: only the lease's expiry counts then. A step of this
        computer's clock changes nothing.
        """
        return self.is_seen() and has_exited(self.owner_pid, self.owner_start)

    def is_own(self) -> bool:
        """Whether this process took it."""
        if self.owner_pid != os.getpid() or self.owner_host not in (None, socket.gethostname()):
            return False
        return self.owner_start in (None, own_start())

    def is_overdue(self, now: datetime) -> bool:
        """Whether this lease has expired; `now` is the cloud's time."""
        return now > self.expires_at

    def expires_here_at(self) -> datetime:
        """When it expires by the clock of the computer that rented."""
        return self.expires_at - timedelta(seconds=self.cloud_ahead_s)

    def usd(self, now: datetime) -> float:
        """Its cost until now, or until its release, with the machines of earlier attempts."""
        if self.rented_at is None:
            return self.earlier_usd
        hours = ((self.released_at or now) - self.rented_at).total_seconds() / 3600
        return self.earlier_usd + max(0.0, hours) * self.usd_per_hour  # the clock may have been set back
