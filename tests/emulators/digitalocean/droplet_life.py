"""A droplet's life: placed, active, busy with one event at a time, destroyed."""

from tests.emulators.digitalocean.behaviour import ERRORED, NO_ADDRESS, STUCK, VANISHES
from tests.emulators.digitalocean.billing import Interval
from tests.emulators.digitalocean.replies import refusal
from tests.emulators.digitalocean.resources import Action, Droplet, Image
from tests.emulators.digitalocean.world import State

PENDING_EVENT = "Droplet already has a pending event."
HELD_MAX_S = 1800.0  # even an event that never ends lets go of its droplet, or nobody could ever delete it


def accept(state: State, droplet: Droplet) -> Action:
    """Take a droplet into the account; it bills from now on, whatever becomes of it."""
    state.droplets[droplet.droplet_id] = droplet
    key = (droplet.size.slug, droplet.region)
    if key in state.behaviour.capacity:
        state.behaviour.capacity[key] -= 1
    state.bill.open(
        Interval(
            str(droplet.droplet_id),
            "droplet",
            droplet.name,
            state.now,
            droplet.size.usd_per_hour,
            minimum_s=state.behaviour.gpu_minimum_s if droplet.is_gpu else 60.0,
            foreign=droplet.foreign,
            size=droplet.size.slug,
            region=droplet.region,
        )
    )
    state.tags.update(dict.fromkeys(droplet.tags))
    return state.begin("create", "droplet", droplet.droplet_id, droplet.region)


def launch(state: State, droplet: Droplet, action: Action) -> None:
    """Let the droplet meet its fate."""
    droplet.pending, droplet.locked = action, True
    delays = state.behaviour.delays
    fate = state.behaviour.fate()
    if droplet.user_data is not None and not droplet.user_data.isascii():
        fate = VANISHES
    if fate == VANISHES:
        state.at(state.now + delays.placement_s, lambda at: _vanish(state, droplet, action, at))
    elif fate == ERRORED:
        state.at(state.now + delays.create_s, lambda at: _finish(droplet, action, at, "errored"))
    elif fate == STUCK:
        state.at(state.now + HELD_MAX_S, lambda _at: _let_go(droplet, action))
    else:
        has_address = fate != NO_ADDRESS
        state.at(state.now + delays.create_s, lambda at: _activate(state, droplet, action, at, has_address))


def _vanish(state: State, droplet: Droplet, action: Action, at: float) -> None:
    if droplet.gone_at is not None:
        return
    _leave(state, droplet, at)
    state.bill.void(str(droplet.droplet_id), at)
    state.actions.pop(action.action_id, None)
    # What was never placed is not seen again, by no view.
    droplet.created_at = float("inf")


def _activate(state: State, droplet: Droplet, action: Action, at: float, has_address: bool) -> None:
    if droplet.gone_at is not None:
        return
    droplet.status = "active"
    _finish(droplet, action, at)
    if has_address:
        state.at(at + state.behaviour.delays.address_s, lambda _at: _give_address(state, droplet))


def _give_address(state: State, droplet: Droplet) -> None:
    if droplet.gone_at is None:
        keys = [state.keys[key_id].public_key for key_id in droplet.key_ids if key_id in state.keys]
        droplet.address = state.machines.start(droplet, keys)


def _finish(droplet: Droplet, action: Action, at: float, status: str = "completed") -> None:
    action.end(at, status)
    _let_go(droplet, action)


def _let_go(droplet: Droplet, action: Action) -> None:
    if droplet.pending is action:
        droplet.pending, droplet.locked = None, False


def destroy(state: State, droplet: Droplet) -> None:
    """End a droplet: its bill, its machine, its hold on volumes. Its snapshots and volumes stay, and bill."""
    _leave(state, droplet, state.now)
    state.bill.close("droplet", str(droplet.droplet_id), state.now)


def _leave(state: State, droplet: Droplet, at: float) -> None:
    droplet.gone_at = at
    if droplet.pending is not None and not (droplet.pending.kind == "snapshot" and state.behaviour.late_snapshots):
        droplet.pending.end(at, "errored")
    droplet.pending = None
    for volume in state.volumes.values():
        if volume.droplet_id == droplet.droplet_id:
            volume.droplet_id = None
    key = (droplet.size.slug, droplet.region)
    if key in state.behaviour.capacity:
        state.behaviour.capacity[key] += 1
    state.machines.stop(droplet)


def occupy(state: State, droplet: Droplet, kind: str, lasts_s: float, becomes: str | None = None) -> Action:
    """Begin an event on a droplet, which is locked until it ends and then has this status; one at a time."""
    if droplet.pending is not None:
        raise refusal(422, PENDING_EVENT)
    action = state.begin(kind, "droplet", droplet.droplet_id, droplet.region)
    droplet.pending, droplet.locked = action, True
    fate = state.behaviour.action_fate(kind)
    if fate == "errored":
        state.at(state.now + lasts_s, lambda at: _finish(droplet, action, at, "errored"))
    elif fate == "stuck":
        state.at(state.now + HELD_MAX_S, lambda _at: _let_go(droplet, action))
    else:
        state.at(state.now + lasts_s, lambda at: _complete(state, droplet, action, at, becomes))
    return action


def _complete(state: State, droplet: Droplet, action: Action, at: float, becomes: str | None) -> None:
    if action.status != "in-progress":
        return
    _finish(droplet, action, at)
    if becomes is not None and becomes != droplet.status:
        (state.machines.halt if becomes == "off" else state.machines.wake)(droplet)
        droplet.status = becomes


def take_snapshot(state: State, droplet: Droplet, name: str) -> Action:
    """Copy the boot disk, untagged; as long as there is data. No volume and no scratch disk is in it."""
    size_gb = state.behaviour.used_gb.get(droplet.name, droplet.image.size_gb)
    lasts_s = size_gb * state.behaviour.delays.snapshot_s_per_gb
    action = occupy(state, droplet, "snapshot", lasts_s)
    state.at(state.now + lasts_s, lambda at: _keep_snapshot(state, droplet, action, (name, size_gb), at))
    return action


def _keep_snapshot(state: State, droplet: Droplet, action: Action, what: tuple[str, float], at: float) -> None:
    # A snapshot whose droplet is gone ends here, and not with the droplet's own event.
    if action.status == "in-progress" and droplet.gone_at is not None:
        action.end(at)
    if action.status != "completed":
        return
    name, size_gb = what
    image_id = state.next_id()
    snapshot = Image(image_id, name, None, [droplet.region], at, droplet.size.disk_gib, size_gb, "snapshot")
    snapshot.droplet_id, snapshot.foreign = droplet.droplet_id, droplet.foreign
    snapshot.vendor = droplet.image.vendor
    state.machines.keep(droplet, snapshot)
    state.keep_image(snapshot)
