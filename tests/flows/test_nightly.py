"""A whole night through the real Prefect into the real DuckDB; the engine's place is taken by the truth server."""

import json
import shutil
import socket

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterName,
)
from prefect.client.schemas.objects import Artifact

from bench.errors import BudgetError, MachineInUseError, ModelError, NoSpaceError
from infra.clouds.cloud import Offer
from infra.clouds.local import LocalCloud
from infra.ledger.ledger import Ledger
from infra.processes.machine_lock import MachineLock
from infra.reporting import silent
from infra.settings import Settings
from infra.storage import store
from tests.flows.conftest import ABOUT_SPEED, HEALTHY, Ended, NightFixture, run_nightly
from tests.pairs import matrix, thin_matrix
from warehouse.lake.query import run_sql
from warehouse.load import load_night

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_api", "calibrated")]

NOTHING: list[str] = []
MEASURED = {"accepted", "suspect"}  # which of the two, the noise of this host decides


def night(house: NightFixture, resume: str | None = None) -> Ended:
    return run_nightly(house, resume=resume)


def ask(house: NightFixture, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in run_sql(house.data, sql).rows]


def shown_by(house: NightFixture) -> dict[str, list[Artifact]]:
    """What the UI shows of the nights of a house's suite; the nights of other tests are on the same server."""
    name = FlowRunFilterName(any_=[f"nightly {house.suite} on local"])
    found: dict[str, list[Artifact]] = {}
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(flow_run_filter=FlowRunFilter(name=name)):
            of_this_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run.id]))
            for artifact in client.read_artifacts(artifact_filter=of_this_run):
                found.setdefault(str(artifact.key), []).append(artifact)
    return found


def state_of(house: NightFixture) -> tuple[str, str]:
    """Type and name of the state in which the one night of a house's suite ended, as Prefect's API shows it."""
    name = FlowRunFilterName(any_=[f"nightly {house.suite} on local"])
    with get_client(sync_client=True) as client:
        (run,) = client.read_flow_runs(flow_run_filter=FlowRunFilter(name=name))
    assert run.state is not None
    return run.state.type.value, str(run.state.name)


def test_a_healthy_night_ends_with_rows_that_only_a_busy_host_makes_suspect_and_nothing_left(
    house: NightFixture,
) -> None:
    house.write_suite(repeats=2)

    summary = night(house)

    doubts = {str(code) for (code,) in ask(house, "SELECT DISTINCT code FROM findings WHERE severity <> 'info'")}
    assert doubts <= ABOUT_SPEED
    assert (set(summary.verdicts) <= HEALTHY, sum(summary.verdicts.values())) == (True, 4)
    assert bool(doubts) or summary.verdicts == {"accepted": 4}
    assert ("rejected" in summary.verdicts) or state_of(house) == ("COMPLETED", "Completed")
    assert house.leftovers() == NOTHING


def test_a_night_is_lake_warehouse_report_and_run_folders(past: NightFixture) -> None:
    (name,) = store.nights(past.data)

    page = (past.data / "reports" / f"{name}.html").read_text()
    assert name in page
    assert ask(past, "SELECT count(*) FROM requests") == [(36,)]
    assert ask(past, "SELECT count(*) > 0, count(other_cpu_share) > 0 FROM telemetry") == [(True, True)]
    assert ask(past, "SELECT count(*) FROM measurements WHERE other_cpu_share BETWEEN 0 AND 1") == [(2,)]
    looks = "count(*) > 0, count(error), bool_and(requests_running + requests_waiting >= 0), bool_and(at_s IS NOT NULL)"
    assert ask(past, f"SELECT {looks} FROM server_samples") == [(True, 0, True, True)]
    assert ask(past, "SELECT count(*), sum(usd) FROM leases") == [(1, 0.0)]
    assert ask(past, "SELECT outcome, kind FROM attempts") == [("rented", "local")]
    told = "SELECT stage, count(*) FROM stages WHERE stage NOT LIKE 'between%' GROUP BY stage ORDER BY min(started_at)"
    stages = ["boot", "software", "model", "canary", "calibrate", "serve", "measure", "release"]
    assert ask(past, told) == [(stage, 2 if stage in {"canary", "measure"} else 1) for stage in stages]
    assert len(list((past.data / "runs" / name).glob("*/0/MANIFEST.sha256"))) == 2


