"""Parse a suite file: TOML text to a Suite, or a SuiteError that names file and line."""

import difflib
from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from bench.errors import SuiteError
from bench.frozen import Frozen
from bench.suite.command import Command
from bench.suite.control import Control
from bench.suite.engine import Engine
from bench.suite.engine_changes import Variant
from bench.suite.engine_searches import Bisect, Tune
from bench.suite.expansion import Expansion, expand
from bench.suite.ladder import Rung
from bench.suite.load_search import SearchTable, SweepTable
from bench.suite.local_scale import LocalScale
from bench.suite.machine import Alternative, Machine, Power
from bench.suite.model import Model
from bench.suite.prompts import Prompts
from bench.suite.quality import LmEval, Profile, Quality
from bench.suite.scaling import scaled
from bench.suite.search import Limits
from bench.suite.secret_names import looks_secret
from bench.suite.setups import InvalidTableError, MachineTable, ModelTable, PlacedError
from bench.suite.slo import Slo
from bench.suite.source import Place, SuiteSource
from bench.suite.suite import ScenarioEntry, Suite
from bench.suite.target import Client
from bench.suite.workload import Workload


def parse_suite(text: str, where: str) -> Suite:
    """Parse the text of a suite of one file; `where` is the file's name for the errors."""
    return parse_source(SuiteSource.of(text, where))


def parse_source(source: SuiteSource) -> Suite:
    """Parse a suite.

    Raises SuiteError naming file, line and key: broken TOML, an unknown or missing key, a value of the wrong kind or
    unit, a secret, or a scenario that cannot fit the model's context.
    """
    suite, expansion = _validated(source)
    own = _own_engines(suite)
    public = [(one.environment, table) for one, table in own]
    for environment, table in (*public, *((one.environment, table) for one, table in expansion.changes)):
        _refuse_secrets(environment, table, source)
    for command, table in _commands(suite):
        _refuse_secrets(command.environment, expansion.in_file(table), source)
    for engine, table in own:
        _refuse_found(engine, table, source)
    for engine in suite.engines:
        _refuse_tracked_digest(engine, source)
    _require_equal_nodes(suite, expansion, source)
    _require_context(suite, expansion, source)
    _require_local(suite, source)
    _require_profiled(suite, source)
    return suite.without_equals()


def _commands(suite: Suite) -> Iterator[tuple[Command, Place]]:
    for index, entry in enumerate(suite.scenarios):
        if entry.command is not None:
            yield entry.command, ("scenarios", index, "command")
    if suite.local is not None and suite.local.command is not None:
        yield suite.local.command, ("local", "command")


