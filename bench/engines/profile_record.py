"""The record of a profiler's trace: `record.json` in a folder `profile-<scenario>/0`, with the trace beside it."""

from datetime import datetime

from pydantic import Field

from bench.frozen import StoredValue
from bench.record import RECORD_VERSION
from bench.suite.scenario import Scenario


class ProfileRecord(StoredValue):
    """What was traced of a scenario, or why nothing was; nothing of it is in a measurement."""

    record_version: int = RECORD_VERSION
    night: str
    scenario_id: str
    scenario: Scenario  # as it was measured
    requests: int
    started_at: datetime
    ended_at: datetime
    traces: tuple[str, ...] = ()  # files beside this record: gzipped JSON, which ui.perfetto.dev opens
    reason: str | None = None  # why there is no trace, or not all of it
    file_sha256: dict[str, str] = Field(default_factory=dict)  # each raw file beside this record
