"""One try at one scenario: what was asked, what was found, how it ended, and where it came from.

`record.json` in a run folder is one RunRecord; `night.json` beside the run folders is one NightRecord. Both are
written once and never edited. Missing is None, never 0 or "".
"""

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, Field

from bench.frozen import Frozen, StoredValue
from bench.host import HostFacts
from bench.host_use import HostUse
from bench.repeats import PlannedRepeats
from bench.server_facts import EndpointFacts, ServerFacts, Weights
from bench.suite.attach import NAME as ENDPOINT
from bench.suite.quality import LmEval, Quality
from bench.suite.scenario import Scenario
from bench.suite.slo import Slo
from bench.suite.suite import Suite

RECORD_VERSION = 1
# Raised by each entry of METHOD.md: a flag, a warm-up, a formula, anything that changes the numbers.
METHOD_VERSION = 4

Outcome = Literal["measured", "failed", "not-run"]


class LeaseFacts(StoredValue):
    """What was rented for this run, and at what price."""

    lease_id: str
    cloud: str
    machine_id: str
    usd_per_hour: float


AttemptOutcome = Literal["rented", "no-capacity", "over-limit", "refused", "vanished", "stuck", "unanswered"]


class LeaseAttempt(StoredValue):
    """One try to rent a machine, which is capacity history.

    `refused`: for another reason. `vanished`: it never came. `stuck`: never usable. `unanswered`: no reply, no machine.
    """

    started_at: AwareDatetime
    kind: str
    region: str | None
    is_spot: bool
    name: str
    attempt: int  # from 1
    outcome: AttemptOutcome
    reason: str | None  # None only of one that was rented
    machine_id: str | None
    usd_per_hour: float


class StageCost(StoredValue):
    """What one stage of a lease took and cost; `run` names the run that it belongs to, scenario_id/repeat."""

    stage: str
    run: str | None
    started_at: AwareDatetime
    ended_at: AwareDatetime | None  # None: it never ended, as far as is known
    usd: float | None  # None while it has no end


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
    """What of a night stands in a bucket: the hash of each run's manifest; and what does not, and why."""

    place: str | None = None
    runs: dict[str, str] = Field(default_factory=dict)
    missing: tuple[str, ...] = ()
    reason: str | None = None


class MachineEnd(StoredValue):
    """Why a night ended on one of its machines before all runs of that machine were measured."""

    stage: str | None
    reason: str


class NightEnd(MachineEnd):
    """Why a night ended before all of its runs were measured; of a night over several machines, why each of them did.

    A machine that is not in `machines` measured its runs.
    """

    machines: dict[str, MachineEnd] = Field(default_factory=dict)

    def of(self, machine: str | None) -> MachineEnd | None:
        """Why the runs of one machine are missing; None where nothing is known of it."""
        return self.machines.get(machine or "") if self.machines else self


class CalibratedLoad(StoredValue):
    """A load under which the load client's own error was measured and found small enough."""

    streams: int
    stream_tok_per_s: float
    workers: int
    is_tls: bool = False


class Calibration(StoredValue):
    """What a run's record keeps of its night's calibration; without an id there is none, and a reason why."""

    calibration_id: str | None = None
    hostname: str | None = None
    meter_version: str | None = None
    loads: tuple[CalibratedLoad, ...] = ()
    file_sha256: str | None = None  # of calibration.json in the night's folder
    reason: str | None = None


class Lineage(StoredValue):
    """Which code and which files made this record."""

    nightbench_version: str
    git_commit: str | None
    method_version: int = METHOD_VERSION
    suite_sha256: str
    snapshot: str | None = None  # None: not applicable on this target


class LoadRun(StoredValue):
    """What the load driver was asked and how it went; times are aware UTC."""

    driver: str
    driver_version: str | None
    argv: tuple[str, ...]
    seed: int
    exit_code: int | None


