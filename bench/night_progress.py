"""What a night does at the moment: its events, and the state that they add up to, for a terminal and for Prefect.

Times are seconds on one monotonic clock.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import AwareDatetime

from bench.frozen import StoredValue

SERVER = "server"
_REPEAT = re.compile(r" #\d+$")


@dataclass(frozen=True)
class LoadProgress:
    """How far a load is; the requests and their rate are None where its driver does not report them."""

    share: float  # 0 to 1
    done: int | None = None  # requests that have ended, warm-up included
    planned: int | None = None
    output_tok_per_s: float | None = None  # of the requests that have ended, with the output length of the suite

    def __post_init__(self) -> None:
        """Raise ValueError for a share that is none."""
        if not 0 <= self.share <= 1:
            raise ValueError(f"{self.share} is not a share from 0 to 1")


@dataclass(frozen=True)
class NightBegan:
    """A night has a name: its missing runs by stage, and the expected seconds of each stage, where known."""

    night: str
    suite: str
    target: str
    runs: int
    missing: Mapping[str, int]  # by the title of their stage, without the repeat
    expected_s: Mapping[str, float]  # of one stage of this title
    machines: int = 1
    added: Mapping[str, int] = field(default_factory=dict)  # repeats that an earlier night added, by the same titles


@dataclass(frozen=True)
class StageBegan:
    """A stage began; `number` names it in later events."""

    number: int
    title: str
    at_s: float


@dataclass(frozen=True)
class StageEnded:
    """A stage ended, well or by an exception."""

    number: int
    at_s: float
    is_failed: bool = False


@dataclass(frozen=True)
class StageReported:
    """A stage reported what it does in a line, or how far its load is; None: the stage that began last."""

    number: int | None
    line: str | None = None
    load: LoadProgress | None = None


@dataclass(frozen=True)
class Rented:
    """A machine is billed from now on; 0 USD/h for this computer and your own hosts."""

    lease_id: str
    kind: str
    usd_per_hour: float
    at_s: float


@dataclass(frozen=True)
class Released:
    """A machine is no longer billed."""

    lease_id: str
    usd: float


Event = NightBegan | StageBegan | StageEnded | StageReported | Rented | Released


@dataclass
class Stage:
    """One stage, from its beginning; `expected_s` is None where nothing is known of it."""

    title: str
    began_s: float
    expected_s: float | None = None
    ended_s: float | None = None
    is_failed: bool = False
    line: str = ""
    load: LoadProgress | None = None

    def elapsed_s(self, now_s: float) -> float:
        """How long it took, or has taken until now."""
        return (now_s if self.ended_s is None else self.ended_s) - self.began_s

    def how_far(self, now_s: float) -> str:
        """Its time, and how far its load is: 0:12 of about 0:30, 24 of 60 requests, 35 tok/s, 0:18 left."""
        expected = "" if self.expected_s is None else f" of about {clock(self.expected_s)}"
        load = self.load_in_words(now_s)
        return clock(self.elapsed_s(now_s)) + expected + (f", {load}" if load else "")

    def load_in_words(self, now_s: float) -> str:
        """How far its load is: 24 of 60 requests, 35 tok/s, 0:18 left; empty without one."""
        load, left = self.load, self.left_s(now_s)
        if load is None:
            return ""
        parts = [f"{load.done} of {load.planned} requests"] if load.planned else []
        parts += [f"{load.output_tok_per_s:,.0f} tok/s"] if load.output_tok_per_s else []
        parts += [f"{clock(left)} left"] if left is not None else []
        return ", ".join(parts)

    def left_s(self, now_s: float) -> float | None:
        """How long it may still take: by the share of its load that is done, else as expected."""
        if self.load is not None and self.load.share > 0:
            elapsed = self.elapsed_s(now_s)
            return elapsed / self.load.share - elapsed
        return None if self.expected_s is None else max(0.0, self.expected_s - self.elapsed_s(now_s))


@dataclass
class NightState:
    """The sum of a night's events."""

    began: NightBegan | None = None
    runs_done: int = 0
    stages: dict[int, Stage] = field(default_factory=dict)  # in the order of their beginning
    rented: dict[str, Rented] = field(default_factory=dict)  # what is billed now
    usd: float = 0.0  # of machines that are released

    def apply(self, event: Event) -> None:
        """Take one more event into account."""
        match event:
            case NightBegan():
                self._begin(event)
            case StageBegan():
                title = self._without_night(event.title)
                self.stages[event.number] = Stage(title, event.at_s, self.expected_s(title))
            case StageEnded() if event.number in self.stages:
                self._end(self.stages[event.number], event)
            case StageReported():
                self._report(event)
            case Rented():
                self.rented[event.lease_id] = event
            case Released():
                self.rented.pop(event.lease_id, None)
                self.usd += event.usd

    def copy(self) -> "NightState":
        """Return a state that later events leave as it is."""
        stages = {number: replace(stage) for number, stage in self.stages.items()}
        return replace(self, stages=stages, rented=dict(self.rented))

    def running(self) -> list[Stage]:
        """The stages that have not ended, in the order of their beginning."""
        return [stage for stage in self.stages.values() if stage.ended_s is None]

    def ended(self) -> list[Stage]:
        """The stages that have ended."""
        return [stage for stage in self.stages.values() if stage.ended_s is not None]

    def usd_until(self, now_s: float) -> float:
        """The cost until now, of what is and what was rented."""
        return self.usd + sum((now_s - one.at_s) / 3600 * one.usd_per_hour for one in self.rented.values())

    def expected_s(self, title: str) -> float | None:
        """Seconds of a stage of this title: the mean of its kind in this night, else what earlier nights took."""
        kind = kind_of(title)
        took = [one.elapsed_s(0) for one in self.ended() if kind_of(one.title) == kind and not one.is_failed]
        if took:
            return sum(took) / len(took)
        return self.began.expected_s.get(kind) if self.began else None

    def left_s(self, now_s: float) -> float | None:
        """Seconds until the night's end; None where a stage that is still to come was never timed."""
        if self.began is None:
            return None
        begun = [kind_of(stage.title) for stage in self.stages.values()]
        more = {} if _AT_THE_END.intersection(begun) else self.began.added
        counts = {kind: count + more.get(kind, 0) - begun.count(kind) for kind, count in self.began.missing.items()}
        once = {kind: 1 for kind in self.began.expected_s if kind in _AT_THE_END and kind not in begun}
        to_come = [(self.expected_s(kind), count) for kind, count in (counts | once).items() if count > 0]
        left = [stage.left_s(now_s) for stage in self.running()]
        seconds = [*left, *(None if each is None else each * count for each, count in to_come)]
        known = [one for one in seconds if one is not None]
        return sum(known) / self.began.machines if len(known) == len(seconds) else None

    @property
    def runs(self) -> int:
        """The runs of the night as far as known: added repeats and probes are not in its plan."""
        if self.began is None:
            return self.runs_done
        measuring = sum(kind_of(stage.title) in self.began.missing for stage in self.running())
        return max(self.began.runs, self.runs_done + measuring)

    def line(self, now_s: float) -> str:
        """What the night does now, in one line."""
        running, left, usd = self.running(), self.left_s(now_s), self.usd_until(now_s)
        began = self.began
        parts = [
            *([f"{self.runs_done} of {self.runs} runs"] if began else []),
            *(f"{stage.title} {stage.how_far(now_s)}" for stage in running),
            *([f"about {clock(left)} left"] if left else []),  # 0 where nothing that was timed is to come
            *([f"{usd:.2f} USD"] if usd or any(one.usd_per_hour for one in self.rented.values()) else []),
        ]
        return "; ".join(parts)

    def _begin(self, event: NightBegan) -> None:
        if self.began is not None:  # the night that measures the suspects of another one again
            self.stages = {number: stage for number, stage in self.stages.items() if stage.ended_s is None}
        self.began, self.runs_done = event, event.runs - sum(event.missing.values())

    def _without_night(self, title: str) -> str:
        return title.replace(f" {self.began.night}", "") if self.began else title

    def _end(self, stage: Stage, event: StageEnded) -> None:
        stage.ended_s, stage.is_failed = event.at_s, event.is_failed
        if self.began is not None and kind_of(stage.title) in self.began.missing:
            self.runs_done += 1

    def _report(self, event: StageReported) -> None:
        running = self.running()
        stage = self.stages.get(event.number) if event.number is not None else running[-1] if running else None
        if stage is not None:
            stage.line = event.line if event.line is not None else stage.line
            stage.load = event.load or stage.load


