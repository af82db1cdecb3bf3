"""What each of the two servers of a disaggregated engine is started with."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from bench.engines.config import parallel_sizes, parse_flags
from bench.engines.used_gpus import CUDA, VISIBLE
from bench.suite.engine import Disaggregated, Engine
from bench.suite.engine_changes import merge_flags
from bench.suite.scenario import Scenario

TRANSFER = "--kv-transfer-config"
ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}
# Where each server of NIXL waits for the other's address; its ranks count upwards from there.
NIXL_PORT = "VLLM_NIXL_SIDE_CHANNEL_PORT"
NIXL_PORTS = {"prefill": 5600, "decode": 5700}


def rank_count(engine: Engine) -> int:
    """The GPUs that the engine takes: one a rank, of both servers where there are two."""
    servers = [engine] if engine.disaggregated is None else _parts(engine, engine.disaggregated)
    return sum(parallel_sizes(parse_flags(one.flags)).gpu_count for one in servers)


def flags_of(engine: Engine) -> tuple[str, ...]:
    """Every flag that one of its servers is started with."""
    own = engine.disaggregated
    return engine.flags if own is None else (*engine.flags, *own.prefill_flags, *own.decode_flags)


def parts_of(scenario: Scenario, gpus: Sequence[str], variable: str = CUDA) -> tuple[Scenario, Scenario]:
    """The scenarios of the prefill and of the decode server, of which each is an engine like any other.

    `gpus` are the names of the visible GPUs in their order, empty on a host without one, and `variable` is the one that
    shows a server its own.
    """
    engine = scenario.engine
    if engine.disaggregated is None:
        msg = f"the engine of scenario {scenario.name} is not disaggregated"
        raise ValueError(msg)
    first = 0
    found = []
    for name, part in zip(ROLES, _parts(engine, engine.disaggregated), strict=True):
        ranks = parallel_sizes(parse_flags(part.flags)).gpu_count
        own = {variable: ",".join(gpus[first : first + ranks])} if gpus else {}
        own |= {NIXL_PORT: str(NIXL_PORTS[name])}
        first += ranks
        engine_of_part = part.model_copy(update={"environment": own | engine.environment})
        found.append(scenario.model_copy(update={"engine": engine_of_part}))
    return found[0], found[1]


def _parts(engine: Engine, asked: Disaggregated) -> Iterator[Engine]:
    for role, own in zip(ROLES.values(), (asked.prefill_flags, asked.decode_flags), strict=True):
        transfer: dict[str, Any] = {"kv_connector": asked.connector, "kv_role": role}
        if asked.connector_config:
            transfer["kv_connector_extra_config"] = asked.connector_config
        flags = (*merge_flags(engine.flags, own), TRANSFER, json.dumps(transfer, sort_keys=True))
        yield engine.model_copy(update={"flags": flags, "disaggregated": None})


def disaggregation_problem(engine: Engine) -> str | None:
    """Why an engine cannot be two servers as its suite asks; None where it can, or asks for one server."""
    asked = engine.disaggregated
    if asked is None:
        return None
    if engine.name != "vllm":
        return f"{engine.name} runs as one server here: use vllm"
    if TRANSFER in parse_flags(flags_of(engine)):
        return f"{TRANSFER} is set by Nightbench: remove it, and use disaggregated.connector"
    hiding = [name for name in VISIBLE if name in engine.environment]
    return f"each server gets its own GPUs: remove {hiding[0]} from engine.environment" if hiding else None
