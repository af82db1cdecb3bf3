"""What a machine is asked to do in a night. The same functions run here and on a machine at the other end of SSH.

Each takes who listens first, then values, and returns a value; paths in these values are the machine's own. Where
things are kept comes from the settings of the process it runs in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bench.errors import NightbenchError
from bench.record import Calibration, HostFacts, LmEvalRecord, NightRecord, PlannedRun, RunRecord
from bench.suite.engine import Engine
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.scenario import Scenario
from infra.agent import prepare as preparing
from infra.agent.prepare import Prepared
from infra.engines import install, server
from infra.engines.server import EngineAt, RunningServer, ServerRequest
from infra.hardware import preflight, volume_mount
from infra.hardware.host_facts import read_host
from infra.hardware.preflight import Fitness, MachineRequirements
from infra.loadgen.night_calibration import calibrate_night
from infra.measurement import lm_eval
from infra.measurement import run as measuring
from infra.measurement.run import RunContext
from infra.models.bucket_transfer import put_pieces
from infra.models.models import PreparedModel, list_files
from infra.models.parts import CachedFile, CachedModel, Part, UploadResult
from infra.reporting import Reporter
from infra.settings import Settings
from infra.storage import store


@dataclass(frozen=True)
class MachinePaths:
    """Where a machine keeps a night, and what the machine is."""

    data: Path
    machine: Path  # pid files and logs of what runs under one lease
    host: HostFacts
    scratch: Path | None = None  # a large disk of the machine's own, where it has one


@dataclass(frozen=True)
class PrepareOptions:
    """For which lease a machine is made ready, and what may be done for that.

    `is_rented`: it is ours alone, so docker is installed, settings are changed and an empty disk is formatted.
    """

    lease_id: str
    is_rented: bool
    scratch: Path | None = None
    volume: Path | None = None  # keeps the model between nights
    kept: CachedModel | None = None  # the model in a bucket, which is asked before the hub
    with_lm_eval: bool = False  # the harness's environment is made as well


def check_machine(reporter: Reporter, asked: Machine, is_rented: bool) -> Fitness:
    """Look whether the machine is what the suite asks for, made so where it is rented; else MachineUnfitError."""
    demand = MachineRequirements(
        folder=str(Settings().data.absolute()), gpu_count=asked.gpu_count, gpu=asked.gpu, is_rented=is_rented
    )
    return preflight.check_machine(demand, reporter.say)


def find_site(reporter: Reporter, machine_id: str) -> MachinePaths:
    """Make the place for what runs under a lease, and look at the machine."""
    del reporter
    data = Settings().data.absolute()
    machine = data / "machines" / machine_id
    machine.mkdir(parents=True, exist_ok=True)
    return MachinePaths(data, machine, read_host())


def ready_engine(reporter: Reporter, engine: Engine, is_rented: bool) -> EngineAt:
    """Find the engine that the suite asks for, or install it; on a rented machine docker may be installed for it."""
    return install.ready_engine(engine, Settings(), reporter.say, is_rented=is_rented)


def prepare(reporter: Reporter, engine: Engine, model: Model, terms: PrepareOptions) -> Prepared:
    """Put the engine and the weights on the machine, at the same time; the first failure ends the other."""
    settings = Settings()
    asked = preparing.PrepareRequest(
        engine=engine,
        source=model.source,
        models=Path(model.cache) if model.cache else _disk_for_models(terms, settings) / "models",
        lease_id=terms.lease_id,
        is_rented=terms.is_rented,
        kept=terms.kept,
        with_lm_eval=terms.with_lm_eval,
    )
    return preparing.prepare(asked, settings, reporter.say)


def _disk_for_models(terms: PrepareOptions, settings: Settings) -> Path:
    return terms.volume or terms.scratch or settings.data.absolute()


def mount_volume(reporter: Reporter, label: str) -> Path:
    """Mount the volume with this label, which the cloud has attached, and return where; else MachineUnfitError."""
    return volume_mount.mount_volume(label, Settings().data.absolute() / "volumes" / label, reporter.say)


def list_model(reporter: Reporter, model: PreparedModel) -> tuple[CachedFile, ...]:
    """Every file of a model that was put there, with its hash."""
    del reporter
    return list_files(model.path)


def keep_model(
    reporter: Reporter, model: PreparedModel, pieces: tuple[Part, ...], seconds: float, lease_id: str
) -> UploadResult:
    """Upload these pieces of a model within so many seconds; what was not is said, not raised."""
    sent = put_pieces(model.path, pieces, seconds, preparing.hub_of(Settings(), lease_id))
    reporter.say(f"uploaded {sent.bytes / 1e9:.2f} GB of {model.name}")
    return sent


def calibrate(reporter: Reporter, night: NightRecord) -> Calibration:
    """Measure the load client's own error on this machine, or find what it was calibrated for."""
    settings = Settings()
    return calibrate_night(settings.data.absolute(), night, settings.cache, reporter.say)


def bring_up(reporter: Reporter, context: RunContext, run: PlannedRun, engine: EngineAt) -> RunningServer:
    """Start a server for this run's scenario and return once it is ready; a ServerStartError has its log's words."""
    servers = store.night_folder(context.data, context.night.night) / "servers"
    count = len(list(servers.glob(f"{run.scenario.server_id}-*.log")))
    what = ServerRequest(
        engine=engine,
        scenario=run.scenario,
        model=context.model.path,
        machine=context.machine,
        log=servers / f"{run.scenario.server_id}-{count}.log",
        lease_id=context.lease.lease_id,
        port=Settings().engine_port,
        ready_timeout_s=context.night.suite.ready_timeout_s,
    )
    return server.bring_up(what, reporter.say)


def is_serving(reporter: Reporter, running: RunningServer) -> bool:
    """Whether a server still answers."""
    del reporter
    return server.is_serving(running)


def measure(
    reporter: Reporter, context: RunContext, run: PlannedRun, running: RunningServer | NightbenchError
) -> RunRecord:
    """Measure one run into its run folder; a failure that we understand is a record as well."""
    return measuring.measure(context, run, running, reporter.progress)


def ask_tasks(reporter: Reporter, context: RunContext, scenario: Scenario, running: RunningServer) -> LmEvalRecord:
    """Ask a server the suite's tasks of lm-eval, into a folder of its own; one that gives no score has a reason."""
    return lm_eval.ask_tasks(context, scenario, running, reporter.say)


def shut_down(reporter: Reporter, running: RunningServer) -> None:
    """Stop the server's whole process tree; safe to repeat."""
    server.stop(running)
    reporter.say(f"server {running.pid} is stopped")


# What a machine can be asked for by name. Nothing else runs on one as an errand.
OPERATIONS: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {
        operation.__name__: operation
        for operation in (
            find_site,
            check_machine,
            ready_engine,
            mount_volume,
            prepare,
            list_model,
            keep_model,
            calibrate,
            bring_up,
            is_serving,
            measure,
            ask_tasks,
            shut_down,
        )
    }
)
