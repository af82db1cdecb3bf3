"""What a night may begin: by its budget, and by how long a stage is expected to take."""

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from bench.errors import BudgetError
from bench.record import AttemptOutcome, LeaseReport, NightRecord
from infra.bootstrap import ledger, ledger_file, stage_book
from infra.clock import SystemClock
from infra.leases.lease_reports import report_night
from infra.leases.listing import lease_views
from infra.leases.stage_budget import expected_stage_s, record_stage, spent_usd
from infra.ledger.lease import Lease
from infra.ledger.ledger import Intent
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage import store
from warehouse.rows.lease_rows import lease_rows

SUITE = Path(__file__).parents[3] / "suites" / "llama-3.3-70b-mi300x.toml"
KIND = "gpu-mi300x1-192gb"
LONG = ("20000-in-2000-out", "128-in-4096-out")  # begun first here, since a night draws its order


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path))
    return Settings()


def _night(budget_usd: float | None) -> NightRecord:
    night = make_night(SUITE, "digitalocean", poc=False, is_draft=True)
    machine = night.suite.machine.model_copy(update={"budget_usd": budget_usd})
    suite = night.suite.model_copy(update={"machine": machine})
    runs = sorted(night.runs, key=lambda run: (run.repeat, [*LONG, run.scenario.name].index(run.scenario.name)))
    return night.model_copy(update={"suite": suite, "runs": tuple(runs)})


def _rent(settings: Settings, night: NightRecord, lease_id: str = "l-1") -> Lease:
    book = ledger(settings)
    until = datetime.now(UTC) + timedelta(hours=4)
    book.intend(lease_id, Intent(night.night, "digitalocean", 2.59, until, f"nb-{lease_id}-a1-x1", kind=KIND))
    book.hold(lease_id, f"machine-of-{lease_id}")
    book.end_attempt(lease_id, "rented")
    return book.lease(lease_id)


def test_a_stage_that_the_budget_allows_is_begun_and_kept(settings: Settings) -> None:
    night = _night(12.0)
    lease = _rent(settings, night)

    with record_stage(ledger_file(settings), night, lease.lease_id, "measure", night.runs[0]):
        pass

    (span,) = stage_book(settings).spans("l-1")
    assert (span.stage, span.run) == ("measure", f"{night.runs[0].scenario.scenario_id}/{night.runs[0].repeat}")
    assert span.ended_at is not None


def test_a_run_that_would_pass_the_budget_is_not_begun(settings: Settings) -> None:
    night = _night(0.50)
    lease = _rent(settings, night)

    begun = []
    with pytest.raises(BudgetError, match=r"measure of 20000-in-2000-out #0 was not started"):  # noqa: SIM117
        with record_stage(ledger_file(settings), night, lease.lease_id, "measure", night.runs[0]):
            begun.append(1)

    assert (begun, stage_book(settings).spans("l-1")) == ([], [])


def test_what_an_earlier_machine_of_the_night_has_cost_counts(settings: Settings) -> None:
    night = _night(2.0)
    _rent(settings, night, "l-0")
    lease = _rent(settings, night)
    with record_stage(ledger_file(settings), night, lease.lease_id, "model"):
        pass

    ledger(settings).hold("l-0", "machine-of-l-0", usd_per_hour=1e12)  # more than 2 USD in any time

    with (
        pytest.raises(BudgetError, match="was not started"),
        record_stage(ledger_file(settings), night, lease.lease_id, "model"),
    ):
        pass


def test_what_a_machine_of_this_night_has_cost_on_another_computer_counts(settings: Settings) -> None:
    night, minutes_ago = _night(12.0), datetime.now(UTC) - timedelta(minutes=30)
    lease = _rent(settings, night)
    told = LeaseReport(
        lease_id="elsewhere", cloud="digitalocean", machine_id="1", usd_per_hour=2.0, rented_at=minutes_ago
    )
    write = partial(store.write_json, store.lease_file(settings.data, night.night, "elsewhere"))
    spent = partial(spent_usd, ledger(settings), night)
    own = spent()

    write(told)  # as it was when its computer died
    assert spent() - own == pytest.approx(1.0, abs=0.01)
    write(told.model_copy(update={"rented_at": minutes_ago - timedelta(days=9)}))
    assert spent() - own == pytest.approx(2.0 * night.suite.machine.lease_minutes / 60, abs=0.01)
    write(told.model_copy(update={"usd": 20.0}))
    with (
        pytest.raises(BudgetError, match="was not started"),
        record_stage(ledger_file(settings), night, lease.lease_id, "model"),
    ):
        pass
    write(told.model_copy(update={"usd": 20.0, "machine": "another"}))
    assert spent() == pytest.approx(own, abs=0.01)


