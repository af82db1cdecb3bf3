"""Whether a flow run on another computer still lives: by the heartbeats that its own process sends to the server.

A worker reports the process that it starts, and does not say when its computer is gone. Prefect's engine emits a
heartbeat from a thread of that process, so one that outlived its worker is seen to live.
"""

from dataclasses import dataclass
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.events.filters import EventFilter, EventNameFilter, EventResourceFilter

SILENCE_S = 150.0  # without a heartbeat, of which `prefect.yaml` sets one each 30 s


@dataclass
class Pulse:
    """What was heard of one flow run: its newest heartbeat, and when it was first seen, by this computer's clock."""

    since_s: float
    newest: UUID | None = None

    def is_lost(self, newest: UUID | None, now_s: float) -> bool:
        """Whether nothing new has been heard for so long; `newest` is the newest heartbeat that the server has."""
        if newest != self.newest:
            self.newest, self.since_s = newest, now_s
        return now_s - self.since_s > SILENCE_S

    def pause(self, now_s: float) -> None:
        """Count from now on: the server did not respond, so it could get no heartbeat either."""
        self.since_s = now_s


def newest_heartbeat(client: SyncPrefectClient, run: UUID) -> UUID | None:
    """The newest heartbeat of a flow run; None where the server has none."""
    of_run = EventFilter(
        event=EventNameFilter(name=["prefect.flow-run.heartbeat"]),
        resource=EventResourceFilter(id=[f"prefect.flow-run.{run}"]),
    )
    return next((event.id for event in client.read_events(of_run, limit=1).events), None)
