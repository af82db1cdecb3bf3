"""Scale a suite to this computer, as its `[local]` table says."""

import re
from collections.abc import Mapping
from typing import Any

from bench.errors import SuiteError
from bench.suite.engine import Engine
from bench.suite.engine_changes import added_flags, merge_flags, without_flags
from bench.suite.load_search import closed_load
from bench.suite.local_scale import LocalScale
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.prompts import Prompts
from bench.suite.search import Goodput, Saturation
from bench.suite.suite import ScenarioEntry, Suite
from bench.suite.workload import LATENCY

LOCAL_RANGE_MAX = 8.0  # of a search's rates: low ones take long
_SEED = re.compile(r"(?<=[?&]seed=)\d+")  # of a generated model


def scaled(suite: Suite, local: LocalScale) -> Suite:
    """The suite at the size of this computer; scenarios that become equal are merged.

    Its scenarios and variants keep the flags and the environment in which their engine differs from that of their model
    and machine. Machines keep their names, and models theirs behind that of the local model. Raises SuiteError where no
    local model stands for a model. No power cap is set here: of several caps, the scenarios of the first are run.
    """
    models = {model.name: _model_here(place, model, suite, local) for place, model in enumerate(suite.models)}
    entries = tuple(
        _scaled_entry(entry, suite.engine, local).model_copy(update=_setup_here(entry, models, local))
        for entry in suite.scenarios
        if suite.power is None or entry.power_cap_w == suite.power.watts[0]
    )
    changes: dict[str, Any] = {
        "name": f"{suite.name}-local",
        "repeats": local.repeats_max if suite.repeats == "plan" else min(suite.repeats, local.repeats_max),
        "budget_usd": None,
        "machine": next((entry.machine for entry in entries if entry.machine), _machine_here(None, local)),
        "model": next((entry.model for entry in entries if entry.model), models[suite.models[0].name]),
        "engine": local.engine,
        "quality": local.quality.model_copy(
            update={"expectations": local.quality.expectations or suite.quality.expectations}
        ),
        "slo": local.slo or suite.slo,
        "ready_timeout_s": local.ready_timeout_s,
        "run_timeout_s": local.run_timeout_s,
        "control": None,
        "power": None,
        "ladder": None,
        "scenarios": entries,
    }
    return suite.model_copy(update=changes).without_equals()


def _setup_here(entry: ScenarioEntry, models: Mapping[str, Model], local: LocalScale) -> dict[str, Any]:
    """What stands for the model and the machine of a scenario; it has no power cap."""
    found: dict[str, Any] = {"name": entry.uncapped_name, "power_cap_w": None}
    found |= {} if entry.model is None else {"model": models[entry.model.name]}
    return found | ({} if entry.machine is None else {"machine": _machine_here(entry.machine.name, local)})


def _machine_here(name: str | None, local: LocalScale) -> Machine:
    return Machine(name=name, lease_minutes=local.lease_minutes)


def _model_here(place: int, model: Model, suite: Suite, local: LocalScale) -> Model:
    """What stands for a model: of several, the one local model is generated with another seed for each."""
    here = local.model or next((one for one in local.models if one.name == model.name), None)
    if here is None:
        raise SuiteError(f"[[local.models]] has none of the name {model.name!r}, which stands for that model")
    if local.models or len(suite.models) == 1:
        return here
    source = _SEED.sub(lambda found: str(int(found[0]) + place), here.source)
    return here.model_copy(update={"name": f"{here.name}-{model.name}", "source": source})


def _scaled_entry(entry: ScenarioEntry, base: Engine, local: LocalScale) -> ScenarioEntry:
    slots = _at_most(entry.concurrency, local.concurrency_max)
    if entry.command is not None:
        return _scaled_command(entry, local)
    changes: dict[str, Any] = {
        "isl": _tokens(entry.isl, local),
        "osl": _tokens(entry.osl, local),
        **_counts(entry, slots, local),
        "concurrency": slots,
        "workers": min(entry.workers, slots or entry.workers),
        "repeats": None if entry.repeats is None else min(entry.repeats, local.repeats_max),
        "request_rate_per_s": _at_most(entry.request_rate_per_s, local.request_rate_per_s_max),
        "prompts": _scaled_prompts(entry.prompts, local),
        **_scaled_search(entry, local),
        "engine": None if entry.engine is None else _engine_here(entry.engine, entry.base or base, local),
        "base": None,
    }
    return ScenarioEntry.model_validate(dict(entry) | changes)


