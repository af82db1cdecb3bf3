"""Switch a rented machine off before its disk is copied: what a running machine has not written yet is in no image.

A machine that is off is billed as before: this is no way to give one back.
"""

from datetime import timedelta

from bench.errors import CloudDeniedError, CloudError, LeaseError
from infra.clock import Clock
from infra.clouds.image_cloud import ImageCloud, Switch
from infra.reporting import Say, silent

LOOK_EVERY_S = 5.0
SHUTDOWN_S = 120.0  # for the machine to end by itself; the cloud promises only to have told it
POWER_OFF_S = 300.0  # from pulling the plug until the cloud says that it is out


def power_off(cloud: ImageCloud, clock: Clock, machine_id: str, *, say: Say = silent) -> None:
    """Shut a machine down, pull its plug where that does not end, and return once the cloud says that it is off.

    Raises LeaseError where it stays on; it can be given back all the same.
    """
    steps: tuple[tuple[Switch, float], ...] = (("shutdown", SHUTDOWN_S), ("power_off", POWER_OFF_S))
    for how, patience_s in steps:
        if _is_off_after(cloud, clock, machine_id, how, patience_s):
            return
        say(f"machine {machine_id} is still on {patience_s:.0f} s after {how}")
    raise LeaseError(f"machine {machine_id} cannot be switched off, so no image is made of it: run nightbench prepare")


def _is_off_after(cloud: ImageCloud, clock: Clock, machine_id: str, how: Switch, patience_s: float) -> bool:
    """Ask, again where the answer was lost or another event holds the machine, and watch until it is off."""
    until, was_asked = clock.now() + timedelta(seconds=patience_s), False
    while clock.now() < until:
        try:
            if not was_asked:
                cloud.switch(machine_id, how)
                was_asked = True
            found = cloud.look(machine_id)
        except CloudDeniedError:
            raise
        except CloudError:
            found = None  # whoever cannot be asked has said nothing; asking for the same twice does no harm
        if found is not None and found.status == "off":
            return True
        clock.sleep(LOOK_EVERY_S)
    return False
