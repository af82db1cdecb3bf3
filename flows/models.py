"""The models of a machine: the first is fetched while the engine is installed, each further one before its server."""

from dataclasses import dataclass, field, replace

from bench.errors import ModelError, NoSpaceError
from bench.record import NightRecord, PlannedRun
from infra.agent.operations import MachinePaths
from infra.agent.prepare import Prepared
from infra.bootstrap import ledger_file
from infra.clouds.abilities import Volume
from infra.leases.stage_budget import record_stage
from infra.ledger.lease import Lease
from infra.measurement.run import RunContext
from infra.models.models import PreparedModel
from infra.settings import Settings
from tasks.machine import prepare_machine
from tasks.models import delete_model, fetch_model, fill_bucket


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


@dataclass
class MachineModels:
    """The models that a machine has, by their sources, oldest first."""

    settings: Settings
    lease: Lease
    paths: MachinePaths
    found: dict[str, PreparedModel | None]  # None: a server that already runs has it
    kept: frozenset[str] = frozenset()  # on a volume, where they stay for the next night
    lacking: dict[str, ModelError | NoSpaceError] = field(default_factory=dict)

    def context_for(self, context: RunContext, run: PlannedRun) -> RunContext:
        """The context of a run with its model, which is fetched first; with none where it is in `lacking` after that.

        Raises BudgetError, with nothing begun, where the budget does not allow the download.
        """
        source = run.scenario.model.source
        if source not in self.found and source not in self.lacking:
            with record_stage(ledger_file(self.settings), context.night, self.lease.lease_id, "model"):
                self._fetch(context, run)
        return replace(context, model=self.found.get(source))

    def _fetch(self, context: RunContext, run: PlannedRun) -> None:
        model = run.scenario.model
        try:
            fetched = self.found[model.source] = self._make_room_and_fetch(run)
        except (ModelError, NoSpaceError) as error:  # the runs of this model fail by it, and those of others do not
            self.lacking[model.source] = error
        else:
            suite = context.night.suite.model_copy(update={"model": model})
            night = context.night.model_copy(update={"suite": suite})
            fill_bucket(self.settings, night, self.lease, fetched)

    def _make_room_and_fetch(self, run: PlannedRun) -> PreparedModel:
        """Fetch a model; on a rented machine whose disk is full the models of earlier servers are deleted for it."""
        while True:
            try:
                return fetch_model(self.lease, self.paths, run.scenario)
            except NoSpaceError:
                earlier = next((source for source in self.found if self._may_go(source)), None)
                if earlier is None:
                    raise
                if model := self.found.pop(earlier):
                    delete_model(self.lease, model)

    def _may_go(self, source: str) -> bool:
        return self.lease.is_free_to_change and source.startswith("hf:") and source not in self.kept
