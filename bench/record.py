"""The records of a night, written once and never edited; missing is None, never 0 or "".

`record.json` in a run folder is one RunRecord; `night.json` beside the run folders is one NightRecord.
"""

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, Field

from bench.frozen import Frozen, StoredValue
from bench.host import HostFacts
from bench.host_use import Busy, HostUse
from bench.repeats import PlannedRepeats
from bench.server_facts import EndpointFacts, ServerFacts, Weights
from bench.suite.attach import NAME as ENDPOINT
from bench.suite.expectations import TableExpectations
from bench.suite.quality import LmEval, Quality
from bench.suite.scenario import Scenario
from bench.suite.slo import Slo
from bench.suite.suite import Suite
from bench.suite.target import Target, parse_target

RECORD_VERSION = 1
# Raised by each entry of METHOD.md: a flag, a warm-up, a formula, anything that changes the numbers.
METHOD_VERSION = 4

Outcome = Literal["measured", "failed", "not-run"]
AttemptOutcome = Literal["rented", "no-capacity", "over-limit", "refused", "vanished", "stuck", "unanswered"]


class LeaseFacts(StoredValue):
    """The machine that was rented for this run, and its price."""

    lease_id: str
    cloud: str
    machine_id: str
    usd_per_hour: float


class LeaseAttempt(StoredValue):
    """One attempt to rent a machine: the history of the cloud's capacity.

    `refused`: for another reason. `vanished`: it never came. `stuck`: never usable. `unanswered`: no reply, no machine.
    """

    started_at: AwareDatetime
    kind: str
    region: str | None
    is_spot: bool
    name: str
    attempt: int  # from 1
    outcome: AttemptOutcome
    reason: str | None  # None only if a machine was rented
    machine_id: str | None
    usd_per_hour: float


class StageCost(StoredValue):
    """The time and the cost of one stage of a lease; `run` is the run that it belongs to, as scenario_id/repeat."""

    stage: str
    run: str | None
    started_at: AwareDatetime
    ended_at: AwareDatetime | None  # None: no end is recorded
    usd: float | None  # None: it has no end


class LeaseReport(LeaseFacts):
    """The record of one rental in a night's folder; None where a value is unknown."""

    machine: str | None = None  # its name in a suite of several machines
    kind: str | None = None
    region: str | None = None
    is_spot: bool | None = None
    attempts: tuple[LeaseAttempt, ...] = ()
    stages: tuple[StageCost, ...] = ()
    rented_at: AwareDatetime | None = None
    released_at: AwareDatetime | None = None
    usd: float | None = None


class Uploads(StoredValue):
    """What of a night is in a bucket: the hash of each run's manifest and own file; and what is missing, and why.

    `files` has the hashes that were equal here and there after the last upload or fetch, to see which side changed
    later.
    """

    place: str | None = None
    runs: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    missing: tuple[str, ...] = ()
    reason: str | None = None


class MachineEnd(StoredValue):
    """Why a night ended on one of its machines before all runs of that machine were measured."""

    stage: str | None
    reason: str
    ending: str | None = None  # `No capacity` or `Out of budget`; None: a person must act, or from before 2026-11-25


class NightEnd(MachineEnd):
    """Why a night ended before all of its runs were measured; with several machines, the reason of each.

    A machine that is not in `machines` measured its runs.
    """

    machines: dict[str, MachineEnd] = Field(default_factory=dict)

    def of(self, machine: str | None) -> MachineEnd | None:
        """Return why the runs of one machine are missing; None if no reason is recorded."""
        return self.machines.get(machine or "") if self.machines else self


class CalibratedLoad(StoredValue):
    """A load at which the load client's own error was measured and is within its limit."""

    streams: int
    stream_tok_per_s: float
    workers: int
    is_tls: bool = False
    client_hosts: int = 0


class Calibration(StoredValue):
    """The part of the night's calibration that applies to a run; without an id there is a reason instead."""

    calibration_id: str | None = None
    hostname: str | None = None
    meter_version: str | None = None
    loads: tuple[CalibratedLoad, ...] = ()
    file_sha256: str | None = None  # of calibration.json in the night's folder
    reason: str | None = None


class Lineage(StoredValue):
    """The code and the files that this record comes from."""

    nightbench_version: str
    git_commit: str | None
    method_version: int = METHOD_VERSION
    suite_sha256: str
    snapshot: str | None = None  # None: not applicable on this target


class LoadRun(StoredValue):
    """The load driver's command, its times in aware UTC, and how it ended."""

    driver: str
    driver_version: str | None
    argv: tuple[str, ...]
    seed: int
    exit_code: int | None
    request_count: int | None = None  # of a load that is sized by its time; None: as the suite has it


class Answers(StoredValue):
    """A server's answers to the questions of bench/quality/passage.py, without other load; a missing answer is None.

    `logprob_mean`: of the passage's tokens, in nats a token. `greedy`: the ids that followed each prompt.
    """

    logprob_mean: float | None = None
    logprob_tokens: int | None = None
    greedy: tuple[tuple[int, ...], ...] = ()
    lacking: str | None = None  # why an answer is missing


