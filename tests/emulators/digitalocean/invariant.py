"""What must hold once everything is quiet: nothing of ours bills, nothing foreign was touched."""

from collections import defaultdict
from collections.abc import Collection

from tests.emulators.digitalocean.billing import Interval
from tests.emulators.digitalocean.world import State

SETTLE_S = 120.0


def breaches(
    state: State, now: float, prefix: str, *, kept: Collection[str] = (), budget_usd: float | None = None
) -> list[str]:
    """Everything that is wrong, one sentence each; `kept` names what may go on billing (a golden snapshot)."""
    ours = [one for one in state.bill.intervals if one.name.startswith(prefix) and not one.foreign]
    found = [
        f"{one.kind} {one.resource} {one.name} goes on billing"
        for one in ours
        if one.ended is None and one.name not in kept
    ]
    found += _twins(ours, now)
    found += [
        f"SSH key {key.name} is left behind"
        for key in state.keys.values()
        if key.name.startswith(prefix) and key.name not in kept and not key.foreign
    ]
    found += [
        f"tag {tag} is left behind"
        for tag in state.tags
        if tag.startswith((f"{prefix}-run:", f"{prefix}-exp:", f"{prefix}-used:"))
        and not any(state.wearers(tag).values())
    ]
    found += state.touched
    spent = sum(one.usd(now) for one in ours)
    if budget_usd is not None and spent > budget_usd:
        found.append(f"spent {spent:.2f} USD of a budget of {budget_usd:.2f}")
    return found


def _twins(ours: list[Interval], now: float) -> list[str]:
    """Two droplets of one attempt (they bear one name) that billed side by side for longer than the settle window."""
    by_name = defaultdict(list)
    for one in ours:
        if one.kind == "droplet":
            by_name[one.name].append(one)
    found = []
    for name, twins in by_name.items():
        for i, one in enumerate(twins):
            overlaps = [_overlap_s(one, other, now) for other in twins[i + 1 :]]
            if overlaps and max(overlaps) > SETTLE_S:
                found.append(f"two droplets {name} billed side by side for {max(overlaps):.0f} s")
    return found


def _overlap_s(one: Interval, other: Interval, now: float) -> float:
    ends = [now if interval.ended is None else interval.ended for interval in (one, other)]
    return min(ends) - max(one.began, other.began)
