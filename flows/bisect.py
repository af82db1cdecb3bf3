"""A search for the version that moved a number: each step is a night of its own, and a file keeps what was measured."""

import csv
import hashlib
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from bench.errors import UsageError
from bench.record import NightEnd
from bench.suite.suite import BISECT
from bench.suite.target import parse_target
from bench.trends.bisect import Bisection, Measured, Step, next_step, with_night
from bench.trends.night_judge import coupling
from bench.trends.series import Point, Series
from infra.engines.releases import require_releases
from infra.leases.lease_reports import lease_minutes
from infra.loadgen.suite_extension import toml_string, write_extension
from infra.loadgen.suite_file import draft_sha256, read_source, read_suite
from infra.settings import Settings
from infra.storage import store
from infra.storage.begun_nights import BISECTIONS, begun_night
from warehouse.lake.query import ask
from warehouse.schema.star import METRICS
from warehouse.trends.own_series import own_series

NIGHTS_LIKE_IT = 5  # whose median says how long one takes
Measure = Callable[[str, Path], Measured]  # runs a night of a candidate by its suite

# Each candidate is measured again, so that a doubtful earlier night excludes no version.
_VERSIONS = """
SELECT engine_version_found FROM measurements
WHERE outcome = 'measured' AND engine_version_found IS NOT NULL AND is_control IS NOT TRUE
GROUP BY ALL ORDER BY min(started_at)
"""


def state_file(data: Path, search: Bisection) -> Path:
    """The file of a search; the same question has the same file, so that it goes on where it stopped."""
    asked = search.model_copy(update={"measured": ()}).model_dump_json(exclude_none=True)
    return data / BISECTIONS / f"{hashlib.sha256(asked.encode()).hexdigest()[:16]}.json"


def read_state(path: Path, new: Bisection) -> Bisection:
    """What was measured of a search; the new one where nothing was. Raises UsageError where the file is damaged."""
    if not path.is_file():
        return new
    try:
        return Bisection.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(f"{path} cannot be read: {error}; move it away, then every night is measured again") from error


def run_search(
    data: Path, search: Bisection, measure: Measure, spent: Callable[[str], float], budget_usd: float | None = None
) -> tuple[Bisection, Step]:
    """Measure until the answer is known or the next night may cost more than is left; each night is kept at once."""
    path = state_file(data, search)
    search = read_state(path, search)
    while True:
        step = next_step(search)
        costs = [spent(one.night) for one in search.measured]
        if step.candidate is None:
            return search, step
        if budget_usd is not None and sum(costs) + max(costs, default=0.0) > budget_usd:
            why = f"no budget is left: {sum(costs):.2f} USD of {budget_usd:.2f} are spent, and a night costs as before"
            return search, Step(None, step.good, step.bad, why, step.skipped)
        search = with_night(search, measure(step.candidate, write_suite(data, search, step.candidate)))
        store.write_json(path, search)


def measure_by(data: Path, search: Bisection, run: Callable[[str, Path, str | None], str]) -> Measure:
    """What measures a candidate: `run` runs its night by a suite, or resumes the one it is given, and returns its name.

    A night of that suite that no search counted is resumed: it was cut off.
    """
    nights = [one.night for one in read_state(state_file(data, search), search).measured]

    def measure(candidate: str, suite: Path) -> Measured:
        sha256 = draft_sha256(suite, search.target)
        nights.append(run(candidate, suite, begun_night(data, sha256, search.target, nights, search.scenario)))
        return read_night(data, search, candidate, nights[-1], began=nights[0])

    return measure


def write_suite(data: Path, search: Bisection, candidate: str) -> Path:
    """The suite with its engine's version or image replaced by a candidate; its lock comes with it."""
    name = hashlib.sha256(f"{search.suite} {candidate}".encode()).hexdigest()[:16]
    path, suite = data / BISECTIONS / "suites" / f"{name}.toml", Path(search.suite).absolute()
    key = "image" if is_image(candidate) else "version"
    change = f"{key} = {toml_string(candidate)}"
    own = [*read_source(suite).raw.get("series_identity", ()), BISECT]
    identity = f"series_identity = [{', '.join(map(toml_string, own))}]"
    write_extension(path, suite, f"rerun_suspects = false\n{identity}\n\n[engine]\n{change}\n")
    return path


def is_image(candidate: str) -> bool:
    """Whether a candidate is an image rather than a version."""
    return any(sign in candidate for sign in "/:@")


