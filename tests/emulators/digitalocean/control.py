"""The emulator's own calls under /__emu/, for processes that did not start it; no token, no limit, no fault."""

import json
from dataclasses import asdict
from typing import Any

from tests.emulators.digitalocean.api import Api
from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.faults import Fault
from tests.emulators.digitalocean.invariant import breaches
from tests.emulators.digitalocean.replies import Reply, Request, refuse

PREFIX = "/__emu/"


def answer(api: Api, request: Request) -> Reply:
    """GET ledger, requests, droplets or invariant; POST fault with its fields as JSON; POST jump {seconds}."""
    with api.lock:
        api.state.advance(api.now_s())
        asked = {"GET": _shown, "POST": _done}.get(request.method)
        body = None if asked is None else asked(api, request)
        return Reply(200, body) if body is not None else refuse(404, "no such control")


def _shown(api: Api, request: Request) -> Json | None:
    now = api.state.now
    what = request.path.removeprefix(PREFIX)
    if what == "ledger":
        return {"now": now, "intervals": [asdict(one) | {"usd": one.usd(now)} for one in api.state.bill.intervals]}
    if what == "requests":
        return {"requests": [asdict(logged) for logged in api.log]}
    if what == "droplets":
        return {"droplets": [api.state.droplet_json(one, now) for one in api.state.living()]}
    if what == "invariant":
        return {"breaches": breaches(api.state, now, request.query.get("prefix", "nb"))}
    return None


def _done(api: Api, request: Request) -> Json | None:
    body: dict[str, Any] = json.loads(request.raw or b"{}")
    what = request.path.removeprefix(PREFIX)
    if what == "fault":
        api.plan.faults.append(Fault(**body))
        return {}
    if what == "jump":
        api.pass_s(float(body["seconds"]))
        api.state.advance(api.now_s())
        return {}
    return None