class Accuracy(StoredValue):
    """A server's answers before its first and after its last load; `passage` is the version of the questions.

    Only the record of the last run on a server has `after`. Records of before 2026-11-22 have both, around each load.
    """

    passage: str
    before: Answers
    after: Answers | None = None  # None: not the last run of the server, or it had exited


class FailedStart(StoredValue):
    """A failed start of a server that was then started again, on the same machine or on another."""

    server_id: str
    lease_id: str
    failed_at: datetime
    failure: str  # the class of the engine's failure
    reason: str  # with the line of its log that shows it


class RunRecord(StoredValue):
    """One run of one scenario. If it failed or was not started, it has a stage and a reason, and no measurements."""

    record_version: int = RECORD_VERSION
    night: str
    suite: str
    scenario_id: str
    server_id: str
    repeat: int
    order: int  # place in the night, from 0
    outcome: Outcome
    stage: str | None = None
    reason: str | None = None
    failure: str | None = None  # the class of an engine's failure; None: of another failure, or from before 2026-11-22
    traceback: str | None = None  # of an exception that nothing expects; None: of a known failure
    started_at: datetime
    ended_at: datetime
    asked: Scenario
    quality: Quality
    series_identity: tuple[str, ...] = ()  # what the suite declares to make another series
    slo: Slo | None = None  # the limits of its requests; None: no limits, or from before 2026-11-23
    host: HostFacts | None = None
    server: ServerFacts | None = None
    weights: Weights | None = None
    load: LoadRun | None = None
    busy: Busy | None = None
    host_use: HostUse | None = None  # None: failed before its load, or from before this was measured
    power_caps_w: tuple[float, ...] = ()  # of each GPU, as read back before the load; empty: the suite sets none
    adapters_like_base: tuple[str, ...] | None = None  # that answer as the base model; None: not compared
    accuracy: Accuracy | None = None  # None: failed before, or from before this was measured
    lease: LeaseFacts | None = None
    calibration: Calibration | None = None  # None: the night did not calibrate its client
    lineage: Lineage
    failed_starts: tuple[FailedStart, ...] = ()  # of its server, before the start that this run used
    forced: tuple[str, ...] = ()  # why the night would be refused without --force
    stage_s: dict[str, float] = Field(default_factory=dict)  # seconds spent in each stage of this run
    file_sha256: dict[str, str] = Field(default_factory=dict)  # each raw file beside this record

    @property
    def endpoint(self) -> EndpointFacts | None:
        """The facts of a server that Nightbench did not start; None if it started the server."""
        return self.server.endpoint if self.server else None

    @property
    def usd_per_hour(self) -> float | None:
        """The hourly price of the serving machine, from the lease or from the suite's endpoint; None if unknown."""
        if self.asked.engine.name == ENDPOINT:
            return self.endpoint.known.usd_per_hour if self.endpoint else None
        return self.lease.usd_per_hour if self.lease else None


class AskedTask(StoredValue):
    """One lm-eval task on a server, and how it ended; if it was measured, `<task>.json` has its results."""

    task: str
    outcome: Outcome
    reason: str | None = None
    duration_s: float | None = None


class LmEvalRecord(StoredValue):
    """The lm-eval tasks on a server after its loads: `record.json` in a folder `lm-eval-<server_id>/0`."""

    record_version: int = RECORD_VERSION
    night: str
    suite: str
    server_id: str
    started_at: datetime
    ended_at: datetime
    asked: LmEval
    tasks: tuple[AskedTask, ...]
    folder_sha256: str | None = None  # over every file of the suite's own folder of tasks
    file_sha256: dict[str, str] = Field(default_factory=dict)  # each raw file beside this record


class PlannedRun(Frozen):
    """One scenario and repeat, at its place in the night."""

    order: int
    repeat: int
    scenario: Scenario


class NightRecord(StoredValue):
    """The plan of a night: its runs, their order, and their suite."""

    record_version: int = RECORD_VERSION
    night: str
    target: str
    started_at: datetime
    suite: Suite
    suite_sha256: str
    seed: int
    runs: tuple[PlannedRun, ...]
    forced: tuple[str, ...] = ()  # why it would be refused without --force
    applied: tuple[str, ...] = ()  # what --apply-rules changed of the suite's engines
    budget_shares: dict[str, float] = Field(default_factory=dict)  # of the suite's budget, by machine, of several
    rerun_of: str | None = None  # the night whose suspect scenarios this one measures again
    expectations: tuple[TableExpectations, ...] = ()  # of its tables, as the suite's own file has them
    repeats: tuple[PlannedRepeats, ...] = ()  # how many were chosen, of a suite with repeats = "plan"

    @property
    def where(self) -> Target:
        """The target as a value."""
        return parse_target(self.target)
