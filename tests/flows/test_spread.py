"""The machines of a night on several workers: what is needed, how an end travels, and when a worker counts as gone."""

from pathlib import Path
from uuid import uuid4

import pytest
from prefect.states import Cancelled, Completed, Crashed, Failed
from pydantic import SecretStr

from bench.errors import (
    BudgetError,
    HostError,
    LeaseError,
    NightbenchError,
    RemoteJobCrashedError,
    UnreadableResultError,
    UsageError,
)
from bench.machine_nights import LeasePlan
from flows.machine_night import take_part
from flows.spread.elsewhere import require_means
from flows.spread.machine_end import error_of, state_of
from flows.spread.pulse import SILENCE_S, Pulse
from infra.settings import Settings
from infra.storage import store
from tests.emulators.s3 import KEYS
from tests.warehouse.folders import Shape, whole_night


@pytest.mark.parametrize(
    ("error", "state_type", "name"),
    [
        (BudgetError("4.00 USD are spent: of 3.50"), "COMPLETED", "Out of budget"),
        (HostError("the machine is gone"), "FAILED", "Failed"),
        (LeaseError("quota"), "FAILED", "Failed"),
    ],
)
def test_an_error_arrives_as_its_class_with_its_message_and_its_ending(
    error: NightbenchError, state_type: str, name: str
) -> None:
    state = state_of(error)
    told = error_of(state)

    assert (state.type.value, state.name) == (state_type, name)
    assert isinstance(told, NightbenchError)
    assert (type(told), str(told), told.ending, told.stage) == (type(error), str(error), error.ending, error.stage)


def test_an_error_that_ends_a_night_quietly_does_so_from_another_computer_too() -> None:
    error = LeaseError("1 of the 2 machines were rented")
    error.ending = "No capacity"  # as flows/nodes.py says it

    told = error_of(state_of(error))

    assert isinstance(told, LeaseError)
    assert told.ending == "No capacity"


def test_a_good_end_is_none_a_defect_stays_one_and_a_process_that_is_gone_is_a_lost_machine() -> None:
    assert error_of(state_of(None)) is error_of(Completed()) is None
    assert isinstance(error_of(state_of(KeyError("a bug"))), RemoteJobCrashedError)
    assert isinstance(error_of(Failed(message="Flow could not be retrieved")), RemoteJobCrashedError)
    assert isinstance(error_of(Crashed(message="status -9")), HostError)
    cancelled = error_of(Cancelled())
    assert type(cancelled) is NightbenchError  # no other lease is taken for it
    assert str(cancelled) == "its flow run was cancelled"


def test_a_flow_run_counts_as_gone_after_a_silence_in_which_the_server_responded() -> None:
    pulse, beats = Pulse(0.0), [uuid4() for _ in range(2)]

    assert not pulse.is_lost(None, SILENCE_S)
    assert not pulse.is_lost(beats[0], SILENCE_S + 10)
    assert not pulse.is_lost(beats[0], 2 * SILENCE_S + 10)
    pulse.pause(5 * SILENCE_S)  # the server was away
    assert not pulse.is_lost(beats[0], 6 * SILENCE_S)
    assert not pulse.is_lost(beats[1], 7 * SILENCE_S)
    assert pulse.is_lost(beats[1], 8 * SILENCE_S + 1)


def test_without_a_bucket_or_postgresql_no_night_is_spread_and_each_is_a_sentence(tmp_path: Path) -> None:
    spread = Settings(data=tmp_path, spread=True)
    with_bucket = spread.model_copy(update={"s3_bucket": "nights"})
    url = SecretStr("postgresql+asyncpg://prefect@db/prefect")

    require_means(Settings(data=tmp_path))
    with pytest.raises(UsageError, match="needs a bucket, by which the workers exchange a night: set NIGHTBENCH_S3_"):
        require_means(spread.model_copy(update={"database_url": url}))
    with pytest.raises(UsageError, match=r"needs PostgreSQL .*: run `nightbench up --postgres`"):
        require_means(with_bucket)
    require_means(with_bucket.model_copy(update={"database_url": url}))
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("15\n")
    require_means(with_bucket)


def test_a_name_that_is_a_path_is_refused_before_a_bucket_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    settings = Settings(data=tmp_path, s3_bucket="nights", s3_endpoint="http://127.0.0.1:9")

    with pytest.raises(UsageError, match=r"'\.\./elsewhere' is not the id of a night"):
        take_part(settings, "../elsewhere", "mi300x")


def test_the_plan_of_a_lease_that_cannot_be_read_or_is_of_another_night_is_a_sentence_and_the_plan_stays(
    tmp_path: Path,
) -> None:
    whole_night(tmp_path, "2026-03-01", {"one": Shape()})
    planned = store.night_file(tmp_path, "2026-03-01").read_bytes()
    path = store.lease_plan_file(tmp_path, "2026-03-01", "0123456789ab")
    other = store.read_night(tmp_path, "2026-03-01").model_copy(update={"night": "2026-03-02"})

    store.write_json(path, LeasePlan(lease_id="0123456789ab", began_at=other.started_at, night=other))
    with pytest.raises(UnreadableResultError, match=r"0123456789ab.json is of night '2026-03-02': move it away"):
        store.merge_lease_plans(tmp_path, "2026-03-01")
    path.write_text("{}")
    with pytest.raises(
        UnreadableResultError, match=r"0123456789ab.json is not a valid plan of a lease: Field required"
    ):
        store.merge_lease_plans(tmp_path, "2026-03-01")

    assert store.night_file(tmp_path, "2026-03-01").read_bytes() == planned