class StageTime(StoredValue):
    """How long one stage of a night took; all repeats of a run have one name."""

    stage: str
    began_at: AwareDatetime
    seconds: float
    is_failed: bool = False


class StageTimes(StoredValue):
    """The times of a night's stages, in the order of their beginning; of a resumed night those of its last part."""

    suite: str | None = None
    target: str | None = None
    stages: tuple[StageTime, ...] = ()

    def counts(self) -> dict[str, int]:
        """How many stages of each kind there were that did not fail."""
        return Counter(one.stage for one in self.stages if not one.is_failed)

    def mean_s(self) -> dict[str, float]:
        """The mean seconds of each stage that did not fail."""
        took = defaultdict[str, list[float]](list)
        for one in self.stages:
            if not one.is_failed:
                took[one.stage].append(one.seconds)
        return {stage: sum(seconds) / len(seconds) for stage, seconds in took.items()}


_AT_THE_END = frozenset({"stop server", "teardown", "load", "judge", "report", "report by its suite"})


def kind_of(title: str) -> str:
    """The title without the number of the repeat; the starts of all servers are of one kind."""
    return SERVER if title.startswith(SERVER) else _REPEAT.sub("", title)


def clock(seconds: float) -> str:
    """Seconds as people read them: 0:07, 12:34, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