def test_the_servers_view_stands_beside_ours(past: NightFixture) -> None:
    inside = "bool_and(ttft_ms >= server_ttft_ms + server_queue_ms), count(server_mean_itl_ms)"
    assert ask(past, f"SELECT {inside} FROM requests") == [(True, 36)]
    counted = "sum(server_finished_length), sum(server_finished_abort), sum(server_prefix_cache_hits)"
    assert ask(past, f"SELECT {counted} FROM measurements") == [(39, 0, 0)]
    steady = "bool_and(live_mean >= 0.99 * concurrency_asked), bool_and(steady_duration_s > 0)"
    assert ask(past, f"SELECT {steady} FROM measurements") == [(True, True)]


def test_loading_a_night_twice_adds_no_row(past: NightFixture) -> None:
    before = ask(past, "SELECT * FROM measurements ORDER BY run_id")

    load_night(past.data, *store.nights(past.data))

    assert ask(past, "SELECT * FROM measurements ORDER BY run_id") == before
    assert ask(past, "SELECT count(*) FROM requests") == [(36,)]


def test_what_was_asked_and_what_was_found_stand_side_by_side(past: NightFixture) -> None:
    versions = "engine_version_asked, engine_version_found, kv_cache_tokens, cpu_count > 0, git_commit IS NOT NULL"
    assert ask(past, f"SELECT DISTINCT {versions} FROM measurements") == [("0.32.0", "0.32.0", 524288, True, True)]


def test_another_version_than_asked_is_rejected(house: NightFixture) -> None:
    house.write_suite(fault="wrong_version")

    summary = night(house)

    assert summary.verdicts == {"rejected": 2}
    assert state_of(house) == ("FAILED", "Rejected")
    codes = ask(house, "SELECT DISTINCT code FROM findings WHERE status = 'FAIL'")
    assert codes == [("engine_version_conflict",)]


@pytest.mark.usefixtures("nights_without_prefect")
def test_a_server_that_miscounts_is_never_accepted(house: NightFixture) -> None:
    house.write_suite(fault="miscount")

    summary = night(house)

    assert "accepted" not in summary.verdicts


@pytest.mark.usefixtures("nights_without_prefect")
@pytest.mark.parametrize("fault", matrix(["http500:4", "sse_error:4", "cut:4", "short:4", "no_done:4"], kept=1))
def test_every_fourth_answer_broken_is_rejected(house: NightFixture, fault: str) -> None:
    house.write_suite(fault=fault)

    summary = night(house)

    assert summary.verdicts == {"rejected": 2}
    assert ask(house, "SELECT count(*) FROM findings WHERE code = 'failure_rate' AND status = 'FAIL'") == [(2,)]


@pytest.mark.usefixtures("nights_without_prefect")
def test_a_server_is_asked_the_same_before_its_first_and_after_its_last_load_and_none_of_it_is_counted(
    house: NightFixture,
) -> None:
    night(house)

    same = "bool_and(logprob_mean_before = logprob_mean_after AND greedy_fingerprint_before = greedy_fingerprint_after)"
    asked = "count(logprob_mean_before), count(DISTINCT greedy_fingerprint_before), min(logprob_token_count)"
    assert ask(house, f"SELECT {same}, {asked} FROM measurements") == [(True, 2, 1, 107)]
    counted = "max(abs(ev_server_client_tokens_diff)), max(abs(ev_server_client_prompt_diff)), max(ev_prefix_hit_share)"
    assert ask(house, f"SELECT {counted} FROM measurements") == [(0, 0, 0)]


@pytest.mark.usefixtures("nights_without_prefect")
def test_a_night_with_broken_numerics_is_rejected_beside_the_one_before(house: NightFixture) -> None:
    night(house)
    house.write_suite(fault="numerics:1")

    broken = night(house)

    assert broken.verdicts == {"rejected": 2}
    found = ask(house, f"SELECT DISTINCT code FROM findings WHERE status = 'FAIL' AND night = '{broken.night}'")
    assert found == [("quality_below",)]


