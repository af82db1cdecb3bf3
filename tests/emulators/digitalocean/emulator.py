"""A DigitalOcean on loopback: started, told what to do wrong, and asked what it billed."""

import secrets
import tempfile
import threading
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from infra.clock import Clock, SystemClock
from tests.emulators.digitalocean import control, droplet_life, judge, metadata, server
from tests.emulators.digitalocean.api import ALL_SCOPES, Api, Logged
from tests.emulators.digitalocean.behaviour import FATES, Behaviour, Delays
from tests.emulators.digitalocean.billing import Interval
from tests.emulators.digitalocean.faults import Fault
from tests.emulators.digitalocean.invariant import breaches
from tests.emulators.digitalocean.replies import Reply, Request
from tests.emulators.digitalocean.resources import Droplet, Image, Key, Volume
from tests.emulators.digitalocean.routes.volumes import accept as accept_volume
from tests.emulators.digitalocean.routing import Call
from tests.emulators.digitalocean.world import Machines, PaperMachines, State, base_images

TICK_S = 0.2


class Emulator:
    """A context manager. Give it a virtual clock, or let it run on the wall's with every duration divided by `speed`.

    On the way out it raises AssertionError for all that it heard and said against the API's description;
    `by_description=False`: only the facts that stand here judge, which takes less time.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        tls: bool = True,
        speed: float = 1.0,
        droplets: Machines | None = None,
        by_description: bool = True,
    ) -> None:
        self.clock = clock or SystemClock()
        self.is_virtual = not isinstance(self.clock, SystemClock)
        self.token = "dop_v1_" + secrets.token_hex(32)
        self.machines = droplets or PaperMachines()
        behaviour = Behaviour(delays=Delays().scaled(speed))
        behaviour.lag["tags"] /= speed
        self.state = State(behaviour=behaviour, machines=self.machines)
        base_images(self.state, self._now_s())
        self.api = Api(self.state, self._now_s, self._pass, tokens={self.token: ALL_SCOPES})
        self.api.limiter.speed = speed
        self.judge = judge.Judge(by_description=by_description)
        self.api.observe = self.judge.see
        self._folder = tempfile.TemporaryDirectory(prefix="do-emulator-")
        context, self.ca = server.tls(Path(self._folder.name)) if tls else (None, Path())
        self._server = server.Server(self._answer, context)
        self._closed = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        scheme = "https" if tls else "http"
        self.url = self.api.base = f"{scheme}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._server.start()
        if not self.is_virtual:
            self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._server.stop()
        with self.api.lock:
            for droplet in self.state.living():
                self.machines.stop(droplet)
        self._folder.cleanup()
        if kind is None:
            self.judge.rule()

    def _tick(self) -> None:
        """Let things happen on time that nobody asks about: a spot machine is taken away under a silent client."""
        while not self._closed.wait(TICK_S):
            self.settle()

    def _now_s(self) -> float:
        return self.clock.now().timestamp()

    def _pass(self, seconds: float) -> None:
        if self.is_virtual:
            self.clock.sleep(seconds)

    def _answer(self, request: Request) -> Reply:
        if request.path.startswith(control.PREFIX):
            return control.answer(self.api, request)
        return self.api.answer(request)

    @property
    def behaviour(self) -> Behaviour:
        return self.state.behaviour

    @property
    def capacity(self) -> dict[tuple[str, str], int]:
        """How many more droplets of (size, region) fit; what is not named has no end."""
        return self.state.behaviour.capacity

    @property
    def lag(self) -> dict[str, float]:
        """How many seconds late get, list, tag_list and name_list know a new droplet, and tags are applied."""
        return self.state.behaviour.lag

    def sell(self, size: str, **changed: Any) -> None:
        """Change what a size says of itself: usd_per_hour, regions, available."""
        self.state.sizes[size] = replace(self.state.sizes[size], **changed)

    def fault(self, method: str, path: str, **fields: Any) -> Fault:
        """Plan a fault: nth, times, phase, status, body, retry_after; `path` is a regular expression for all of it."""
        fault = Fault(method, path, **{"phase": "before", **fields})
        with self.api.lock:
            self.api.plan.faults.append(fault)
        return fault

    def fate(self, *fates: str) -> None:
        """What becomes of the next creates that are answered with 202, one each; "" is a good one."""
        if not set(fates) <= FATES | {""}:
            raise ValueError(f"no such fate among {fates}")
        self.state.behaviour.fates.extend(fates)

    def hide(self, view: str, seconds: float) -> None:
        """Let a view know no droplet at all for a while."""
        self.state.behaviour.hidden_until[view] = self._now_s() + seconds

    def add_token(self, *scopes: str) -> str:
        """A token that may do only this."""
        token = "dop_v1_" + secrets.token_hex(32)
        self.api.tokens[token] = frozenset(scopes)
        return token

    def add_account(self, team: str) -> str:
        """The token of another account, which is empty and sees nothing of this one."""
        state = State(behaviour=self.state.behaviour, account={"team": {"uuid": team, "name": "Another Team"}})
        state.share_ids(self.state)
        base_images(state, self._now_s())
        token = self.add_token(*ALL_SCOPES)
        self.api.others[token] = state
        return token

    def revoke(self, token: str) -> None:
        self.api.tokens.pop(token, None)

    def later(self, after_s: float, happens: Callable[[], None]) -> None:
        """Let something happen when so many seconds have passed on the emulator's clock."""
        with self.api.lock:
            self.state.advance(self._now_s())
            self.state.at(self.state.now + after_s, lambda _at: happens())
            self.state.advance(self._now_s())

    def reclaim(self, droplet_id: int, after_s: float = 0.0) -> None:
        """Take a spot droplet back, as the cloud does: with no word in the API."""
        self.later(after_s, lambda: self._take_back(self.state.droplets[droplet_id]))

    def reclaim_all(self) -> None:
        """Take every droplet back that is not foreign."""
        for droplet in self.state.living():
            if not droplet.foreign:
                self._take_back(droplet)

    def _take_back(self, droplet: Droplet) -> None:
        if droplet.gone_at is None:
            droplet_life.destroy(self.state, droplet)

    def settle(self) -> None:
        """Let everything happen that is due now."""
        with self.api.lock:
            self.state.advance(self._now_s())

    def ledger(self) -> list[Interval]:
        """Every interval that was or is billed."""
        self.settle()
        return list(self.state.bill.intervals)

    def usd(self, prefix: str = "") -> float:
        """What everything whose name begins so has cost until now."""
        self.settle()
        return self.state.bill.usd(self.state.now, prefix)

    def requests(self, method: str | None = None, path: str | None = None) -> list[Logged]:
        """Every call so far, or those of one method and path."""
        return [one for one in self.api.log if method in {None, one.method} and path in {None, one.path}]

    def living(self, prefix: str = "") -> list[Droplet]:
        """The droplets that exist, whatever the views say."""
        self.settle()
        return [droplet for droplet in self.state.living() if droplet.name.startswith(prefix)]

    def breaches(self, prefix: str = "nb", *, kept: Collection[str] = (), budget_usd: float | None = None) -> list[str]:
        self.settle()
        return breaches(self.state, self.state.now, prefix, kept=kept, budget_usd=budget_usd)

    def invariant(self, prefix: str = "nb", *, kept: Collection[str] = (), budget_usd: float | None = None) -> None:
        """Raise AssertionError with a sentence for everything of ours that leaks and all foreign that was touched."""
        found = self.breaches(prefix, kept=kept, budget_usd=budget_usd)
        if found:
            raise AssertionError("; ".join(found))

    def plant_droplet(
        self,
        name: str = "somebody-elses",
        *,
        size: str = "gpu-mi300x1-192gb",
        tags: Collection[str] = (),
        foreign: bool = True,
    ) -> Droplet:
        """Put an active droplet into the account; a foreign one must never be touched."""
        with self.api.lock:
            self.state.advance(self._now_s())
            image = next(iter(self.state.images.values()))
            kind = self.state.sizes[size]
            droplet = Droplet(
                self.state.next_id(), name, kind, kind.regions[0], image, self.state.now, list(tags), self.state.now
            )
            droplet.foreign, droplet.status = foreign, "active"
            droplet_life.accept(self.state, droplet).end(self.state.now)
            droplet.address = PaperMachines().start(droplet, [])
            return droplet

    def metadata_of(self, droplet: Droplet) -> AbstractContextManager[str]:
        """Serve what a droplet can ask about itself; yields `host:port`."""
        return metadata.serving(self.state, droplet, self.api.lock)

    def plant_key(self, name: str, public_key: str, *, foreign: bool = True) -> Key:
        with self.api.lock:
            key = Key(self.state.next_id(), name, public_key, foreign)
            self.state.keys[key.key_id] = key
            return key

    def plant_volume(self, name: str, *, region: str = "atl1", size_gib: int = 100, foreign: bool = True) -> Volume:
        with self.api.lock:
            self.state.advance(self._now_s())
            volume = Volume(self.state.new_uuid(), name, region, size_gib, self.state.now, foreign=foreign)
            accept_volume(Call(self.state, Request("POST", "", {}, {}), self.url), volume)
            return volume

    def plant_snapshot(self, name: str, *, size_gb: float = 50.0, foreign: bool = True) -> Image:
        with self.api.lock:
            self.state.advance(self._now_s())
            now = self.state.now
            image = Image(self.state.next_id(), name, None, ["atl1"], now, 720, size_gb, "snapshot", foreign=foreign)
            image.droplet_id = self.state.next_id()
            self.state.keep_image(image)
            return image