class Busy(StoredValue):
    """How busy the host was with other work: the load average of one minute, and CPU time stolen by a hypervisor."""

    load_average_before: float
    load_average_after: float
    steal_share: float | None


class Answers(StoredValue):
    """What a server answered to the questions of bench/quality/passage.py, asked alone; missing answers are None.

    `logprob_mean`: of the passage's tokens, in nats a token. `greedy`: the ids that followed each prompt.
    """

    logprob_mean: float | None = None
    logprob_tokens: int | None = None
    greedy: tuple[tuple[int, ...], ...] = ()
    lacking: str | None = None  # why something is missing


class Accuracy(StoredValue):
    """The answers of a server before its first and after its last load; `passage` is the version of the questions.

    Only the record of the last run on a server has `after`. Records of before 2026-11-22 have both, around each load.
    """

    passage: str
    before: Answers
    after: Answers | None = None  # None: not asked after this run, or the server had ended


class FailedStart(StoredValue):
    """A start of a server that failed and after which the same server was started once more, there or elsewhere."""

    server_id: str
    lease_id: str
    failed_at: datetime
    failure: str  # the class of the engine's failure
    reason: str  # with the line of its log that shows it


class RunRecord(StoredValue):
    """One try at one scenario. A failed or unstarted one has a stage and a reason, and nothing measured."""

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
    started_at: datetime
    ended_at: datetime
    asked: Scenario
    quality: Quality
    series_identity: tuple[str, ...] = ()  # what the suite declares to make another series
    slo: Slo | None = None  # what its requests were to keep; None: nothing was asked, or from before 2026-11-23
    host: HostFacts | None = None
    server: ServerFacts | None = None
    weights: Weights | None = None
    load: LoadRun | None = None
    busy: Busy | None = None
    host_use: HostUse | None = None  # None: of a run that failed before its load, or from before this was measured
    accuracy: Accuracy | None = None  # None: of a run that failed before, or from before this was asked
    lease: LeaseFacts | None = None
    calibration: Calibration | None = None  # None: of a night that did not calibrate its client
    lineage: Lineage
    failed_starts: tuple[FailedStart, ...] = ()  # of its server, before the start that this run used
    forced: tuple[str, ...] = ()  # why the night would have been refused without --force
    stage_s: dict[str, float] = Field(default_factory=dict)  # seconds spent in each stage of this run
    file_sha256: dict[str, str] = Field(default_factory=dict)  # each raw file beside this record

    @property
    def endpoint(self) -> EndpointFacts | None:
        """What was found of a server that is not ours; None of one that is."""
        return self.server.endpoint if self.server else None

    @property
    def usd_per_hour(self) -> float | None:
        """The price of the machine that served: of the lease, or of an endpoint, as its suite says; None if unknown."""
        if self.asked.engine.name == ENDPOINT:
            return self.endpoint.known.usd_per_hour if self.endpoint else None
        return self.lease.usd_per_hour if self.lease else None


class AskedTask(StoredValue):
    """One task that a server was asked, and how that ended; `measured` has its results in `<task>.json`."""

    task: str
    outcome: Outcome
    reason: str | None = None
    duration_s: float | None = None


class LmEvalRecord(StoredValue):
    """What a server was asked by lm-eval after its loads: `record.json` in a folder `lm-eval-<server_id>/0`."""

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
    """A night as planned: which runs, in which order, from which suite."""

    record_version: int = RECORD_VERSION
    night: str
    target: str
    started_at: datetime
    suite: Suite
    suite_sha256: str
    seed: int
    runs: tuple[PlannedRun, ...]
    forced: tuple[str, ...] = ()  # why it would have been refused without --force
    applied: tuple[str, ...] = ()  # what --apply-rules changed of the suite's engines
    budget_shares: dict[str, float] = Field(default_factory=dict)  # of the suite's budget, by machine, of several
    rerun_of: str | None = None  # the night whose suspect scenarios this one measures again
    repeats: tuple[PlannedRepeats, ...] = ()  # how many were chosen, of a suite with repeats = "plan"
