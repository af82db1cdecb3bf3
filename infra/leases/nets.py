"""The nets under a night: what releases its machine after any failure, and what each of them does not cover."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Net:
    """One net: whether it stands under a night, as a phrase, and what it cannot catch."""

    net: str
    is_up: bool
    stands: str
    misses: str


def nets_under(*, is_rented: bool, why_no_switch: str | None, server: str | None) -> list[Net]:
    """The nets under a night that is started on this computer; those of a rented machine only where it is rented.

    `why_no_switch` is how to let its machine delete itself; None if it does. `server` is the address of the Prefect
    server, whose worker may run nights and the reaper.
    """
    deployed = ", the reap deployment" if server else ""
    here = [
        Net(
            net="teardown",
            is_up=True,
            stands="always, in the night's own process",
            misses="kill -9 of the night",
        ),
        Net(
            net="worker's hook",
            is_up=server is not None,
            stands=f"for a night that a worker of {server} starts" if server else "off: PREFECT_API_URL is not set",
            misses="a night that no worker started; kill -9 of the worker too",
        ),
        Net(
            net="watchdog",
            is_up=True,
            stands="always, in a process of its own on this computer",
            misses="kill -9 of the watchdog too; the end of this computer, or of the container or service it runs in",
        ),
        Net(
            net="reaper",
            is_up=True,
            stands=f"the next night of this data folder, `nightbench reap`{deployed}",
            misses="everything, until one of them runs",
        ),
    ]
    if not is_rented:
        return here
    return [
        *here,
        Net(
            net="machine's own switch",
            is_up=why_no_switch is None,
            stands="at the lease's expiry" if why_no_switch is None else f"off: {why_no_switch}",
            misses="a revoked token; a machine that hangs or has no network; keys and volumes",
        ),
        Net(
            net="deadline in the name",
            is_up=True,
            stands="`nightbench reap` on any computer with the token, without records",
            misses="everything, until it runs after the lease's expiry",
        ),
    ]


def exposure(*, why_no_switch: str | None, lease_minutes: int | None = None, usd_per_hour: float | None = None) -> str:
    """What stays billed if this computer fails while a machine is rented, for how long, and what that costs.

    `why_no_switch` is how to let the machine delete itself; None if it does. Reapers on other computers are unknown
    here, so none is assumed.
    """
    if why_no_switch is None:
        usd = f", at most {usd_per_hour * lease_minutes / 60:.2f} USD" if usd_per_hour and lease_minutes else ""
        return (
            f"if this computer fails, the machine deletes itself at its lease's expiry{usd}; its key and volumes stay"
        )
    usd = "" if usd_per_hour is None else f", at {usd_per_hour:.2f} USD/h or {24 * usd_per_hour:.2f} USD a day"
    return (
        f"if this computer fails, the machine is billed without end{usd}, unless another computer runs "
        f"`nightbench reap` after the lease's expiry: {why_no_switch}, or let another computer run `nightbench reap` "
        "each hour"
    )


@dataclass(frozen=True)
class Unguarded:
    """A machine without a switch of its own: the most, in USD, that its lease may cost, and how to get a switch."""

    usd_max: float
    remedy: str

    def why_refused(self, usd: float | None) -> str | None:
        """Why a lease that costs this much is not taken; None where it is. None as its cost: unknown."""
        if usd is not None and usd <= self.usd_max:
            return None
        cost = "the price of the lease is unknown" if usd is None else f"the lease costs up to {usd:.2f} USD"
        return (
            f"{cost} and the machine has no switch of its own, so it is billed without end if this computer fails; "
            f"NIGHTBENCH_UNGUARDED_USD_MAX allows {self.usd_max:.2f} USD without it: {self.remedy}, or accept "
            "the risk with --accept-risk (deployments: NIGHTBENCH_ACCEPT_RISK=1)"
        )
