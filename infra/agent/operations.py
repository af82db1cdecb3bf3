"""The operations that a night runs on a machine: the same functions on this computer and, over SSH, on another one.

Each operation takes the settings of the process it runs in, a reporter, and then values; it returns a value. Values
and results must be types that pydantic can write as JSON. Paths in them are paths on the machine.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from bench.engines.disaggregated import flags_of
from bench.engines.profile_record import ProfileRecord
from bench.errors import LmEvalError
from bench.host import HostFacts
from bench.loadgen.drivers.target import ClientHost
from bench.machine.canary import CanaryRecord
from bench.record import Answers, Calibration, LmEvalRecord, NightRecord, PlannedRun, RunRecord
from bench.suite.command import NodePlace
from bench.suite.endpoint import Endpoint
from bench.suite.engine import Engine
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.quality import LmEval
from bench.suite.scenario import Scenario
from infra.agent.declared_operations import DECLARED, operation
from infra.agent.prepare import Prepared, PrepareRequest, hub_of, prepare_engine_and_model
from infra.engines import canary, endpoint, install, server
from infra.engines.canary import CanaryRequest
from infra.engines.endpoint import EMBEDDINGS, AttachRequest
from infra.engines.engine_at import EngineAt
from infra.engines.known_flags import require_known_flags
from infra.engines.launch import ServerRequest
from infra.engines.server import RunningServer
from infra.hardware import preflight, volume_mount
from infra.hardware.host_facts import read_host
from infra.hardware.power_cap import hold_cap, read_caps
from infra.hardware.preflight import Fitness, MachineRequirements
from infra.loadgen import nodes
from infra.loadgen.night_calibration import calibrate_night
from infra.loadgen.nodes import Node
from infra.measurement import lm_eval, profile_run
from infra.measurement.answers import ask
from infra.measurement.lm_eval_data import fetch_task_data
from infra.measurement.run import RunContext, Started
from infra.measurement.run import measure as measure_run
from infra.models.bucket_transfer import upload_parts
from infra.models.models import PreparedModel, list_files
from infra.models.parts import CachedFile, CachedModel, Part, UploadResult
from infra.reporting import Reporter
from infra.settings import Settings
from infra.storage import store

OPERATIONS = MappingProxyType(DECLARED)  # by the function's name; a machine runs nothing else


@dataclass(frozen=True)
class MachinePaths:
    """Where a machine keeps a night, and the facts of its host."""

    data: Path
    machine: Path  # pid files and logs of what runs under one lease
    host: HostFacts
    scratch: Path | None = None  # a large local disk of the machine, if it has one


@dataclass(frozen=True)
class PrepareOptions:
    """The lease that a machine is prepared for, where the model goes, and where it may come from.

    `is_rented`: the machine is ours alone, so docker may be installed on it.
    """

    lease_id: str
    is_rented: bool
    scratch: Path | None = None
    volume: Path | None = None  # keeps the model between nights
    cached: CachedModel | None = None  # the model in a bucket, which is tried before the hub
    lm_eval: LmEval | None = None  # install the environment of lm-eval as well


@operation
def check_machine(settings: Settings, reporter: Reporter, required: Machine, is_rented: bool) -> Fitness:
    """Check the machine against the suite; on a rented one, change settings and disks to fit. MachineUnfitError."""
    requirements = MachineRequirements(
        folder=str(settings.data.absolute()), gpu_count=required.gpu_count, gpu=required.gpu, is_rented=is_rented
    )
    return preflight.check_machine(requirements, reporter.say)


@operation
def check_power_caps(_settings: Settings, _reporter: Reporter) -> None:
    """Raise MachineUnfitError where no power cap of a GPU can be read on this machine."""
    read_caps()


@operation(leaves_results=True)
def prepare_paths(settings: Settings, _reporter: Reporter, machine_id: str) -> MachinePaths:
    """Create the folder for what runs under a lease, and read the facts of the host."""
    data = settings.data.absolute()
    machine = data / "machines" / machine_id
    machine.mkdir(parents=True, exist_ok=True)
    return MachinePaths(data, machine, read_host())


@operation
def ready_engine(settings: Settings, reporter: Reporter, engine: Engine, is_rented: bool) -> EngineAt:
    """Find or install the suite's engine; on a rented machine docker may be installed for it."""
    return install.ready_engine(engine, settings, reporter.say, is_rented=is_rented)


