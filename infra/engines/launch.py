"""Start the processes of an engine's server: on the host, in a container, or two servers behind a router."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bench.engines.disaggregated import ROLES, parts_of, rank_count
from bench.engines.docker import container_argv
from bench.engines.used_gpus import CUDA, HIP, VISIBLE
from bench.errors import ServerStartError
from bench.suite.scenario import Scenario
from infra.engines import container, disaggregated_program
from infra.engines.engine_at import EngineAt
from infra.engines.orphans import SERVER
from infra.engines.ports import free_port
from infra.engines.secret_environment import read_secrets
from infra.hardware.gpus import vendor
from infra.models.files import gguf_of
from infra.processes import detached
from infra.processes.environment import TOOLS, child_environment


@dataclass(frozen=True)
class ServerRequest:
    """A server to start: its engine, its scenario's settings, its model, and the folder for its files.

    `port` 0: any free port. `lease_id` marks every process of it, so that the reaper finds them.
    """

    engine: EngineAt
    scenario: Scenario
    model: Path
    machine: Path
    log: Path
    lease_id: str
    port: int
    ready_timeout_s: float
    written: Path | None = None  # a folder that the engine writes into, for its container to have


@dataclass(frozen=True)
class Launched:
    """What runs now: `pid` leads its session. Of two servers behind a router, `argv` is the decode server's."""

    pid: int
    pid_file: Path
    argv: tuple[str, ...]
    environment: dict[str, str]  # as records have it
    containers: tuple[str, ...] = ()  # their names; the engine's own first
    prefill_argv: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Command:
    """The argv of one server, and its container's name."""

    argv: tuple[str, ...]
    container: str | None = None


def launch(request: ServerRequest, port: int) -> Launched:
    """Start the engine; whoever talks to it does so on this port."""
    module, scenario = request.engine.module, request.scenario
    environment = module.environment(scenario)
    pid_file = request.machine / f"server-{port}.pid"
    if request.engine.image:
        whole = child_environment(_unrecorded(request), also=TOOLS)  # of docker's client
    else:
        whole = child_environment({**environment, **_unrecorded(request)})
        # What hides GPUs from the engine counts, also where this process had it.
        environment = {name: whole[name] for name in VISIBLE if name in whole} | environment
    if scenario.engine.disaggregated is None:
        servers = {"decode": _command(request, scenario, port)}
        argv = servers["decode"].argv
    else:
        argv, servers = _both(request, whole, port)
    pid = detached.start_detached(argv, whole, pid_file, request.log)
    own, prefill = servers["decode"], servers.get("prefill")
    names = tuple(one.container for one in (own, prefill) if one is not None and one.container is not None)
    return Launched(pid, pid_file, own.argv, environment, names, () if prefill is None else prefill.argv)


def _command(request: ServerRequest, scenario: Scenario, port: int) -> _Command:
    """The argv of a server; of docker's client, which runs as long as the container and passes its log on."""
    engine = request.engine
    weights = gguf_of(request.model) if engine.module.WEIGHTS == "gguf" else request.model
    if not engine.image:
        return _Command(engine.module.argv(engine.executable, scenario, weights, port))
    image = container.ImageAt(engine.executable, engine.image, engine.cache or request.machine / "engine-home")
    started = container.container_for(image, scenario, request.machine, request.lease_id, port)
    inside = engine.module.argv(engine.module.EXECUTABLE, scenario, weights, port)
    argv = container_argv(replace(started, written=request.written), inside, request.model)
    return _Command(argv, started.name)


def _both(request: ServerRequest, whole: Mapping[str, str], port: int) -> tuple[tuple[str, ...], dict[str, _Command]]:
    """The argv of the program that runs both servers behind a router, and the commands of `prefill` and `decode`."""
    variable = HIP if HIP in whole else CUDA
    ranks = rank_count(request.scenario.engine)
    if variable in whole:
        gpus = [one for one in whole[variable].split(",") if one.strip()]  # an empty value hides all of them
    else:
        gpus = [str(at) for at in range(ranks)] if vendor() else []
    if 0 < len(gpus) < ranks:
        raise ServerStartError(
            f"the prefill and the decode server need {ranks} GPUs, and {variable}={whole[variable]} shows fewer: name "
            f"{ranks} there, or lower the parallel sizes of the two servers"
        )
    plan: dict[str, object] = {"port": port}
    commands: dict[str, _Command] = {}
    for name, scenario in zip(ROLES, parts_of(request.scenario, gpus, variable), strict=True):
        own_port = free_port()
        command = _command(request, scenario, own_port)
        # In a container, a file has the variables.
        environment = {} if command.container else request.engine.module.environment(scenario)
        plan[name] = {"argv": command.argv, "port": own_port, "environment": environment}
        commands[name] = command
    plan["prefill_log"] = str(request.log.with_name(f"{request.log.stem}-prefill{request.log.suffix}"))
    program = str(Path(disaggregated_program.__file__).absolute())
    return (sys.executable, "-I", program, json.dumps(plan)), commands


def _unrecorded(request: ServerRequest) -> dict[str, str]:
    """The variables of a server that no record has: the marks and the secrets."""
    return {detached.MARK: request.lease_id, SERVER: str(request.machine), **read_secrets(request.scenario.engine)}