@pytest.mark.usefixtures("nights_without_prefect")
def test_numerics_that_break_under_load_are_rejected_at_once(house: NightFixture) -> None:
    house.write_suite(fault="numerics:6")  # from the first question after the last load on

    summary = night(house)

    assert summary.verdicts == {"rejected": 2}
    assert ask(house, "SELECT code FROM findings WHERE status = 'FAIL'") == [("numerics_changed",)] * 2
    after = [json.loads(file.read_text())["accuracy"]["after"] for file in house.data.glob("runs/*/*/*/record.json")]
    assert [answers is None for answers in after].count(False) == 1  # only the last run's record holds them


@pytest.mark.usefixtures("nights_without_prefect")
def test_an_engine_that_will_not_start_fails_its_runs_in_its_own_words(house: NightFixture) -> None:
    house.write_suite(fault="oom_at_start")

    summary = night(house)

    assert summary.verdicts == {"failed": 2}
    stages = ask(house, "SELECT DISTINCT stage, reason LIKE '%KV cache memory%' FROM failures")
    assert stages == [("server", True)]
    assert house.leftovers() == NOTHING


def test_a_server_that_dies_costs_one_run_and_the_night_goes_on(house: NightFixture) -> None:
    house.write_suite(fault="die_after:20")

    summary = night(house)

    assert state_of(house) == ("FAILED", "Failed")
    assert (set(summary.verdicts) - MEASURED, summary.verdicts["failed"]) == ({"failed"}, 1)
    shown = "stage, reason LIKE '%EngineDeadError%', output_throughput_tok_per_s"
    failed = ask(house, f"SELECT {shown} FROM measurements WHERE outcome = 'failed'")
    assert failed == [("server", True, None)]
    assert house.leftovers() == NOTHING


@pytest.mark.usefixtures("nights_without_prefect")
def test_a_run_in_which_nothing_was_answered_is_failed_and_holds_no_number(house: NightFixture) -> None:
    house.write_suite(fault="http500:1")

    summary = night(house)

    assert summary.verdicts == {"failed": 2}
    assert ask(house, "SELECT DISTINCT ttft_p50_ms, completed FROM measurements") == [(None, None)]