def test_without_a_budget_everything_is_begun(settings: Settings) -> None:
    night = _night(None)
    lease = _rent(settings, night)

    with record_stage(ledger_file(settings), night, lease.lease_id, "measure", night.runs[0]):
        pass

    assert len(stage_book(settings).spans("l-1")) == 1


def test_a_run_is_expected_to_take_what_was_estimated_until_one_like_it_was_seen(settings: Settings) -> None:
    night = _night(12.0)
    lease = _rent(settings, night)
    run = night.runs[0]
    estimated = expected_stage_s(ledger_file(settings), night, lease, "measure", run)
    with record_stage(ledger_file(settings), night, lease.lease_id, "measure", run):
        pass

    seen = expected_stage_s(ledger_file(settings), night, lease, "measure", run)

    assert 11 * 60 < estimated < 13 * 60
    assert seen < 5
    assert expected_stage_s(ledger_file(settings), night, lease, "measure", night.runs[1]) > 10 * 60


def test_a_lease_that_is_held_again_after_its_release_costs_from_then_on_and_counts(settings: Settings) -> None:
    night = _night(0.50)
    lease = _rent(settings, night)
    book = ledger(settings)
    book.mark_released("l-1")  # by a reaper elsewhere, which took the night for dead

    again = Intent(night.night, "digitalocean", 2.59, lease.expires_at, "nb-l-1-a2-x1", attempt=2, kind=KIND)
    book.intend("l-1", again)
    book.hold("l-1", "another-machine")

    held = book.lease("l-1")
    assert (held.state, held.released_at) == ("held", None)
    assert held.usd(datetime.now(UTC) + timedelta(hours=1)) == pytest.approx(2.59, rel=0.01)
    late = SystemClock.now
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infra.clock.SystemClock.now", lambda clock: late(clock) + timedelta(hours=1))
        with (
            pytest.raises(BudgetError, match=r"2\.59 USD are spent"),
            record_stage(ledger_file(settings), night, "l-1", "model", max_s=1.0),
        ):
            pass


def test_the_reply_of_a_cloud_that_comes_after_the_release_opens_the_lease_again(settings: Settings) -> None:
    _rent(settings, _night(0.50))
    book = ledger(settings)
    book.mark_released("l-1")

    book.hold("l-1", "machine-of-l-1")

    assert [(one.lease_id, one.released_at) for one in book.open_leases()] == [("l-1", None)]


def test_a_clock_that_is_set_back_makes_no_cost_negative(settings: Settings) -> None:
    lease = _rent(settings, _night(None))

    assert lease.usd(datetime.now(UTC) - timedelta(hours=1)) == 0
    assert stage_book(settings).costs(lease, datetime.now(UTC) - timedelta(hours=1)) == ()


def test_the_nights_folder_tells_attempts_and_stages(settings: Settings) -> None:
    night = _night(12.0)
    lease = _rent(settings, night)
    with record_stage(ledger_file(settings), night, lease.lease_id, "model"):
        pass

    report_night(settings.data, ledger_file(settings), night.night, print)

    rows = lease_rows(night.night, (settings.data / "runs" / night.night / "leases" / "l-1.json").read_bytes())
    assert (rows.lease["kind"], rows.lease["attempt_count"], rows.attempts[0]["outcome"]) == (KIND, 1, "rented")
    assert "model" in [row["stage"] for row in rows.stages]


@pytest.mark.parametrize(
    ("outcome", "reason", "usd"),
    [
        ("no-capacity", "422: Size is not available in this region.", 0.0),
        ("unanswered", "no answer within 60 s", None),  # it may have had a machine
    ],
)
def test_a_lease_that_never_came_to_a_machine_is_told_too(
    settings: Settings, outcome: AttemptOutcome, reason: str, usd: float | None
) -> None:
    night = _night(12.0)
    book = ledger(settings)
    book.intend("l-9", Intent(night.night, "digitalocean", 2.59, datetime.now(UTC), "nb-l-9-a1-x1", kind=KIND))
    book.end_attempt("l-9", outcome, reason)
    book.mark_released("l-9")

    report_night(settings.data, ledger_file(settings), night.night, print)

    rows = lease_rows(night.night, (settings.data / "runs" / night.night / "leases" / "l-9.json").read_bytes())
    assert [(row["outcome"], row["reason"]) for row in rows.attempts] == [(outcome, reason)]
    assert (rows.lease["usd"], rows.stages) == (usd, [])


def test_every_lease_is_shown_with_its_stages(settings: Settings) -> None:
    night = _night(12.0)
    lease = _rent(settings, night)
    with record_stage(ledger_file(settings), night, lease.lease_id, "model"):
        pass
    ledger(settings).mark_released("l-1")

    (view,) = lease_views(ledger(settings), stage_book(settings))

    assert [stage.stage for stage in view.stages] == ["boot", "model", "release"]
    assert sum(stage.usd or 0 for stage in view.stages) == pytest.approx(view.lease.usd(datetime.now(UTC)))
