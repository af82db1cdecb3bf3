"""Your own hosts as a cloud: nothing is created or deleted, and one lease at a time holds a host.

A host's key must be in your known_hosts file before the first connection.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bench.errors import (
    CloudDeniedError,
    CloudError,
    CloudRefusedError,
    HostError,
    HostInUseError,
    HostKeyError,
    LoginRefusedError,
    UsageError,
)
from bench.machine.names import PREFIX, MachineName
from bench.suite.target import OWN, OwnHost
from infra.clock import Clock, poll
from infra.clouds.cloud import Cloud, CloudMachine, MachineOrder, Offer
from infra.clouds.host_lease import LEASE, end, read_lease, take, this_process, who
from infra.remote.deploy import HOME
from infra.remote.host import Host
from infra.remote.host_lock import LockRefusal, look_script, read_refusal
from infra.reporting import Say

WAIT_POLL_S = 10.0  # between two looks at a host that another night holds
LOST_MAX = 30  # looks in a row that the host does not answer


class StaticCloud(Cloud):
    """Your own host. A lease file on it, created by the first lease, records which lease holds it.

    The host's clock says whether that lease has expired: the clocks of those who look may differ by hours.
    """

    settle_s = 0.0
    is_shared = True  # a lease of another data folder on the same host must not be ended

    def __init__(self, own: OwnHost, reach: Callable[[], Host], clock: Clock, prefix: str = PREFIX) -> None:
        self.name = str(own)
        self._address = own.address
        self.prefix = prefix
        self._reach = reach
        self._clock = clock
        self._host_time: tuple[float, float] | None = None  # in seconds since 1970, and when it was read

    @contextmanager
    def _host(self) -> Iterator[Host]:
        """A connection to the host, whose errors are raised as those of a cloud."""
        try:
            with closing(self._reach()) as host:
                yield host
        except (HostKeyError, LoginRefusedError, UsageError) as error:
            raise CloudDeniedError(str(error)) from error
        except HostError as error:
            raise CloudError(str(error)) from error

    def now(self) -> datetime:
        """The time on the host."""
        if self._host_time is None:
            with self._host() as host:
                self._read_lease(host)
        host_s, at_s = self._host_time or (self._clock.now().timestamp(), self._clock.monotonic())
        return datetime.fromtimestamp(host_s + self._clock.monotonic() - at_s, UTC)

    def _read_lease(self, host: Host) -> tuple[dict[str, Any] | None, float]:
        """The lease that holds the host, and the time there, which is kept."""
        held, host_now_s = read_lease(host)
        self._host_time = host_now_s, self._clock.monotonic()
        return held, host_now_s

    def offers(self) -> list[Offer]:
        """The host itself, at no cost."""
        return [Offer(kind=OWN, usd_per_hour=0.0)]

    def rent(self, order: MachineOrder) -> CloudMachine:
        """Take the host for this lease; HostInUseError names the lease that holds it.

        A lease that has expired holds nothing: its processes are ended first.
        """
        now = self._clock.now()
        ids = {"name": str(order.name), "lease_id": order.name.lease_id, "night": order.night}
        lease: dict[str, Any] = ids | {"holder": this_process(), "since": now.isoformat()}
        with self._host() as host:
            held, host_now_s = self._read_lease(host)
            if held is not None and held["name"] != lease["name"] and self._is_past(held, host_now_s):
                end(host, held)
            if order.name.expires_at is not None:
                lease["expires_s"] = order.name.expires_at.timestamp()  # by the host's clock
            refusal = take(host, lease, host_now_s)
            held, host_now_s = self._read_lease(host)
        if held is None and refusal is not None:
            raise self._refused(refusal)
        if held is None:
            raise CloudError(
                f"{self.name} could not be taken: {LEASE} on it is missing after it was written; run again"
            )
        if held["name"] != lease["name"]:
            raise HostInUseError(
                f"{self.name} is held by {who(held)}: run again when that night has "
                "ended, or add --wait; if its process has ended, run `nightbench reap` on the computer that started it"
            )
        return self._found(held, host_now_s)

    def _refused(self, refusal: LockRefusal) -> CloudRefusedError:
        """The error of a host whose machine lock could not be held."""
        if refusal.state == "busy":
            return HostInUseError(
                f"{refusal.detail} measures on {self.name}, and two nights at once would slow each other: "
                "run again when it has ended, or add --wait"
            )
        return CloudRefusedError(
            f"{refusal.detail} on {self.name} cannot be locked, so another night may be measuring there: let all users "
            f"read and write that file, or set NIGHTBENCH_MACHINE_LOCK in {HOME}/host.env on it to the same other file "
            "for all nights there"
        )

    def wait_until_free(self, say: Say) -> None:
        """Return when no night uses the host, or only a lease that has expired; says once for which night it waits."""
        told, lost = set[str](), 0

        def is_free() -> bool:
            nonlocal lost
            try:
                name = self._holder()
            except (CloudDeniedError, CloudRefusedError):
                raise
            except CloudError as error:  # in hours the network may fail for a moment
                lost += 1
                if lost > LOST_MAX:
                    raise
                if lost == 1:
                    say(f"{error}; looking again")
                return False
            lost = 0
            if name is not None and name not in told:
                told.add(name)
                say(f"waiting for {self.name}, which is held by {name}")
            return name is None

        poll(self._clock, WAIT_POLL_S, is_free)

    def _holder(self) -> str | None:
        """The night that uses the host now; None where none does, or its lease has expired."""
        with self._host() as host:
            held, host_now_s = self._read_lease(host)
            if held is not None:
                return None if self._is_past(held, host_now_s) else who(held)
            refusal = read_refusal(host.output_of(look_script()))
        return refusal.detail if refusal is not None and refusal.state == "busy" else None

    def _is_past(self, held: dict[str, Any], host_now_s: float) -> bool:
        """Whether a lease has expired by the host's clock; one without a time on that clock has that of its name."""
        name = MachineName.parse(str(held["name"]), self.prefix)
        if isinstance(held.get("expires_s"), int | float):
            return name is not None and host_now_s > held["expires_s"]
        return name is not None and name.is_past(datetime.fromtimestamp(host_now_s, UTC))

    def _found(self, held: dict[str, Any], host_now_s: float) -> CloudMachine:
        name, since = str(held["name"]), str(held["since"])
        began = datetime.fromisoformat(since)
        found = CloudMachine(name, name, address=self._address, kind=OWN, usd_per_hour=0.0, created_at=began)
        return replace(found, has_expired=self._is_past(held, host_now_s))

    def find_by_id(self, machine_id: str) -> CloudMachine | None:
        """The lease of this name, while it holds the host."""
        return next((found for found in self.find_ours() if found.machine_id == machine_id), None)

    def find(self, name: str) -> list[CloudMachine]:
        """The lease of this name, as a list of one or none."""
        return [found for found in self.find_ours() if found.name == name]

    def find_ours(self) -> list[CloudMachine]:
        """The lease that holds the host now."""
        with self._host() as host:
            held, host_now_s = self._read_lease(host)
        return [] if held is None else [self._found(held, host_now_s)]

    def release(self, machine_id: str) -> None:
        """End every process of this lease on the host and free the host; another lease is left alone."""
        with self._host() as host:
            held, _ = self._read_lease(host)
            if held is not None and held["name"] == machine_id:
                end(host, held)