@operation(secrets="hub")
def ready_lm_eval(settings: Settings, reporter: Reporter, asked: LmEval) -> None:
    """Build the environments of the tasks and download their data; LmEvalError where a task's data is missing."""
    failed = fetch_task_data(settings, asked, reporter.say)
    if failed:
        raise LmEvalError("; ".join(failed))


@operation(secrets="hub")
def prepare(settings: Settings, reporter: Reporter, engine: Engine, model: Model, options: PrepareOptions) -> Prepared:
    """Install the engine and download the model at the same time; the first failure stops the other."""
    disk = options.volume or options.scratch or settings.data.absolute()
    request = PrepareRequest(
        engine=engine,
        source=model.source,
        models=Path(model.cache) if model.cache else disk / "models",
        lease_id=options.lease_id,
        is_rented=options.is_rented,
        cached=options.cached,
        lm_eval=options.lm_eval,
    )
    return prepare_engine_and_model(request, settings, reporter.say)


@operation
def mount_volume(settings: Settings, reporter: Reporter, label: str) -> Path:
    """Mount the attached volume with this label and return its folder; MachineUnfitError if that fails."""
    return volume_mount.mount_volume(label, settings.data.absolute() / "volumes" / label, reporter.say)


@operation
def list_model(_settings: Settings, _reporter: Reporter, model: PreparedModel) -> tuple[CachedFile, ...]:
    """Every file of a prepared model with its size and SHA-256."""
    return list_files(model.path)


@operation
def delete_model(_settings: Settings, reporter: Reporter, model: PreparedModel) -> None:
    """Delete a model's folder, where the disk has no room for the next one."""
    shutil.rmtree(model.path)
    reporter.say(f"deleted {model.name} from {model.path}: the next model needs its {model.bytes / 1e9:.2f} GB")


@operation
def keep_model(
    settings: Settings,
    reporter: Reporter,
    model: PreparedModel,
    parts: tuple[Part, ...],
    seconds: float,
    lease_id: str,
) -> UploadResult:
    """Upload these parts of a model within so many seconds; a failure is returned, not raised."""
    uploaded = upload_parts(model.path, parts, seconds, hub_of(settings, lease_id))
    reporter.say(f"uploaded {uploaded.bytes / 1e9:.2f} GB of {model.name}")
    return uploaded


@operation
def run_canary(_settings: Settings, reporter: Reporter, request: CanaryRequest) -> CanaryRecord:
    """Measure the machine itself for some seconds; whatever fails is a reason in the record."""
    return canary.run_canary(request, reporter.say)


@operation(leaves_results=True)
def calibrate(settings: Settings, reporter: Reporter, night: NightRecord) -> Calibration:
    """Measure the load client's own error on this machine, or read the calibration that the night already has."""
    data, hosts = settings.data.absolute(), _clients(settings, night)
    return calibrate_night(data, night, settings.cache, reporter.say, *hosts)


