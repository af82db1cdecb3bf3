"""Asking for one machine, and looking for it where the answer was lost: never asking again instead."""

from bench.errors import CloudDeniedError, CloudError, LostReplyError, NotAskedError
from infra.clock import Clock, poll, seconds_since
from infra.clouds.cloud import LOOKS_FOR_NEW, Cloud, CloudMachine, MachineOrder, look_every_s

SENDS_MAX = 6  # of one create call that never arrived
BLIND_MAX_S = 1800.0  # how long a cloud may be out of reach while we look for a machine


def create(cloud: Cloud, clock: Clock, order: MachineOrder) -> CloudMachine:
    """Ask for one machine; a call that never arrived is made again, a lost answer is resolved by looking.

    Raises what Cloud.rent raises; LostReplyError means that no machine of this name has appeared.
    """
    name = str(order.name)
    for _ in range(SENDS_MAX):
        try:
            return cloud.rent(order)
        except NotAskedError as error:
            trouble = error
            clock.sleep(error.wait_s)
            found = cloud.find(name)
            if found:
                return found[0]
        except LostReplyError as error:
            adopted = _adopted(cloud, clock, name, error)
            if adopted is None:
                raise
            return adopted
    raise CloudError(f"{cloud.name} could not be asked for a machine ({trouble}); nothing was rented: try later")


def _adopted(cloud: Cloud, clock: Clock, name: str, lost: LostReplyError) -> CloudMachine | None:
    """The machine whose answer was lost; a cloud that turns us away now leaves the question open."""
    try:
        return search(cloud, clock, name)
    except CloudDeniedError as error:
        raise LostReplyError(f"{lost}; and it cannot be looked for: {error}") from error


def search(cloud: Cloud, clock: Clock, name: str) -> CloudMachine | None:
    """The machine of this name, looked for until the cloud's lists have settled; the lowest id where there are more.

    Raises CloudError where the cloud could not be asked for so long that nobody can say.
    """
    began = clock.now()

    def found() -> list[CloudMachine] | None:
        waited_s = seconds_since(began, clock)
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
