"""Which function answers which call, and what a token must be allowed for it."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.replies import Reply, Request, not_found, refusal
from tests.emulators.digitalocean.resources import Droplet
from tests.emulators.digitalocean.views import is_visible
from tests.emulators.digitalocean.world import State

PARTS = {"droplet_id": r"\d+", "action_id": r"\d+"}


@dataclass
class Call:
    """One admitted call: the account, the request, and the parts of its path."""

    state: State
    request: Request
    base: str  # the emulator's own address, for links
    parts: dict[str, str] = field(default_factory=dict)

    @property
    def now(self) -> float:
        return self.state.now

    def body(self) -> Json:
        try:
            body: Any = json.loads(self.request.raw or b"{}")
        except ValueError as error:
            raise refusal(400, "error parsing request body") from error
        if not isinstance(body, dict):
            raise refusal(400, "error parsing request body")
        return body

    def droplet(self) -> Droplet:
        """The droplet of this path, where the view by id knows it."""
        droplet = self.state.droplets.get(int(self.parts["droplet_id"]))
        if droplet is None or not is_visible(self.state, "get", droplet, self.now):
            raise not_found()
        return droplet

    def living_droplet(self) -> Droplet:
        """The droplet of this path, to change it; a view that lags does not keep anybody from that."""
        droplet = self.state.droplets.get(int(self.parts["droplet_id"]))
        if droplet is None or droplet.gone_at is not None:
            raise not_found()
        return droplet


Answer = Callable[[Call], Reply]


@dataclass(frozen=True)
class Route:
    method: str
    template: str
    scope: str
    answer: Answer
    pattern: re.Pattern[str]


ROUTES: list[Route] = []


def route(method: str, template: str, scope: str) -> Callable[[Answer], Answer]:
    """Register the function that answers a call; of two routes that fit, the one registered first wins."""
    pattern = re.compile(re.sub(r"{(\w+)}", lambda part: f"(?P<{part[1]}>{PARTS.get(part[1], '[^/]+')})", template))

    def register(answer: Answer) -> Answer:
        ROUTES.append(Route(method, template, scope, answer, pattern))
        return answer

    return register


def find(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    for candidate in ROUTES:
        fits = candidate.pattern.fullmatch(path)
        if candidate.method == method and fits is not None:
            return candidate, fits.groupdict()
    return None
