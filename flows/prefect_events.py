"""Events of Prefect for what a deployed run finds, for automations that send it on; nothing waits for them.

`nightbench.` and the kind of the event is its name, such as `nightbench.night.finished`, with `.over` where it ended.
"""

from datetime import UTC, datetime
from uuid import uuid4

from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext

from flows.deployed import is_deployed
from infra.notices.book import Changed
from infra.notices.event import Event
from tasks.server_calls import post, responds

SENT_S = 10.0  # for the events of a short run, whose process ends after it
PREFIX = "nightbench."


def emit(event: Event, **details: str) -> None:
    """Have Prefect's server take an event, where this run was started through a deployment."""
    _emit(event.kind, event.key, {"title": event.title, "body": event.body, "urgency": event.urgency, **details})


def emit_changed(changed: Changed) -> None:
    """Have Prefect's server take what began and what is over, and wait a little until it has."""
    for event in changed.began:
        emit(event)
    for key, title in changed.over:
        _emit(f"{key.partition('/')[0]}.over", key, {"title": title})
    if is_deployed() and (changed.began or changed.over):
        responds(SENT_S)


def _emit(name: str, key: str, payload: dict[str, str]) -> None:
    context = FlowRunContext.get()
    if context is None or context.flow_run is None or not is_deployed():
        return
    body = {
        "id": str(uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": f"{PREFIX}{name}",
        "resource": {"prefect.resource.id": f"{PREFIX}{key}", "prefect.resource.name": payload["title"]},
        "related": [
            {
                "prefect.resource.id": f"prefect.flow-run.{context.flow_run.id}",
                "prefect.resource.role": "flow-run",
                "prefect.resource.name": context.flow_run.name,
            }
        ],
        "payload": payload,
    }

    def send() -> None:
        with get_client(sync_client=True) as client:
            client.request("POST", "/events", json=[body])

    post(f"the event {name}", send)
