"""Make a rented machine ready, with a stage of the ledger for each part of it."""

from bench.record import NightRecord
from infra.agent.operations import MachinePaths
from infra.agent.prepare import Prepared
from infra.bootstrap import ledger_file
from infra.clouds.abilities import Volume
from infra.leases.stage_budget import record_stage
from infra.ledger.lease import Lease
from infra.settings import Settings
from tasks.machine import prepare_machine


def prepare_in_parallel(
    settings: Settings, night: NightRecord, lease: Lease, paths: MachinePaths, volume: Volume | None
) -> Prepared:
    """Install the engine while the model downloads; each is a stage with a cost of its own."""
    file = ledger_file(settings)
    with (
        record_stage(file, night, lease.lease_id, "software") as software,
        record_stage(file, night, lease.lease_id, "model") as model,
    ):
        prepared = prepare_machine(lease, paths, night.suite, volume)
        software.lasted(prepared.stage_s["engine"])
        model.lasted(prepared.stage_s["model"])
    return prepared