def _scaled_command(entry: ScenarioEntry, local: LocalScale) -> ScenarioEntry:
    if local.command is None:
        raise SuiteError(f"[local] has no command, which stands for that of {entry.name!r}: add [local.command]")
    repeats = None if entry.repeats is None else min(entry.repeats, local.repeats_max)
    nodes = min(entry.nodes, local.nodes_max)
    command = local.command.model_copy(update={"nodes": nodes})
    return entry.model_copy(update={"command": command, "repeats": repeats, "engine": None, "base": None})


def _scaled_search(entry: ScenarioEntry, local: LocalScale) -> dict[str, Any]:
    """A search with few and small probes, and the load of its first one; its levels are as full as the suite's."""
    search, most = entry.search, local.probes_max
    if isinstance(search, Saturation):
        last = min(search.last, max(local.concurrency_max, 2 * search.first))
        levels = tuple(level for level in search.levels if level <= last)[:most]
        changes: dict[str, Any] = {
            "levels": levels if len(levels) > 1 else (),
            "concurrency_min": search.first,
            "concurrency_max": last,
            "probes_max": min(search.probes_max, most),
        }
        scaled_search = Saturation.model_validate(dict(search) | changes)
        return {"search": scaled_search} | closed_load(scaled_search, scaled_search.first)
    if isinstance(search, Goodput):
        highest = min(search.request_rate_per_s_max, local.request_rate_per_s_max)
        changes = {
            "slo": local.slo or search.slo,
            "request_rate_per_s_min": highest * search.request_rate_per_s_min / search.request_rate_per_s_max,
            "request_rate_per_s_max": highest,
            "probes_max": min(search.probes_max, most),
        }
        changes["request_rate_per_s_min"] = max(changes["request_rate_per_s_min"], highest / LOCAL_RANGE_MAX)
        scaled_rates = Goodput.model_validate(dict(search) | changes)
        return {"search": scaled_rates, "request_rate_per_s": scaled_rates.request_rate_per_s_min}
    return {}


def _counts(entry: ScenarioEntry, slots: int | None, local: LocalScale) -> dict[str, int]:
    """How many requests: whole batches, or whole conversations and as many as requests in flight."""
    if entry.driver == LATENCY:
        batches = max(1, min(entry.request_count // entry.in_flight, local.request_count_max // (slots or 1)))
        warm = min(entry.warmup_count // entry.in_flight, local.warmup_count_max)
        return {"request_count": batches * (slots or 1), "warmup_count": warm * (slots or 1)}
    turns = entry.prompts.turns or 1
    return {
        "request_count": min(entry.request_count, max(local.request_count_max // turns, slots or 1) * turns),
        "warmup_count": min(entry.warmup_count, local.warmup_count_max // turns * turns),
    }


def _tokens(count: int, local: LocalScale) -> int:
    return min(count, max(local.length_min, round(count * local.length_scale)))


def _at_most(value: float | None, most: float) -> Any:
    return None if value is None else min(value, most)


def _scaled_prompts(prompts: Prompts, local: LocalScale) -> Prompts:
    if prompts.kind == "images" and not local.keep_images:
        return Prompts(seed=prompts.seed)
    if prompts.prefix_tokens is None:
        return prompts
    shared = max(1, round(prompts.prefix_tokens * local.length_scale))
    return prompts.model_copy(update={"prefix_tokens": min(shared, local.length_min - 1 or 1)})


def _engine_here(engine: Engine, base: Engine, local: LocalScale) -> Engine:
    """The engine of this computer with the flags and variables that an engine of the suite has beside its base.

    An engine that [[local.engines]] does not name is the one of [local.engine].
    """
    here = next((one for one in local.engines if one.name == engine.name), local.engine)
    new = {name: value for name, value in engine.environment.items() if base.environment.get(name) != value}
    flags = merge_flags(here.flags, without_flags(added_flags(engine.flags, base.flags), local.drop_flags))
    return here.model_copy(update={"flags": flags, "environment": here.environment | new})
