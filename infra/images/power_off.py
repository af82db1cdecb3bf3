"""SwitchOff a rented machine off before its disk is copied: what a running machine has not written yet is in no image.

A machine that is off is billed as before: this is no way to give one back.
"""

from bench.errors import LeaseError
from infra.clock import Clock, poll
from infra.clouds.cloud import answer_or
from infra.clouds.image_cloud import ImageCloud, SwitchOff
from infra.reporting import Say, silent

LOOK_EVERY_S = 5.0
SHUTDOWN_S = 120.0  # for the machine to end by itself; the cloud promises only to have told it
POWER_OFF_S = 300.0  # from pulling the plug until the cloud says that it is out


def power_off(cloud: ImageCloud, clock: Clock, machine_id: str, *, say: Say = silent) -> None:
    """Shut a machine down, pull its plug where that does not end, and return once the cloud says that it is off.

    Raises LeaseError where it stays on; it can be given back all the same.
    """
    steps: tuple[tuple[SwitchOff, float], ...] = (("shutdown", SHUTDOWN_S), ("power_off", POWER_OFF_S))
    for how, patience_s in steps:
        if _is_off_after(cloud, clock, machine_id, how, patience_s):
            return
        say(f"machine {machine_id} is still on {patience_s:.0f} s after {how}")
    raise LeaseError(f"machine {machine_id} cannot be switched off, so no image is made of it: run nightbench prepare")


def _is_off_after(cloud: ImageCloud, clock: Clock, machine_id: str, how: SwitchOff, patience_s: float) -> bool:
    """Ask, again where the answer was lost or another event holds the machine, and watch until it is off."""
    was_asked = False

    def is_off() -> bool:
        nonlocal was_asked
        if not was_asked:
            cloud.switch_off(machine_id, how)
            was_asked = True
        found = cloud.find_by_id(machine_id)
        return found is not None and found.status == "off"

    # Where a call fails, the next one repeats it: asking for the same twice does no harm.
    return bool(poll(clock, LOOK_EVERY_S, lambda: answer_or(is_off, otherwise=False), patience_s))
