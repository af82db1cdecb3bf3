"""The events of machines that may be billed although no night uses them; whoever finds one gives it the same key.

So a lease that the reaper cannot release, that its watchdog cannot, and that a check finds open is one message.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.errors import LedgerError, NightbenchError
from bench.suite.target import LOCAL, parse_target
from infra.ledger.lease import LeaseInUseError, NotSearchedError
from infra.ledger.ledger import Ledger
from infra.notices.book import Changed
from infra.notices.event import Event
from infra.notices.tell import tell, tell_over, tell_standing
from infra.reporting import Say
from infra.settings import Settings

LEAKED, BLIND, GAVE_UP = "lease.leaked", "reap.blind", "watchdog.alarm"


def leaked(what: str, why: str, cloud: str | None = None) -> Event:
    """A machine or lease that was not released; `what` is the machine's id, or the lease's where it has none."""
    advice = "it may be billed: look at the cloud's console; `nightbench reap` tries again"
    return Event(f"{LEAKED}/{what}", "act", f"not released: {what}", f"{why}; {advice}", cloud=cloud)


def blind(cloud: str, why: str) -> Event:
    """A cloud whose machines the reaper cannot list, as with a token that was revoked."""
    advice = "machines there may be billed meanwhile, and nothing releases them"
    title = f"the reaper cannot see what is rented at {cloud}"
    return Event(f"{BLIND}/{cloud}", "act", title, f"{why}; {advice}", cloud=cloud)


@dataclass(frozen=True)
class ReaperRound:
    """What a round of the reaper could not release: why, and at which cloud; a record of ours has none."""

    failed: Mapping[str, str]
    cloud_of: Mapping[str, str]
    clouds: Collection[str]  # the names of those that were set up

    def events(self) -> list[Event]:
        """The events of what was not released."""
        return [
            blind(what, why) if what in self.clouds else leaked(what, why, self.cloud_of.get(what, LOCAL))
            for what, why in self.failed.items()
        ]

    def is_searched(self, cloud: str | None) -> bool:
        """Whether this cloud was searched, so that a machine there that did not fail is gone.

        Where the cloud of a machine is not known, each cloud that is set up must have been searched, and there is one.
        """
        blind_at = self.failed.keys() & set(self.clouds)
        if cloud is None:
            return not blind_at and any(parse_target(name).is_rented for name in self.clouds)
        return cloud not in blind_at and (cloud in self.clouds or not parse_target(cloud).is_rented)


def tell_of_reaped(settings: Settings, done: ReaperRound, say: Say, *, is_kept: bool = False) -> Changed:
    """Send what a round of the reaper could not release, and what it now could.

    While a cloud cannot be searched, as in a shell without its token, nothing that was found there before counts as
    released.
    """
    return tell_standing(settings, (BLIND, LEAKED), done.events(), say, is_kept=is_kept, is_searched=done.is_searched)


@contextmanager
def telling_of_lease(settings: Settings, ledger_file: Path, lease_id: str, say: Say) -> Iterator[None]:
    """Send where the block cannot release a lease, and that it is over once one can.

    One in use is not leaked; of one that was not searched nothing is known.
    """
    machine, cloud = _machine_of(ledger_file, lease_id)
    try:
        yield
    except (LeaseInUseError, NotSearchedError):
        raise
    except NightbenchError as error:
        tell(settings, leaked(machine, str(error), cloud), say)
        raise
    tell_over(settings, (f"{LEAKED}/{machine}",), say)


def tell_that_it_gave_up(settings: Settings, ledger_file: Path, lease_id: str, days: float, say: Say) -> None:
    """Send the alarm of a watchdog that gave up."""
    title = f"the watchdog of {_machine_of(ledger_file, lease_id)[0]} gave up after {days:.0f} days: STILL BILLED"
    tell(settings, Event(f"{GAVE_UP}/{lease_id}", "act", title, "delete the machine in the cloud's console"), say)


def _machine_of(ledger_file: Path, lease_id: str) -> tuple[str, str | None]:
    """What an event names, and its cloud: the lease's machine, or the lease, also where the ledger cannot be opened."""
    try:
        lease = Ledger(ledger_file).lease(lease_id)
    except (KeyError, LedgerError):
        return lease_id, None
    return lease.machine_id or lease_id, lease.cloud
