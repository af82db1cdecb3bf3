"""A cloud behind four scripts. A machine's name travels through them: `rent` gets it and `list` returns it.

A script may fail, hang or print anything: whatever it printed, a machine counts as rented or gone by `list` alone, and
`release` gets only ids that `list` has just shown under a name of ours, or under the wrong name that a new machine had.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, NoReturn

from bench.errors import (
    CloudDeniedError,
    CloudError,
    CloudLimitError,
    CloudRefusedError,
    LostReplyError,
    NoCapacityError,
    NotAskedError,
)
from bench.machine.names import PREFIX, MachineName, is_alike
from infra.clock import Clock
from infra.clouds.cloud import CloudMachine, Leftover, MachineOrder, MisnamedMachineError, Offer
from infra.clouds.command.replies import Listing, Offers, Rented, machines_of, offers_of, parse, shorten
from infra.clouds.command.scripts import Scripts
from infra.remote.ssh_keys import LeaseKeys, keys_of

NAME = "command"
SAME_LOOK_S = 1.0  # an account of many machines is not listed three times for one look
_REFUSALS = {"no-capacity": NoCapacityError, "limit": CloudLimitError, "request": CloudRefusedError}


@dataclass(frozen=True)
class CommandSetup:
    """How machines are named and booted, and how long after its start a `rent` may still show a machine in `list`."""

    keys: Path
    first_boot: Callable[[MachineName, LeaseKeys], str]  # builds a machine's user_data
    prefix: str = PREFIX
    settle_s: float = 120.0


class CommandCloud:
    """A team's own cloud."""

    name = NAME
    is_shared = True

    def __init__(self, scripts: Scripts, clock: Clock, setup: CommandSetup) -> None:
        self.prefix = setup.prefix
        self.settle_s = setup.settle_s
        self._scripts = scripts
        self._clock = clock
        self._setup = setup
        self._listed: tuple[Listing, float] | None = None  # and when, on the monotonic clock
        self._has_changed = False  # since then, by a script that we ran
        self._misnamed: dict[str, tuple[str, str]] = {}  # by id: the name that `list` shows, and the one that we gave

    def now(self) -> datetime:
        """The time that `list` last stated, and what has passed since; else this computer's time."""
        listing, at_s = self._last()
        if listing.now is None:
            return self._clock.now()
        return listing.now + timedelta(seconds=self._clock.monotonic() - at_s)

    def account(self) -> str:
        """The account that `list` states; else the folder, since other scripts may show nothing of a machine."""
        listing, _ = self._last()
        return listing.account or str(self._scripts.folder.resolve())

    def _last(self) -> tuple[Listing, float]:
        return self._listed or self._list()

    def _list(self) -> tuple[Listing, float]:
        text = self._scripts.run("list", {"prefix": self.prefix})
        self._listed = parse(Listing, text, str(self._scripts.path("list"))), self._clock.monotonic()
        self._has_changed = False
        return self._listed

    def _machines(self) -> list[CloudMachine]:
        """Every machine that `list` shows, also those of others; looks that follow each other at once share a list."""
        listing, at_s = self._last()
        if self._has_changed or self._clock.monotonic() - at_s > SAME_LOOK_S:
            listing, _ = self._list()
        return machines_of(listing, str(self._scripts.path("list")))

    def _change(self, script: Literal["rent", "release"], given: Mapping[str, object]) -> str:
        self._has_changed = True
        return self._scripts.run(script, given)

    def offers(self) -> list[Offer]:
        """What the script offers."""
        text = self._scripts.run("offers", {})
        return offers_of(parse(Offers, text, str(self._scripts.path("offers"))).offers)

    def regions(self) -> list[str]:
        """Every region that an offer names."""
        return sorted({offer.region for offer in self.offers() if offer.region is not None})

    def rent(self, order: MachineOrder) -> CloudMachine:
        """Run `rent` once. Whatever it does but print a new machine of this name, or a refusal, is a lost reply."""
        before = {one.machine_id: one.name for one in self._before_rent()}
        who = self._scripts.path("rent")
        try:
            reply = parse(Rented, self._change("rent", self._given(order)), str(who))
        except (CloudDeniedError, NotAskedError):
            raise  # it was not started
        except CloudError as error:
            raise LostReplyError(f"{error}; `list` will show whether it rented a machine") from error
        if reply.machine is None:
            _refuse(reply, who)
        found, name = reply.machine.value(), str(order.name)
        if found.name.lower() != name or before.get(found.machine_id, name).lower() != name:
            theirs = before.get(found.machine_id, found.name)
            raise LostReplyError(
                f"{who} got the name {name} and returned machine {found.machine_id}, {shorten(theirs)!r}"
            )
        self._require_name(found)
        return found

    def _before_rent(self) -> list[CloudMachine]:
        """The machines before one is rented, which could not be found again without `list`."""
        try:
            return self._machines()
        except CloudDeniedError:
            raise
        except CloudError as error:
            raise NotAskedError(f"{error}; nothing is rented while `list` fails") from error

    def _given(self, order: MachineOrder) -> dict[str, object]:
        """What `rent` reads."""
        keys = keys_of(self._setup.keys, order.name.lease_id)
        return {
            "name": str(order.name),
            "kind": order.offer.kind,
            "region": order.offer.region,
            "is_spot": order.offer.is_spot,
            "image": order.image,
            "night": order.night,
            "expires_at": order.name.expires_at.isoformat() if order.name.expires_at else None,
            "ssh_public_key": keys.client_public,
            "user_data": self._setup.first_boot(order.name, keys),
        }

    def _require_name(self, rented: CloudMachine) -> None:
        """Raise MisnamedMachineError where `list` shows a new machine under another name."""
        listed = [rented]
        with suppress(CloudError):  # a denial too: the machine is rented, and an error would say that it is not
            listed = self._machines()
        shown = next((one for one in listed if one.machine_id == rented.machine_id), rented)
        if shown.name.lower() == rented.name.lower():
            return
        self._misnamed[rented.machine_id] = shown.name, rented.name
        raise MisnamedMachineError(
            f"{self._scripts.path('list')} shows the new machine {rented.machine_id} under the name "
            f"{shorten(shown.name)!r} and not {rented.name!r}, so Nightbench could not find it again: let `list` print "
            "the whole name",
            rented.machine_id,
        )

    def _given_name(self, found: CloudMachine) -> str | None:
        """The name that a listed machine got from Nightbench; None where it got none."""
        shown, given = self._misnamed.get(found.machine_id, (None, None))
        if found.name == shown:
            return given
        return None if MachineName.parse(found.name, self.prefix) is None else found.name

    def find_by_id(self, machine_id: str) -> CloudMachine | None:
        """The machine of this id, if its name is one of ours, or `rent` has just returned it."""
        found = next((one for one in self._machines() if one.machine_id == machine_id), None)
        is_ours = found and (machine_id in self._misnamed or is_alike(found.name, (), self.prefix))
        return found if is_ours else None

    def find(self, name: str) -> list[CloudMachine]:
        """Every machine of this name; lowest id first."""
        return [found for found in self._machines() if found.name.lower() == name.lower()]

    def find_ours(self) -> list[CloudMachine]:
        """Every machine whose name has our prefix."""
        return [found for found in self._machines() if is_alike(found.name, (), self.prefix)]

    def release(self, machine_id: str) -> None:
        """Run `release` for a machine that `list` shows under a name of ours; do nothing where it shows no such id.

        Raises CloudError where it has another name, since it may be another team's then.
        """
        found = next((one for one in self._machines() if one.machine_id == machine_id), None)
        if found is None:
            return
        name = self._given_name(found)
        if name is None:
            raise CloudError(
                f"{self._scripts.path('list')} shows machine {machine_id} under the name {shorten(found.name)!r}, "
                "which Nightbench did not give, so it is not released: let `list` print the name that `rent` got, or "
                "release the machine yourself if it is yours"
            )
        self._change("release", {"id": machine_id, "name": name})

    def leftovers(self) -> list[Leftover]:
        """None: only machines are created."""
        return []

    def remove(self, leftover: Leftover) -> None:
        """Do nothing: there is no leftover."""


def _refuse(reply: Rented, who: Path) -> NoReturn:
    why = shorten(reply.reason) or "without a reason"
    raise _REFUSALS[str(reply.refused)](f"{who} rented nothing ({reply.refused}): {why}")
