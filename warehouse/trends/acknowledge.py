"""Acknowledge an event: a note, and perhaps another state, stored beside its judgement, which stays."""

import re
from pathlib import Path

from bench.errors import UsageError
from bench.trends.judgement import Acknowledgement
from nights.durable import make_folder, write_text
from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import STAGING, one_loader, writing
from warehouse.lake.query import ask
from warehouse.lake.swap import swap_in
from warehouse.trends.kept import ACKNOWLEDGED, stage_acknowledgements

_KNOWN = "SELECT DISTINCT event_id FROM change_points ORDER BY event_id"
_SERIES = "SELECT count(*) FROM changes WHERE event_id = ?"


def acknowledge(data: Path, said: Acknowledgement) -> int:
    """Store an acknowledgement; returns how many series the event has. UsageError if there is no such event."""
    events = [row[0] for row in ask(data, _KNOWN).rows]
    if said.event_id not in events:
        raise UsageError(f"no event {said.event_id!r}: `nightbench trends` lists the reported events, by event_id")
    with writing(data / ACKNOWLEDGED), one_loader(data) as lake:
        make_folder(data / ACKNOWLEDGED)
        stamp = re.sub(r"\W", "", said.acknowledged_at.isoformat())
        path = data / ACKNOWLEDGED / f"{stamp}-{said.event_id}.json"
        write_text(path, said.model_dump_json(indent=1) + "\n")
        stage_acknowledgements(data, lake / STAGING)
        swap_in(lake)
        build_warehouse(data)
    return int(ask(data, _SERIES, (said.event_id,)).rows[0][0])