@pytest.mark.usefixtures("nights_without_prefect")
def test_a_port_in_use_fails_its_runs_and_names_the_port(house: NightFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("NIGHTBENCH_ENGINE_PORT", str(port))

        summary = night(house)

    assert summary.verdicts == {"failed": 2}
    assert ask(house, f"SELECT count(*) FROM failures WHERE reason LIKE 'port {port} %'") == [(2,)]


def test_a_full_disk_is_said_before_anything_is_rented(house: NightFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTBENCH_MIN_FREE_GIB", "1e9")

    with pytest.raises(NoSpaceError, match="GiB free, 1e\\+09 GiB needed"):
        night(house)

    assert house.leftovers() == NOTHING
    assert not (house.data / "runs").exists()


def test_a_night_beside_another_one_plans_and_rents_nothing(house: NightFixture) -> None:
    lock = MachineLock(Settings().machine_lock, house.data / "other")

    with lock.hold(silent, wait=False), pytest.raises(MachineInUseError, match="measures on this computer"):
        night(house)

    assert house.leftovers() == NOTHING
    assert not (house.data / "runs").exists()


@pytest.mark.usefixtures("nights_without_prefect")
def test_a_corrupt_model_ends_the_night_with_rows_that_were_not_run(house: NightFixture) -> None:
    night(house)
    weights = next((house.data / "models").glob("*/model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")

    with pytest.raises(ModelError, match=r"model\.safetensors"):
        night(house)

    newest = store.nights(house.data)[-1]
    rows = ask(house, f"SELECT DISTINCT verdict, stage, reason FROM measurements WHERE night = '{newest}'")
    assert [row[:2] for row in rows] == [("not-run", "model")]
    assert "model.safetensors" in str(rows[0][2])
    assert house.leftovers() == NOTHING


@pytest.mark.usefixtures("nights_without_prefect")
def test_resuming_a_night_runs_only_what_is_missing(after_a_night: NightFixture) -> None:
    house = after_a_night
    (first,) = store.nights(house.data)
    kept, removed = sorted((house.data / "runs" / first).glob("*/0"))
    before = (kept / "record.json").read_bytes()
    shutil.rmtree(removed)

    again = night(house, resume=first)

    assert (set(again.verdicts) <= MEASURED, sum(again.verdicts.values())) == (True, 2)
    assert (kept / "record.json").read_bytes() == before
    assert store.nights(house.data) == [first]
    assert ask(house, "SELECT leases, open_leases, usd FROM night_costs") == [(2, 0, 0.0)]


def test_resuming_a_whole_night_rents_nothing(after_a_night: NightFixture) -> None:
    house = after_a_night
    (first,) = store.nights(house.data)
    verdicts = ask(house, "SELECT verdict, count(*) FROM measurements GROUP BY verdict")

    again = night(house, resume=first)

    newest = max(shown_by(house)["progress"], key=lambda bar: str(bar.created))
    assert (newest.description, newest.data) == (f"Runs of night {first}", 100.0)
    assert sorted(again.verdicts.items()) == sorted(verdicts)
    assert len(Ledger(house.data / "ledger.sqlite").leases()) == 1


def crash(*_given: object, **_named: object) -> object:
    msg = "a bug"
    raise RuntimeError(msg)


@pytest.mark.parametrize(
    "place",
    thin_matrix(
        [
            "infra.agent.prepare.prepare_model",
            "infra.agent.prepare.ready_engine",
            "infra.agent.operations.calibrate_night",
            "infra.agent.operations.read_host",
            "infra.agent.operations.measure_run",
            "infra.engines.server.stop",
            "tasks.loading.load_night",
            "tasks.loading.write_report",
        ],
        each=3,
    ),
)
def test_a_crash_anywhere_leaves_nothing_rented_and_nothing_running(
    house: NightFixture, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    house.write_suite(fault="slow_child")
    monkeypatch.setattr(place, crash)

    with pytest.raises(RuntimeError, match="a bug"):
        night(house)

    halves = [path for path in house.leftovers() if ".partial-" not in path]
    assert halves == NOTHING


@pytest.mark.parametrize(
    "place",
    matrix(
        ["infra.engines.server_facts.look", "infra.engines.server.bring_up", "infra.loadgen.driver.read_driver_report"],
        kept=1,
    ),
)
def test_a_crash_of_a_run_is_a_failed_run_and_the_night_ends_with_its_rows(
    house: NightFixture, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    house.write_suite(fault="slow_child")
    monkeypatch.setattr(place, crash)

    night(house)

    rows = ask(house, "SELECT outcome, reason FROM measurements")
    assert [row[0] for row in rows] == ["failed", "failed"]
    assert all("RuntimeError: a bug" in str(row[1]) for row in rows)
    assert [path for path in house.leftovers() if ".partial-" not in path] == NOTHING


def test_the_ui_shows_plan_progress_results_findings_and_the_report(past: NightFixture) -> None:
    assert {"plan", "progress", "results", "findings", "report"} <= shown_by(past).keys()


@pytest.mark.usefixtures("nights_without_prefect")
def test_a_budget_that_is_used_up_ends_the_night_and_gives_the_machine_back(
    house: NightFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalCloud, "offers", lambda _cloud: [Offer("local", 3.60)])  # a tenth of a cent a second
    text = house.write_suite().read_text().replace("run_timeout_s = 60", "run_timeout_s = 600")
    house.suite.write_text(text + "\n[machine]\nlease_minutes = 5\nbudget_usd = 0.80\n")

    with pytest.raises(BudgetError, match="was not started"):
        night(house)

    rows = ask(house, "SELECT outcome, stage, reason FROM measurements")
    assert {(outcome, stage) for outcome, stage, _ in rows} == {("not-run", "budget")}
    assert "not started: measure of " in str(rows[0][2])
    assert ask(house, "SELECT open_leases, usd > 0, usd < 0.80 FROM night_costs") == [(0, True, True)]
    assert house.leftovers() == NOTHING
