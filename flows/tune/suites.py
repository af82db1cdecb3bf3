"""The suites of a search for flags: each night extends the suite with one scenario and a variant for each candidate."""

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.errors import SuiteError
from bench.search.flag_space import Candidate, candidates_of
from bench.search.halving import Step, Tuning, sizes
from bench.suite.engine_searches import Tune
from bench.suite.source import EXTENDS, SuiteFile, SuiteSource
from bench.suite.suite import BISECT, ScenarioEntry, Suite
from bench.suite.target import parse_target
from bench.trends.paired import TURNS
from bench.trends.series import lower_is_better
from infra.loadgen.suite_extension import toml_string, toml_value, write_extension
from infra.loadgen.suite_file import read_source, read_suite
from infra.storage.begun_nights import TUNINGS

REPEATS = 2  # of a server: its first run is left out, since it follows a start
NOT_OF_A_NIGHT = ("repeats", "variants", "load_s")  # keys of the scenario: requests are counted, not timed


def new_search(suite: Path, target: str) -> tuple[Tuning, Tune]:
    """The search that a suite asks for, before its first night, and its table.

    Raises SuiteError where the suite has no `[tune]`, no one scenario that can be tuned, or nothing to try.
    """
    parsed, digest = read_suite(suite, is_draft=True, target=target)
    tune = parsed.tune
    if tune is None:
        raise SuiteError(f"{suite} has no [tune] table: add one with flags = {{ ... }}, see docs/how-to/tune-flags.md")
    entry = _entry(parsed, tune, suite)
    candidates = candidates_of(tune, entry.engine or parsed.engine, parsed.seed)
    if len(candidates) == 1:
        raise SuiteError(f"{suite}: every combination of tune.flags is what the engine has already: add another value")
    search = Tuning(
        suite=str(suite.absolute()),
        suite_name=parsed.name,
        suite_sha256=digest,
        target=parse_target(target).name,
        scenario=entry.base_name,
        metric=tune.metric,
        is_lower_better=bool(lower_is_better(tune.metric, None)),
        slo=parsed.slo,
        keep=tune.keep,
        first_count=_first_count(parsed, tune, entry, len(candidates), suite),
        full_count=entry.request_count,
        candidates=candidates,
    )
    return search, tune


def write_night_suite(data: Path, search: Tuning, step: Step, rounds: int) -> Path:
    """The suite of the next night: a round, or the confirmation in so many rounds of A B B A."""
    turns = TURNS * rounds if step.is_confirmation else 1
    names = "ab" if step.is_confirmation else step.candidates
    variants = [_variant(name, search.candidate(one)) for name, one in zip(names, step.candidates, strict=True)]
    suite = Path(search.suite)
    raw = SuiteSource((_extending(suite), *read_source(suite).files)).raw
    alike = (one for one in raw["scenarios"] if _is_of(search.scenario, one["name"]))
    scenario = max(alike, key=lambda one: len(one["name"]))
    own = {key: value for key, value in scenario.items() if key not in NOT_OF_A_NIGHT}
    text = "\n".join(
        [
            *_head(raw, REPEATS * turns, turns),
            *_table("[[scenarios]]", own | {"request_count": step.request_count}),
            *(line for one in variants for line in _table("[[variants]]", one)),
        ]
    )
    digest = hashlib.sha256(f"{search.suite} {search.suite_sha256} {len(search.rounds)} {text}".encode()).hexdigest()
    path = data / TUNINGS / "suites" / f"{digest[:16]}.toml"
    write_extension(path, suite, f"{text}\n")
    return path


def _extending(suite: Path) -> SuiteFile:
    """A file that extends the suite from anywhere: the paths in its scenarios become absolute."""
    return SuiteFile.of(f"{EXTENDS} = {toml_string(str(suite.absolute()))}\n", "")


def _head(raw: dict[str, Any], repeats: int, turns: int) -> Iterator[str]:
    identity = [*raw.get("series_identity", ()), BISECT]
    keys = {"rerun_suspects": False, "repeats": repeats, "turns": turns, "ladder": []}
    keys |= {"matrix": [], "sweeps": [], "searches": [], "series_identity": list(dict.fromkeys(identity))}
    yield from (f"{key} = {toml_value(value)}" for key, value in keys.items())
    yield from _table("[quality]", {"scenario_s": 0.0})


def _table(head: str, keys: dict[str, Any]) -> Iterator[str]:
    yield f"\n{head}"
    yield from (f"{key} = {toml_value(value)}" for key, value in keys.items())


def _variant(name: str, candidate: Candidate) -> dict[str, Any]:
    return {"name": name} | ({"flags": list(candidate.flags)} if candidate.flags else {})


def _entry(parsed: Suite, tune: Tune, suite: Path) -> ScenarioEntry:
    """The scenario that is measured; SuiteError where it is none that can be sent more briefly."""
    written = [one["name"] for one in read_source(suite).raw.get("scenarios", ())]
    known = ", ".join(written) or "none"
    name = tune.scenario or (written[0] if len(written) == 1 else None)
    if name is None:
        raise SuiteError(f"{suite}: name the scenario to tune, tune.scenario = ...; [[scenarios]] has {known}")
    if name not in written:
        raise SuiteError(f"{suite}: tune.scenario names {name!r}, which is none of [[scenarios]]: it has {known}")
    if len(parsed.models) > 1 or len(parsed.machines) > 1:
        raise SuiteError(f"{suite}: a search for flags runs one model on one machine: give it a suite of its own")
    alike = (one for one in parsed.scenarios if _is_of(one.base_name, name))
    entry = min(alike, key=lambda one: len(one.base_name))  # a name may have an @ of its own
    if entry.is_offline or entry.command is not None:
        raise SuiteError(f"{suite}: scenario {name!r} has no requests to send fewer of: tune one with request_count")
    return entry


def _is_of(base_name: str, written: str) -> bool:
    """Whether a scenario has this name in the file, where the names of its model and machine do not stand behind it."""
    return f"{base_name}@".startswith(f"{written}@")


def _first_count(parsed: Suite, tune: Tune, entry: ScenarioEntry, candidates: int, suite: Path) -> int:
    """The requests of a run in the first round, enough to fill each slot as `quality` asks, in whole conversations."""
    slots, turns = entry.concurrency or 1, entry.prompts.turns or 1
    least = max(round(slots * parsed.quality.min_requests_per_slot), slots * turns)
    if tune.request_count is None:
        rounds = len(sizes(candidates, tune.keep))
        wanted = max(entry.request_count // int(tune.keep**rounds), least)
        return min(math.ceil(wanted / turns) * turns, entry.request_count)
    if tune.request_count % turns:
        raise SuiteError(
            f"{suite}: tune.request_count is {tune.request_count}, and each conversation of the scenario has {turns} "
            "turns: give a multiple of them"
        )
    if tune.request_count > entry.request_count:
        raise SuiteError(
            f"{suite}: tune.request_count is {tune.request_count}, and the scenario itself sends "
            f"{entry.request_count}: give fewer"
        )
    if tune.request_count < least:
        raise SuiteError(
            f"{suite}: tune.request_count is {tune.request_count}, and quality.min_requests_per_slot asks for {least} "
            "of a run of this scenario: every short run would be in doubt; give more"
        )
    return tune.request_count