@operation(leaves_results=True, secrets="engine")
def bring_up(
    settings: Settings,
    reporter: Reporter,
    context: RunContext,
    run: PlannedRun,
    engine: EngineAt,
    ready_timeout_s: float,
) -> RunningServer:
    """Start a server for this run's scenario and ask it the fixed questions; ServerStartError quotes its log."""
    servers = store.night_folder(context.data, context.night.night) / "servers"
    count = len(list(servers.glob(f"{run.scenario.server_id}-*.log")))
    log = servers / f"{run.scenario.server_id}-{count}.log"
    if context.model is None:
        request = replace(_attach_request(context, run, log), hosts=_clients(settings, context.night))
        attached = endpoint.attach(request, reporter.say)
        return replace(attached, answers=_answers(attached, run))
    if engine.build is not None:
        require_known_flags(engine.module, engine.executable, flags_of(run.scenario.engine))
    started = ServerRequest(
        engine=engine,
        scenario=run.scenario,
        model=context.model.path,
        machine=context.machine,
        log=log,
        lease_id=context.lease.lease_id,
        port=settings.engine_port,
        ready_timeout_s=ready_timeout_s,
    )
    hold_cap(context.machine, run.scenario.power_cap_w, reporter.say)
    running = server.bring_up(started, reporter.say)
    return replace(running, answers=_answers(running, run))


def _answers(running: RunningServer, run: PlannedRun) -> Answers | None:
    """A server's answers to the fixed questions; one of embeddings answers none."""
    return None if run.scenario.workload.is_embedding else ask(running, run.scenario.model.name)


def _attach_request(context: RunContext, run: PlannedRun, log: Path) -> AttachRequest:
    suite = context.night.suite
    entries = [entry for entry in suite.scenarios if entry.task == run.scenario.workload.task]
    forms = tuple(dict.fromkeys(EMBEDDINGS if entry.is_embedding else entry.prompts.form for entry in entries))
    known = suite.endpoint or Endpoint()
    return AttachRequest(context.night.target, known, run.scenario.model.name, forms, log)


def _clients(settings: Settings, night: NightRecord) -> tuple[ClientHost, ...]:
    """The client hosts of a suite; none where this machine sends the load."""
    if not night.suite.client.hosts:
        return ()
    from infra.remote.client_hosts import reach_clients  # noqa: PLC0415 - other machines lack its package

    return reach_clients(night.suite.client, settings.ssh_key, settings.ssh_known_hosts)


@operation
def is_serving(_settings: Settings, _reporter: Reporter, running: RunningServer) -> bool:
    """Whether a server still answers health checks."""
    return server.is_serving(running)


@operation(leaves_results=True, secrets="offline")
def measure(
    _settings: Settings,
    reporter: Reporter,
    context: RunContext,
    run: PlannedRun,
    running: Started,
    is_last: bool,
) -> RunRecord:
    """Measure one run into its run folder; a NightbenchError becomes a record with outcome `failed`.

    After its last run, a server answers the fixed questions again.
    """
    return measure_run(context, run, running, reporter.progress, is_last=is_last)


@operation(secrets="offline")
def join_command(_settings: Settings, _reporter: Reporter, run: PlannedRun, node: Node, place: NodePlace) -> None:
    """Run one node's part of a command to its end; LoadDriverError where that fails or is ended."""
    nodes.join_command(node, run, place)


@operation
def stop_command(_settings: Settings, _reporter: Reporter, run: PlannedRun, machine: Path, why: str) -> None:
    """End the command of a run on this machine, also where it is yet to start; may be repeated."""
    nodes.stop_command(machine, run, why)


@operation(leaves_results=True)
def ask_tasks(
    settings: Settings, reporter: Reporter, context: RunContext, scenario: Scenario, running: RunningServer
) -> LmEvalRecord:
    """Run the suite's lm-eval tasks against a server, into their own folder; a task without a score has a reason."""
    return lm_eval.run_tasks(context, scenario, running, settings, reporter.say)


@operation(leaves_results=True, secrets="engine")
def profile(
    settings: Settings, reporter: Reporter, context: RunContext, run: PlannedRun, engine: EngineAt
) -> ProfileRecord:
    """Trace the engine under a few requests of a run's load, on a server of its own; without a trace, a reason."""
    return profile_run.profile(context, run, engine, settings.engine_port, reporter.say)


@operation(leaves_results=True)
def shut_down(_settings: Settings, reporter: Reporter, running: RunningServer) -> None:
    """Stop the server's whole process tree; may be repeated."""
    server.stop(running)
    if running.pid is not None:
        reporter.say(f"server {running.pid} is stopped")
