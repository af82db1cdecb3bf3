"""What a search for flags takes, what its nights took until now, and whether its budget lasts for the next one."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bench.errors import UsageError
from bench.plan import model_loads
from bench.record import NightRecord
from bench.search.halving import Step, Tuning, course, next_step, request_count_of
from bench.suite.engine_searches import Tune
from bench.suite.target import LOCAL
from bench.wording import counted
from flows.tune.suites import write_night_suite
from infra.bootstrap import clouds
from infra.leases.forecast import forecast_night
from infra.leases.lease_reports import lease_minutes, night_usd
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage import store
from infra.storage.begun_nights import TUNINGS


@dataclass(frozen=True)
class Cost:
    """What nights take: runs, server starts, requests with the warm-up, minutes of leases and USD; None: not known.

    The catalogue has no speeds of this computer, so the minutes there are not known before the search's first night.
    """

    runs: int = 0
    starts: int = 0
    requests: int = 0
    minutes: float | None = 0.0
    usd: float | None = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        """Both together; what is not known of one is not known of both."""
        minutes = None if None in (self.minutes, other.minutes) else (self.minutes or 0.0) + (other.minutes or 0.0)
        usd = None if None in (self.usd, other.usd) else (self.usd or 0.0) + (other.usd or 0.0)
        requests = self.requests + other.requests
        return Cost(self.runs + other.runs, self.starts + other.starts, requests, minutes, usd)

    def __str__(self) -> str:
        """`12 runs, 6 server starts, 1,200 requests, 14.5 min, 0.40 USD`."""
        parts = [counted(self.runs, "run"), counted(self.starts, "server start"), f"{self.requests:,} requests"]
        parts += ["minutes unknown before the first night" if self.minutes is None else f"{self.minutes:.1f} min"]
        return ", ".join([*parts, "a price that is not known" if self.usd is None else f"{self.usd:.2f} USD"])


def state_file(data: Path, search: Tuning) -> Path:
    """The file of a search; the same suite has the same file, so that the search goes on where it stopped."""
    asked = search.model_copy(update={"rounds": (), "confirmations": ()}).model_dump_json()
    return data / TUNINGS / f"{hashlib.sha256(asked.encode()).hexdigest()[:16]}.json"


def read_state(data: Path, new: Tuning) -> Tuning:
    """What was measured of a search; the new one where nothing was. Raises UsageError where the file is damaged."""
    path = state_file(data, new)
    if not path.is_file():
        return new
    try:
        return Tuning.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(f"{path} cannot be read: {error}; move it away, then every night is measured again") from error


def planned(settings: Settings, search: Tuning, tune: Tune) -> list[tuple[str, Cost]]:
    """Each night of the search with what it is expected to take, if no candidate fails."""
    every = [one.name for one in search.candidates]
    steps = [Step(tuple(every[:count]), requests) for count, requests in course(search)]
    steps.append(Step(tuple(every[:2]), search.full_count, is_confirmation=True))
    names = [name_of(search, number, step) for number, step in enumerate(steps)]
    return [(name, expected(settings, search, tune, step)) for name, step in zip(names, steps, strict=True)]


def expected(settings: Settings, search: Tuning, tune: Tune, step: Step) -> Cost:
    """What the night of a step takes, by the plan of its suite and the pace of the search's nights until now."""
    night = make_night(
        write_night_suite(settings.data.absolute(), search, step, tune.rounds), search.target, poc=False, is_draft=True
    )
    forecast, pace = forecast_night(settings, night, clouds(settings).get(search.target)), _pace(settings, search)
    if pace is None and night.target == LOCAL:
        return _cost(night, None, forecast.usd)
    pace = pace or 1.0
    return _cost(night, forecast.minutes * pace, None if forecast.usd is None else forecast.usd * pace)


def spent(data: Path, search: Tuning) -> Cost:
    """What the nights of a search took until now."""
    total = Cost()
    for name in nights_of(search):
        total += _cost(store.read_night(data, name), lease_minutes(data, name) or 0.0, night_usd(data, name))
    return total


def _cost(night: NightRecord, minutes: float | None, usd: float | None) -> Cost:
    work = [run.scenario.workload for run in night.runs]
    requests = sum(one.request_count + one.warmup_count for one in work)
    return Cost(len(work), len(model_loads(night.runs)), requests, minutes, usd)


def nights_of(search: Tuning) -> list[str]:
    """The nights of a search, in their order."""
    return [*(one.night for one in search.rounds), *(one.night for one in search.confirmations)]


def _pace(settings: Settings, search: Tuning) -> float | None:
    """How long the nights of the search took, as a share of what their plans forecast; None before the first."""
    nights = (store.read_night(settings.data, name) for name in nights_of(search))
    said = sum(forecast_night(settings, night, clouds(settings).get(search.target)).minutes for night in nights)
    return (spent(settings.data.absolute(), search).minutes or 0.0) / said if said else None


def require_room(settings: Settings, search: Tuning, tune: Tune) -> None:
    """Raise UsageError where the budget is too small for the first round."""
    step = next_step(search)
    over = "" if search.rounds else over_budget(settings, search, tune, step)
    if over:
        raise UsageError(f"the budget of [tune] is too small for one round: {over}; raise it, or try less")


def over_budget(settings: Settings, search: Tuning, tune: Tune, step: Step) -> str:
    """Which limit the next night would exceed, in words; "" where none."""
    used, more = spent(settings.data.absolute(), search), expected(settings, search, tune, step)
    limits = (
        (tune.requests_max, used.requests, more.requests, "requests", ",.0f"),
        (tune.minutes_max, used.minutes, more.minutes, "minutes", ".1f"),
        (tune.usd_max, used.usd, more.usd, "USD", ".2f"),
    )
    for limit, had, needed, unit, digits in limits:
        if limit is not None and (had or 0) + (needed or 0) > limit:
            return f"{had or 0:{digits}} {unit} are used, the next night takes {needed or 0:{digits}}, of {limit:g}"
    return ""


def name_of(search: Tuning, number: int, step: Step) -> str:
    """The name of a night of the search, from 0."""
    if step.is_confirmation:
        return f"confirmation with {step.request_count} requests a run"
    count = request_count_of(search, number)
    return f"round {number + 1}: {counted(len(step.candidates), 'candidate')} with {count} requests a run"