def read_candidates(path: Path) -> list[str]:
    """The candidates of a file, oldest first; raises UsageError where it cannot be read or lists one twice.

    One a line, where empty lines and those that begin with # are left out; or a CSV table with a column `name` and
    perhaps `date`; or TOML tables [[candidates]] with these keys. Rows with dates are put in their order.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".csv":
            found = _in_order(csv.DictReader(text.splitlines()))
        elif path.suffix == ".toml":
            found = _in_order(tomllib.loads(text)["candidates"])
        else:
            lines = [line.strip() for line in text.splitlines()]
            found = [line for line in lines if line and not line.startswith("#")]
    except KeyError as error:
        raise UsageError(f"{path} has no {error}: give each version or image a `name`, and perhaps a `date`") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    twice = sorted({one for one in found if found.count(one) > 1})
    if twice:
        raise UsageError(f"{path} lists {twice[0]} twice: list each version or image once, oldest first")
    return found


def _in_order(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [row["name"] for row in sorted(rows, key=lambda row: str(row.get("date") or ""))]


def known_versions(data: Path) -> list[str]:
    """The engine versions that we measured, accepted or not, in the order in which they were first measured."""
    return [version for (version,) in ask(data, _VERSIONS).rows]


def require_releases_of(candidates: Iterable[str], suite: Path, target: str, settings: Settings) -> None:
    """Raise UsageError, before the first night, where a version of these could not be run by the suite."""
    where = parse_target(target)
    parsed, _digest = read_suite(suite, is_draft=True, target=where.name)
    for version in candidates:
        if not is_image(version):
            engine = parsed.engine.model_copy(update={"version": version})
            require_releases(parsed.model_copy(update={"engine": engine}), where, settings)


def require_metric(name: str) -> None:
    """Raise UsageError where no series has this metric."""
    if name not in METRICS:
        near = get_close_matches(name, METRICS, cutoff=0.0)
        raise UsageError(f"{name!r} is not a metric; nearest: {', '.join(near)}")


def require_scenario(name: str, suite: Path, target: str) -> None:
    """Raise UsageError where the suite has no scenario of this name."""
    names = [one.name for one in read_suite(suite, is_draft=True, target=parse_target(target).name)[0].expand()]
    if name not in names:
        raise UsageError(f"{suite} has no scenario {name!r}; it has {', '.join(dict.fromkeys(names))}")


def require_listed(listed: Sequence[str], ends: Sequence[str]) -> None:
    """Raise UsageError where an end is not in the list, or both are the same."""
    for end in ends:
        if end not in listed:
            raise UsageError(f"{end} is not in the list: {', '.join(listed) or 'it is empty'}; name two of these")
    if len(set(ends)) == 1:
        raise UsageError(f"--good and --bad are both {ends[0]}: name two versions or images")


def read_night(data: Path, search: Bisection, candidate: str, night: str, began: str) -> Measured:
    """What a loaded night says of a candidate in each series; without an accepted value, why there is none.

    What the control says of the host is taken off, in a series that went with its control before the night `began`.
    """
    before = {series.key.series: series for series in own_series(data) if series.key.metric == search.metric}
    found = {
        name: math.exp(_without_host(before.get(name, series), point, began))
        for series in own_series(data, of_bisects=True)
        for name in [series.key.series.removesuffix(f"/{BISECT}")]
        for point in series.valid
        if series.key.metric == search.metric and search.counts(name) and point.night == night
    }
    where = f" of scenario {search.scenario}" if search.scenario else ""
    why = "" if found else f"night {night} has no accepted {search.metric}{where}{_why_it_ended(data, night)}"
    return Measured(candidate=candidate, night=night, by_series=found, reason=why)


def _why_it_ended(data: Path, night: str) -> str:
    path = store.end_file(data, night)
    return f": {NightEnd.model_validate_json(path.read_bytes()).reason}" if path.is_file() else ""


def earlier_minutes(data: Path, suite: str, target: str) -> float | None:
    """Median minutes of the newest nights of a suite, by its name, on this target; None where none is known."""
    alike: list[float] = []
    for name in reversed(store.nights(data)):
        night = store.read_night(data, name)
        minutes = lease_minutes(data, name) if (night.suite.name, night.target) == (suite, target) else None
        alike += [] if minutes is None else [minutes]
        if len(alike) == NIGHTS_LIKE_IT:
            break
    return float(np.median(alike)) if alike else None


def _without_host(series: Series, point: Point, began: str) -> float:
    """The logarithm of a value, less what the control's difference from its usual speed explains."""
    earlier = [one for one in series.valid if one.night < began and one.control is not None]
    controls = np.array([one.control for one in earlier], dtype=float)
    slope = coupling(np.log([one.value for one in earlier]), controls)
    moved = slope * (point.control - float(np.median(controls))) if slope and point.control is not None else 0.0
    return float(np.log(point.value)) - moved
