"""A run context on any machine, made as a night makes it."""

from bench.record import Calibration, LeaseFacts, Lineage, NightRecord
from bench.suite.engine import Engine
from bench.suite.model import Model
from infra.agent import operations
from infra.agent.executor import Executor
from infra.agent.operations import PrepareOptions
from infra.engines.server import RunningServer
from infra.measurement.run import RunContext
from infra.models.models import PreparedModel
from infra.reporting import Reporter


def pid_of(server: RunningServer) -> int:
    """The process of a server that is ours."""
    assert server.pid is not None
    return server.pid


def model_on(machine: Executor, reporter: Reporter, source: str) -> PreparedModel:
    """Prepare a model on a machine that already has its engine."""
    engine = Engine(version="0.32.0", max_model_len=4096)
    return machine.run(
        operations.prepare, reporter, engine, Model(name="m", source=source), PrepareOptions("lease-0001", False)
    ).model


def make_context(machine: Executor, reporter: Reporter, night: NightRecord, lease_id: str) -> RunContext:
    paths = machine.run(operations.prepare_paths, reporter, lease_id)
    return RunContext(
        data=paths.data,
        night=night,
        machine=paths.machine,
        host=paths.host,
        model=model_on(machine, reporter, night.suite.model.source),
        calibration=Calibration(reason="none"),
        lease=LeaseFacts(lease_id=lease_id, cloud="test", machine_id=lease_id, usd_per_hour=0.0),
        lineage=Lineage(nightbench_version="0", git_commit=None, suite_sha256=night.suite_sha256),
    )
