"""Request one machine, and search for it where the reply was lost: such a request is never repeated."""

from bench.errors import CloudDeniedError, CloudError, LostReplyError, NotAskedError
from infra.clock import Clock, poll
from infra.clouds.cloud import LOOKS_FOR_NEW, Cloud, CloudMachine, MachineOrder, look_every_s

SENDS_MAX = 6  # of one create call that never arrived
SENDS_S, SENDS_SHARE = 300.0, 0.1  # the most time in which they begin, and the largest share of the lease
BLIND_MAX_S = 1800.0  # how long a cloud may be unreachable while a machine is searched


def create(cloud: Cloud, clock: Clock, order: MachineOrder, lasts_s: float) -> CloudMachine:
    """Request one machine; a call that never arrived is repeated, a lost reply is resolved by a search.

    `lasts_s` is the length of its lease. Calls begin in the first tenth of it: one that is sent after the expiry would
    rent a machine that no watchdog releases. Raises what Cloud.rent raises, and CloudError where no call arrived in
    that time; LostReplyError means that no machine of this name has appeared.
    """
    name, until_s = str(order.name), clock.monotonic() + min(SENDS_S, SENDS_SHARE * lasts_s)
    for _ in range(SENDS_MAX):
        try:
            return cloud.rent(order)
        except NotAskedError as error:
            trouble = error
            if clock.monotonic() + error.wait_s > until_s:
                break
            clock.sleep(error.wait_s)
            found = cloud.find(name)
            if found:
                return found[0]
            if clock.monotonic() > until_s:  # the search waits, too, for a cloud that limits the rate of calls
                break
        except LostReplyError as error:
            adopted = _adopted(cloud, clock, name, error)
            if adopted is None:
                raise
            return adopted
    raise CloudError(f"{cloud.name} could not be reached to rent a machine ({trouble}); nothing was rented: try later")


def _adopted(cloud: Cloud, clock: Clock, name: str, lost: LostReplyError) -> CloudMachine | None:
    """The machine whose reply was lost; LostReplyError where the cloud now denies access, since it stays unknown."""
    try:
        return search(cloud, clock, name)
    except CloudDeniedError as error:
        raise LostReplyError(f"{lost}; and its machine cannot be searched: {error}") from error


def search(cloud: Cloud, clock: Clock, name: str) -> CloudMachine | None:
    """The machine of this name, searched until the cloud's lists have settled; the lowest id where there are more.

    Raises CloudError where the cloud did not answer for BLIND_MAX_S, so that it stays unknown.
    """
    began_s = clock.monotonic()

    def found() -> list[CloudMachine] | None:
        waited_s = clock.monotonic() - began_s
        try:
            machines = cloud.find(name)
        except CloudDeniedError:
            raise
        except CloudError:
            if waited_s > cloud.settle_s + BLIND_MAX_S:
                raise
            return None
        return machines if machines or waited_s >= cloud.settle_s else None

    machines = poll(clock, look_every_s(cloud, LOOKS_FOR_NEW), found)
    return machines[0] if machines else None
