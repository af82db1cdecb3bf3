"""The events of machines that may be billed although no night uses them; whoever finds one gives it the same key.

So a lease that the reaper cannot release, that its watchdog cannot, and that a check finds open is one message.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import LedgerError, NightbenchError
from infra.ledger.lease import LeaseInUseError
from infra.ledger.ledger import Ledger
from infra.notices.book import Changed
from infra.notices.event import Event
from infra.notices.tell import tell, tell_over, tell_standing
from infra.reporting import Say
from infra.settings import Settings

LEAKED, BLIND, GAVE_UP = "lease.leaked", "reap.blind", "watchdog.alarm"


def leaked(what: str, why: str) -> Event:
    """A machine or lease that was not released; `what` is the machine's id, or the lease's where it has none."""
    advice = "it may be billed: look at the cloud's console; `nightbench reap` tries again"
    return Event(f"{LEAKED}/{what}", "act", f"not released: {what}", f"{why}; {advice}")


def blind(cloud: str, why: str) -> Event:
    """A cloud whose machines the reaper cannot list, as with a token that was revoked."""
    advice = "machines there may be billed meanwhile, and nothing releases them"
    return Event(f"{BLIND}/{cloud}", "act", f"the reaper cannot see what is rented at {cloud}", f"{why}; {advice}")


def events_of(failed: dict[str, str], clouds: Collection[str]) -> list[Event]:
    """The events of what a reaper's round could not release, by why; `clouds` are the names of clouds."""
    return [blind(what, why) if what in clouds else leaked(what, why) for what, why in failed.items()]


def tell_of_reaped(
    settings: Settings, failed: dict[str, str], clouds: Collection[str], say: Say, *, is_kept: bool = False
) -> Changed:
    """Send what a round of the reaper could not release, and what it now could.

    While a cloud cannot be searched, nothing that was found there before counts as released.
    """
    events = events_of(failed, clouds)
    is_blind = any(event.kind == BLIND for event in events)
    return tell_standing(settings, (BLIND,) if is_blind else (BLIND, LEAKED), events, say, is_kept=is_kept)


@contextmanager
def telling_of_lease(settings: Settings, ledger_file: Path, lease_id: str, say: Say) -> Iterator[None]:
    """Send where the block cannot release a lease, and that it is over once one can; one in use is not leaked."""
    machine = _machine_of(ledger_file, lease_id)
    try:
        yield
    except LeaseInUseError:
        raise
    except NightbenchError as error:
        tell(settings, leaked(machine, str(error)), say)
        raise
    tell_over(settings, (f"{LEAKED}/{machine}",), say)


def tell_that_it_gave_up(settings: Settings, ledger_file: Path, lease_id: str, days: float, say: Say) -> None:
    """Send the alarm of a watchdog that gave up."""
    title = f"the watchdog of {_machine_of(ledger_file, lease_id)} gave up after {days:.0f} days: STILL BILLED"
    tell(settings, Event(f"{GAVE_UP}/{lease_id}", "act", title, "delete the machine in the cloud's console"), say)


def _machine_of(ledger_file: Path, lease_id: str) -> str:
    """What an event names: the id of the lease's machine, or the lease's, also where the ledger cannot be opened."""
    try:
        return Ledger(ledger_file).lease(lease_id).machine_id or lease_id
    except (KeyError, LedgerError):
        return lease_id
