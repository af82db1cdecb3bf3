"""Wait for a new machine until it is active and has an address, or has failed."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bench.errors import CloudDeniedError, CloudError
from bench.record import AttemptOutcome
from infra.clock import Clock, poll
from infra.clouds.cloud import LOOKS_FOR_NEW, Cloud, CloudMachine, look_every_s

USUAL_S = 120.0  # most machines are active by then
PACE_MAX = 3.0


@dataclass(frozen=True)
class ActivationTimeouts:
    """How long a machine may take to become active, from the call on."""

    boot_s: float = 1200.0
    address_s: float = 300.0  # from active on


@dataclass(frozen=True)
class AttemptFailure:
    """Why an attempt resulted in no machine, and since when a machine that it had is gone."""

    outcome: AttemptOutcome
    reason: str
    gone_at: datetime | None = None


def wait_until_up(
    cloud: Cloud, clock: Clock, found: CloudMachine, timeouts: ActivationTimeouts
) -> CloudMachine | AttemptFailure:
    """The machine once it is active and has an address, or why it failed.

    "Not found" counts only once it has lasted as long as the cloud's lists may lag.
    """
    began_s = clock.monotonic()
    watch = _Watch(f"machine {found.machine_id}", cloud.settle_s, timeouts, began_s, seen_s=began_s)

    def pause_s() -> float:
        return look_every_s(cloud, LOOKS_FOR_NEW) * watch.pace(clock.monotonic())

    def judged() -> tuple[CloudMachine | AttemptFailure] | None:
        outcome = watch.judge(_look(cloud, found.machine_id), clock.monotonic())
        return None if outcome is None else (outcome,)

    return poll(clock, pause_s, judged)[0]


@dataclass
class _Watch:
    """What is known of a machine that is starting."""

    what: str
    settle_s: float
    timeouts: ActivationTimeouts
    began_s: float  # this and every further moment is of the monotonic clock
    seen_s: float
    active_s: float | None = None

    def judge(
        self, look: CloudMachine | Literal["absent", "unknown"], now_s: float
    ) -> CloudMachine | AttemptFailure | None:
        """The machine if it is active, its failure if it has failed; None while that is open."""
        if isinstance(look, CloudMachine):
            self.seen_s = now_s
            if look.status == "errored":
                return AttemptFailure("vanished", f"the cloud failed to create {self.what}")
            if look.status == "active":
                self.active_s = now_s if self.active_s is None else self.active_s
                if look.address is not None:
                    return look
        elif look == "absent" and now_s - self.seen_s > self.settle_s:
            return AttemptFailure("vanished", f"{self.what} was created and has disappeared")
        return self.is_late(now_s)

    def pace(self, now_s: float) -> float:
        """The factor by which pauses grow for a machine that takes longer than most."""
        return min(PACE_MAX, max(1.0, (now_s - self.began_s) / USUAL_S))

    def is_late(self, now_s: float) -> AttemptFailure | None:
        """The failure of a machine that has exceeded its time; None while it has not."""
        if self.active_s is None and (now_s - self.began_s) > self.timeouts.boot_s:
            return AttemptFailure("stuck", f"{self.what} was not active within {self.timeouts.boot_s:.0f} s")
        if self.active_s is not None and now_s - self.active_s > self.timeouts.address_s:
            return AttemptFailure(
                "stuck", f"{self.what} had no public address {self.timeouts.address_s:.0f} s after it became active"
            )
        return None


def _look(cloud: Cloud, machine_id: str) -> CloudMachine | Literal["absent", "unknown"]:
    """Look once; "unknown" where the cloud does not answer."""
    try:
        return cloud.find_by_id(machine_id) or "absent"
    except CloudDeniedError:
        raise
    except CloudError:
        return "unknown"
