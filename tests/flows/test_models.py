"""Several models on one machine: each is fetched before its first server, and one that cannot be fails its own runs."""

from dataclasses import replace

import pytest

from bench.errors import ModelError, NoSpaceError
from bench.record import NightRecord, PlannedRun
from flows.models import MachineModels
from infra.agent.operations import MachinePaths
from infra.bootstrap import ledger
from infra.hardware.host_facts import read_host
from infra.ledger.lease import Lease
from infra.ledger.stage_costs import StageBook
from infra.loadgen.suite_file import make_night
from infra.measurement.run import RunContext
from infra.models.models import PreparedModel
from infra.settings import Settings
from tests.flows.conftest import NightFixture
from tests.flows.test_rental import rent

pytestmark = pytest.mark.usefixtures("nights_without_prefect")

FIRST, SECOND = "generated:tiny?seed=0", "generated:tiny?seed=1"
MODELS = f"""
[[models]]
name = "first"
source = "{FIRST}"
[[models]]
name = "second"
source = "{SECOND}"
[engine]"""


@pytest.fixture
def night(house: NightFixture) -> NightRecord:
    text = house.suite.read_text()
    head, _, rest = text.partition("[model]")
    house.suite.write_text(head + MODELS + rest.partition("[engine]")[2])
    return make_night(house.suite, "local", poc=False)


def run_of(night: NightRecord, source: str) -> PlannedRun:
    return next(run for run in night.runs if run.scenario.model.source == source)


def run_from(night: NightRecord, source: str) -> PlannedRun:
    """A run whose model is from another source."""
    run = night.runs[0]
    model = run.scenario.model.model_copy(update={"source": source})
    return run.model_copy(update={"scenario": run.scenario.model_copy(update={"model": model})})


def on_machine(night: NightRecord, lease: Lease) -> tuple[MachineModels, RunContext]:
    settings = Settings()
    paths = MachinePaths(settings.data.absolute(), settings.data / "machines", read_host())
    none = RunContext.__dataclass_fields__
    context = RunContext(**{**dict.fromkeys(name for name in none if name != "failed_starts"), "night": night})  # type: ignore[arg-type]  # what the models do not look at
    return MachineModels(settings, lease, paths, {}), context


def test_each_model_is_fetched_once_in_a_stage_of_its_own(night: NightRecord) -> None:
    lease = rent(Settings(), night.night)
    models, context = on_machine(night, lease)

    found = [models.context_for(context, run_of(night, source)).model for source in (FIRST, SECOND, FIRST)]

    assert [one.path.name for one in found if one] == ["tiny-seed-0", "tiny-seed-1", "tiny-seed-0"]
    assert found[0] is found[2]
    assert [span.stage for span in StageBook(ledger(Settings()).path).spans(lease.lease_id)] == ["model", "model"]


def test_a_model_that_cannot_be_had_fails_its_own_runs_only(night: NightRecord) -> None:
    models, context = on_machine(night, rent(Settings(), night.night))
    unknown = run_from(night, "generated:enormous?seed=0")

    assert models.context_for(context, unknown).model is None
    assert isinstance(models.lacking[unknown.scenario.model.source], ModelError)
    assert models.context_for(context, run_of(night, SECOND)).model is not None


def test_an_earlier_model_is_deleted_only_for_room_on_a_rented_machine_and_not_from_a_volume(
    night: NightRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = rent(Settings(), night.night)
    models, context = on_machine(night, lease)
    one = models.context_for(context, run_of(night, FIRST)).model
    assert one is not None
    kept, earlier, wanted = "hf:org/kept@1", "hf:org/earlier@1", "hf:org/wanted@1"
    models.found = {kept: replace(one, name="kept"), earlier: replace(one, name="earlier"), FIRST: one}
    models.kept = frozenset({kept})
    deleted: list[str] = []

    def fetch(*_asked: object) -> PreparedModel:
        if not deleted:
            raise NoSpaceError("the disk is full")
        return one

    monkeypatch.setattr("flows.models.fetch_model", fetch)
    monkeypatch.setattr("flows.models.delete_model", lambda _lease, model: deleted.append(model.name))

    here = models.context_for(context, run_from(night, wanted))
    models.lacking.clear()
    models.lease = replace(lease, cloud="digitalocean")
    rented = models.context_for(context, run_from(night, wanted))

    assert (here.model, rented.model, deleted) == (None, one, ["earlier"])
    assert list(models.found) == [kept, FIRST, wanted]