def _require_local(suite: Suite, source: SuiteSource) -> None:
    """Raise SuiteError if the suite cannot be scaled to this computer as its `[local]` table says."""
    if suite.local is None:
        return
    at, room = source.at(("local",)), suite.local.engine.max_model_len
    try:
        entries = scaled(suite, suite.local).scenarios
    except SuiteError as error:
        raise SuiteError(f"{at}: local: {error}") from error
    except ValidationError as error:
        raise SuiteError(f"{at}: local: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from error
    longest = max(entries, key=lambda entry: entry.context_tokens)
    if longest.context_tokens > room:
        raise SuiteError(
            f"{at}: scaled to this computer, scenario {longest.name!r} needs {longest.context_tokens} tokens "
            f"of context, but local.engine.max_model_len is {room}; lower local.length_scale or raise it"
        )


def _validated(source: SuiteSource) -> tuple[Suite, Expansion]:
    """The suite, with every scenario that its matrices and variants stand for."""
    expansion = Expansion(source.raw)
    try:
        expansion = expand(source.raw)
        return Suite.model_validate(expansion.raw), expansion
    except ValidationError as error:
        raise SuiteError(_explain(error, source, expansion)) from error
    except InvalidTableError as error:
        raise SuiteError(_explain(error.error, source, expansion, error.place)) from error
    except PlacedError as error:
        raise SuiteError(f"{source.at(error.place)}: {error}") from error


def _require_context(suite: Suite, expansion: Expansion, source: SuiteSource) -> None:
    """Raise SuiteError if a scenario or the control exceeds the context of the suite or of a rung of its ladder."""
    control = suite.control
    if control and control.workload.context_tokens > control.engine.max_model_len:
        raise SuiteError(
            f"{source.at(('control', 'workload'))}: the control needs {control.workload.context_tokens} "
            f"tokens of context, but control.engine.max_model_len is {control.engine.max_model_len}"
        )
    for index, entry in enumerate(suite.scenarios):
        needed, room = entry.context_tokens, (entry.engine or suite.engine).max_model_len
        if needed > room:
            at = source.at(expansion.in_file(("scenarios", index, "isl")))
            raise SuiteError(
                f"{at}: scenario {entry.name!r} needs {_sum_of(entry)} = {needed} tokens of context, "
                f"but engine.max_model_len is {room}; shorten it or raise max_model_len"
            )
        for number, rung in enumerate(suite.ladder or ()):
            if rung.max_model_len is not None and needed > rung.max_model_len:
                at = source.at(("ladder", number, "max_model_len"))
                raise SuiteError(
                    f"{at}: scenario {entry.name!r} needs {needed} tokens of context, but this rung of the "
                    f"ladder has {rung.max_model_len}; raise its max_model_len, or remove the rung"
                )


def _require_profiled(suite: Suite, source: SuiteSource) -> None:
    """Not a rule of Suite: the part of a night that is for one machine has only the scenarios of that machine."""
    names = [entry.name for entry in suite.scenarios]
    for name in () if suite.profile is None else suite.profile.scenarios:
        if name not in names:
            at = source.at(("profile", "scenarios"))
            raise SuiteError(f"{at}: profile.scenarios has {name!r}, and the scenarios are {', '.join(names)}")


def _own_engines(suite: Suite) -> list[tuple[Engine, Place]]:
    """Each engine table of a suite, with its path."""
    found: list[tuple[Engine, Place]] = [(suite.engine, ("engine",))]
    found += [(suite.control.engine, ("control", "engine"))] if suite.control else []
    found += [(suite.local.engine, ("local", "engine"))] if suite.local else []
    return found


def _refuse_secrets(environment: Mapping[str, str], table: Place, source: SuiteSource) -> None:
    """Not a rule of Engine: records of earlier nights stay readable."""
    for name in filter(looks_secret, environment):
        at, path = source.at((*table, "environment", name)), ".".join(map(str, table))
        raise SuiteError(
            f"{at}: {path}.environment.{name} looks like a secret, and a suite is public: remove it, "
            f'set {name} where you start Nightbench, and write secret_environment = ["{name}"] under [{path}]'
        )


def _require_equal_nodes(suite: Suite, expansion: Expansion, source: SuiteSource) -> None:
    """Raise SuiteError where a machine would be rented more often than one of its scenarios needs."""
    for machine in suite.machines:
        here = [index for index, entry in enumerate(suite.scenarios) if (entry.machine or suite.machine) == machine]
        least, most = (pick(here, key=lambda index: suite.scenarios[index].nodes) for pick in (min, max))
        one, other = suite.scenarios[most], suite.scenarios[least]
        if one.nodes != other.nodes:
            at = source.at(expansion.in_file(("scenarios", most, "command", "nodes")))
            raise SuiteError(
                f"{at}: the command of {one.name!r} has nodes = {one.nodes}, and {other.name!r} runs on the same "
                f"machine with {other.nodes}: give each number of nodes an entry of [[machines]], and name it in the "
                "scenario's machines"
            )


def _refuse_found(engine: Engine, table: Place, source: SuiteSource) -> None:
    """Not a rule of Engine: the record of a night has these beside `track`."""
    for key in ("image_version", "image_commit"):
        if getattr(engine, key) is not None:
            at, path = source.at((*table, key)), ".".join(map(str, table))
            raise SuiteError(f"{at}: {path}.{key} is set when a tag is resolved: remove it")


def _refuse_tracked_digest(engine: Engine, source: SuiteSource) -> None:
    if engine.track and engine.image and "@" in engine.image:
        at = source.at(("engine", "track"))
        raise SuiteError(f"{at}: engine.image has a digest, so there is nothing to track: remove the digest, or track")


def _sum_of(work: Workload) -> str:
    return "isl + osl" if work.prompts.turns is None else f"{work.prompts.turns} turns of isl + osl"


def _explain(error: ValidationError, source: SuiteSource, expansion: Expansion, place: Place = ()) -> str:
    wrong = error.errors()
    # A misspelt key is both unknown and missing; the first helps more.
    first = next((one for one in wrong if one["type"] == "extra_forbidden"), wrong[0])
    path = expansion.in_file((*place, *first["loc"]))
    at = source.at(path)
    key = ".".join(str(part) for part in path) or "suite"
    if first["type"] == "extra_forbidden":
        return f"{at}: unknown key {key!r}{_suggestion(path)}"
    if first["type"] == "missing":
        return f"{at}: the key {key!r} is missing"
    message = first["msg"].removeprefix("Value error, ")
    unit = _unit_hint(str(path[-1])) if path else ""
    shown = f", got {first['input']!r}" if not isinstance(first["input"], dict) else ""
    return f"{at}: {key}: {message}{shown}{unit}"


def _suggestion(path: tuple[int | str, ...]) -> str:
    tables: dict[str, type[Frozen]] = {
        "machine": Machine,
        "model": Model,
        "engine": Engine,
        "quality": Quality,
        "ladder": Rung,
        "control": Control,
        "local": LocalScale,
        "bisect": Bisect,
        "tune": Tune,
        "profile": Profile,
        "scenarios": ScenarioEntry,
        "matrix": ScenarioEntry,
        "models": ModelTable,
        "machines": MachineTable,
        "variants": Variant,
        "sweeps": SweepTable,
        "searches": SearchTable,
        "slo": Slo,
        "client": Client,
        "power": Power,
    }
    table = tables.get(str(path[0]), Suite) if len(path) > 1 else Suite
    inner: dict[int | str, type[Frozen]] = {
        "model": Model,
        "engine": Engine,
        "workload": Workload,
        "prompts": Prompts,
        "alternatives": Alternative,
        "lm_eval": LmEval,
        "slo": Slo,
        "limits": Limits,
    }
    table = next((inner[part] for part in path[:-1] if part in inner), table)
    close = difflib.get_close_matches(str(path[-1]), table.model_fields, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}? A key ends with its unit" if close else ""


def _unit_hint(key: str) -> str:
    hints = {
        "_s": "a number of seconds",
        "_per_s": "a number per second",
        "_minutes": "a whole number of minutes",
        "_usd": "a number of US dollars",
        "_gib": "a whole number of GiB",
        "usd_per_hour_max": "a number of US dollars per hour",
    }
    fitting = [hint for ending, hint in sorted(hints.items(), key=lambda item: len(item[0])) if key.endswith(ending)]
    return f" ({key} is {fitting[-1]})" if fitting else ""
