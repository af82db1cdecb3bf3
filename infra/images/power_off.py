"""Switch a rented machine off before its disk is copied: an image of a running machine may miss unwritten data.

A machine that is off is still billed: this does not release it.
"""

from bench.errors import LeaseError
from infra.clock import Clock, poll
from infra.clouds.abilities import ImageCloud, SwitchOff
from infra.clouds.cloud import answer_or
from infra.reporting import Say, silent

LOOK_EVERY_S = 5.0
SHUTDOWN_S = 120.0  # for the machine to shut down by itself, which the cloud does not guarantee
POWER_OFF_S = 300.0  # from the power-off request until the cloud reports the machine as off


def power_off(cloud: ImageCloud, clock: Clock, machine_id: str, *, say: Say = silent) -> None:
    """Shut a machine down, power it off where that takes too long, and return once the cloud reports it as off.

    Raises LeaseError where it stays on; it can be released all the same.
    """
    steps: tuple[tuple[SwitchOff, float], ...] = (("shutdown", SHUTDOWN_S), ("power_off", POWER_OFF_S))
    for how, patience_s in steps:
        if _is_off_after(cloud, clock, machine_id, how, patience_s):
            return
        say(f"machine {machine_id} is still on {patience_s:.0f} s after {how}")
    raise LeaseError(
        f"machine {machine_id} cannot be switched off, so no image of it is created: run nightbench prepare again"
    )


def _is_off_after(cloud: ImageCloud, clock: Clock, machine_id: str, how: SwitchOff, patience_s: float) -> bool:
    """Request it, again where the reply was lost or another event blocks the machine, and wait until it is off."""
    is_requested = False

    def is_off() -> bool:
        nonlocal is_requested
        if not is_requested:
            cloud.switch_off(machine_id, how)
            is_requested = True
        found = cloud.find_by_id(machine_id)
        return found is not None and found.status == "off"

    # A failed call is repeated: requesting the same twice does no harm.
    return bool(poll(clock, LOOK_EVERY_S, lambda: answer_or(is_off, otherwise=False), patience_s))
