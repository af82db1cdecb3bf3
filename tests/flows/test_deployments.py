"""What prefect.yaml deploys, on a server and a worker of its own, as on the computer that runs the nights."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import DeploymentScheduleCreate, DeploymentUpdate, WorkPoolCreate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.schedules import CronSchedule
from prefect.client.schemas.sorting import FlowRunSort
from prefect.flow_engine import run_flow
from prefect.states import Cancelling

from bench.errors import BadRunsError, UsageError
from flows.end_state import is_at_its_end
from flows.nightly import nightly
from flows.service.api import polled_at
from flows.service.deployments import place_machines
from flows.service.parts import WORKER
from flows.service.parts import Service as NightService
from flows.service.scheduled_nights import faults_of_nights, read_nights
from infra.no_telemetry import QUIET
from infra.settings import Settings
from tests.flows.conftest import NightFixture
from tests.flows.deployed import ROOT, begin, finish, state_of, template_of, working
from tests.flows.serving import Service
from warehouse.lake.query import run_sql

pytestmark = pytest.mark.prefect
NOTHING: list[str] = []
MOST_RETURNED = 200  # runs in one answer of Prefect's server
PAGES = "http://pages.example"

CRONS = [
    ("nightly/nightly", "0 2 * * *"),
    ("reap/reap", "*/10 * * * *"),
    ("check/check", "5,35 * * * *"),
    ("weekly-aa/weekly-aa", "0 14 * * 6"),
    ("calibrate/calibrate", "0 12 * * 0"),
    ("compact/compact", "30 12 2 * *"),
    ("site/site", "45 12 * * *"),
]
OFF = {"weekly-aa/weekly-aa"}  # costs two nights
NAMES = [*(name for name, _cron in CRONS), "machine-night/machine-night"]
CONSOLE = {"PREFECT_LOGGING_HANDLERS_CONSOLE_CLASS": "tasks.console.LastingConsole"}
HEARTBEATS = {"machine-night/machine-night": {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}}


@pytest.fixture
def worker(api_url: str, house: NightFixture, tmp_path: Path) -> Iterator[Service]:
    served = {**house.environment, "NIGHTBENCH_PAGES_URL": PAGES}  # as `nightbench up` sets it for its worker
    with working(tmp_path / "worker", api_url, served) as service:
        yield service


def test_a_deployed_night_completes_and_its_page_shows_all_of_it(
    api: SyncPrefectClient, worker: Service, house: NightFixture
) -> None:
    run = finish(api, worker, "nightly/nightly", suite=str(house.suite))

    of_this_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run.id]))
    shown = {artifact.key: artifact for artifact in api.read_artifacts(artifact_filter=of_this_run)}
    tables = {"plan", "results", "findings", "costs", "leases", "changes"}
    assert set(shown) == {*tables, "progress", "summary", "report"}
    assert shown["progress"].data == 100
    assert {row["scenario"] for row in json.loads(str(shown["results"].data))} == {"one", "two"}
    page = Path(str(shown["report"].description))
    assert page.is_file()
    assert page.is_relative_to(house.data)
    assert f"({PAGES}/reports/{page.name})" in str(shown["report"].data)
    runs_and_cost, changes, link = str(shown["summary"].data).split("\n\n")
    assert "2 runs" in runs_and_cost
    assert changes == "confirmed changes: none"
    assert link == f"[The page of night {page.stem}]({PAGES}/reports/{page.name})"
    assert {row["stage"] for row in json.loads(str(shown["costs"].data))} >= {"serve", "measure", "release"}
    assert (house.data / "site" / "night" / page.name).is_file()
    assert worker.stop() == NOTHING
    assert house.leftovers() == NOTHING


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_a_deployed_night_of_failed_runs_ends_as_failed_and_is_not_run_again(
    api: SyncPrefectClient, house: NightFixture
) -> None:
    suite = house.write_suite(fault="oom_at_start")
    run = begin("nightly/nightly", suite=str(suite))
    told: list[bool] = []
    watched = nightly.with_options(on_failure=[lambda _flow, _run, state: told.append(is_at_its_end(state))])

    with pytest.raises(BadRunsError, match="2 failed; `nightbench report "):
        run_flow(watched, flow_run=api.read_flow_run(run.id))  # as the process does that a worker starts

    ended = api.read_flow_run(run.id)
    assert ended.state is not None
    assert (ended.state.type, ended.state.name) == (StateType.FAILED, "Failed")
    assert str(ended.state.message).startswith("runs of night ")
    assert (ended.run_count, ended.empirical_policy.retries, told) == (1, 0, [True])
    assert house.leftovers() == NOTHING


@pytest.mark.usefixtures("prefect_api")
def test_a_scheduled_night_that_could_begin_only_hours_late_is_skipped(
    api: SyncPrefectClient, house: NightFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    nightly_id, now = api.read_deployment_by_name("nightly/nightly").id, datetime.now(UTC)
    begin_end = [(now - timedelta(hours=hours)).isoformat() for hours in (55, 7)]  # two nights that no worker took
    window = dict(zip(("start_time", "end_time"), begin_end, strict=True))
    api.request("POST", "/deployments/{id}/schedule", path_params={"id": nightly_id}, json=window)
    oldest = api.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_ASC)[:2]
    monkeypatch.setenv("NIGHTBENCH_DEPLOYED_TARGETS", "http://none.example")  # what is not skipped is refused at once

    run_flow(nightly, flow_run=oldest[0])
    monkeypatch.setenv("NIGHTBENCH_LATE_HOURS", "60")
    with pytest.raises(UsageError, match="is refused"):
        run_flow(nightly, flow_run=oldest[1])

    skipped, run = (state_of(api, one.id) for one in oldest)
    assert (skipped.name, skipped.is_completed(), run.name) == ("Skipped", True, "Failed")
    assert re.fullmatch(r"late by \d\d h: a night that is more than 6 h late is not run", str(skipped.message))
    assert house.leftovers() == NOTHING


@pytest.mark.usefixtures("prefect_api")
def test_a_deployed_night_of_a_suite_or_a_target_that_is_not_listed_is_refused(
    api: SyncPrefectClient, house: NightFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NIGHTBENCH_DEPLOYED_SUITES")
    asked = {"suite": str(house.suite)}, {"target": "http://127.0.0.1:9"}
    for parameters, why in zip(asked, ("suite .* is refused", "target .* is refused"), strict=True):
        run = begin("nightly/nightly", **parameters)

        with pytest.raises(UsageError, match=why):
            run_flow(nightly, flow_run=api.read_flow_run(run.id))  # as the process does that a worker starts
        assert "is refused: a run of a deployment" in str(state_of(api, run.id).message)
    assert not (house.data / "runs").exists()


def test_a_deployed_reap_gives_back_what_a_dead_night_left(
    api: SyncPrefectClient, worker: Service, house: NightFixture
) -> None:
    (house.data / "machines" / "forgotten").mkdir(parents=True)

    finish(api, worker, "reap/reap")

    assert house.leftovers() == NOTHING
    assert worker.stop() == NOTHING


@pytest.mark.matrix  # what each of them calls is tested by itself
def test_the_site_is_written_the_lake_compacted_and_the_client_calibrated_by_a_worker(
    api: SyncPrefectClient, api_url: str, after_a_night: NightFixture, tmp_path: Path
) -> None:
    with working(tmp_path / "worker", api_url, after_a_night.environment) as worker:
        for name in ("site/site", "compact/compact"):
            finish(api, worker, name)
        run = finish(api, worker, "calibrate/calibrate", streams=[1], ttft_ms=20.0, itl_ms=5.0)
        assert worker.stop() == NOTHING

    assert (after_a_night.data / "site" / "index.html").is_file()
    of_this_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run.id]))
    (table,) = api.read_artifacts(artifact_filter=of_this_run)
    assert [row["streams"] for row in json.loads(str(table.data))] == [1]


@pytest.mark.matrix  # one on a rented machine is cancelled in every `make test`
def test_a_night_cancelled_while_it_measures_leaves_nothing_rented_and_nothing_running(
    api: SyncPrefectClient, worker: Service, house: NightFixture
) -> None:
    suite = house.write_suite(ttft_ms=3000)
    run = begin("nightly/nightly", suite=str(suite))
    loads = "runs/*/*/.partial-*/load/progress.json"
    measured = "runs/*/*/0/MANIFEST.sha256"
    worker.wait_until(lambda: bool(list(house.data.glob(measured))), "a run is measured")
    worker.wait_until(lambda: bool(list(house.data.glob(loads))), "the next load is under way")

    api.set_flow_run_state(run.id, Cancelling())
    worker.wait_until(lambda: state_of(api, run.id).is_final(), "the night is cancelled")

    assert state_of(api, run.id).name == "Cancelled"
    (page,) = (house.data / "runs").glob("*/night.json")
    assert f"night: {page.parent.name}" in api.read_flow_run(run.id).tags
    worker.wait_until(lambda: bool(list(house.data.glob("reports/*.html"))), "what it measured is reported")
    outcomes = "SELECT outcome FROM measurements ORDER BY outcome"
    assert run_sql(house.data, outcomes).rows == (("measured",), ("not-run",))
    assert [left for left in house.leftovers() if ".partial-" not in left] == NOTHING
    assert worker.stop() == NOTHING


def test_whoever_starts_a_night_by_hand_is_told_what_each_parameter_means(api: SyncPrefectClient) -> None:
    schema = api.read_deployment_by_name("nightly/nightly").parameter_openapi_schema

    assert schema is not None
    described = {name for name, parameter in schema["properties"].items() if parameter.get("description")}
    assert described == {"suite", "target", "poc", "resume", "wait", "force", "apply_rules", "machine"}
    listed, anything = schema["properties"]["suite"]["anyOf"]
    assert {"default", "suites/local.toml", "suites/nightly.toml"} <= set(listed["enum"])
    assert anything == {"title": "another file", "type": "string"}  # a suite elsewhere, which the settings list


@pytest.mark.parametrize(("name", "cron"), CRONS)
def test_what_is_deployed_runs_by_itself(api: SyncPrefectClient, name: str, cron: str) -> None:
    (schedule,) = api.read_deployment_by_name(name).schedules

    assert schedule.active == (name not in OFF)
    assert schedule.schedule == CronSchedule(cron=cron, timezone="UTC")


def test_a_server_without_the_nightly_deployment_is_a_fault_with_what_to_do(
    api: SyncPrefectClient,
) -> None:
    now = datetime.now(UTC)
    assert read_nights(api, now) is not None

    nights = read_nights(api, now, "nightly/none")

    assert nights is None
    (fault,) = faults_of_nights(nights, now)
    assert fault.title == "the server has no deployment nightly/nightly, so no night is scheduled"
    assert fault.body == "run `nightbench up`, which deploys prefect.yaml again"


def test_the_nights_that_were_due_are_known_where_more_are_scheduled_than_the_server_returns(
    api: SyncPrefectClient,
) -> None:
    every_minute = DeploymentScheduleCreate(schedule=CronSchedule(cron="* * * * *", timezone="UTC"))
    deployment = api.create_deployment(api.create_flow_from_name("often"), name="often", schedules=[every_minute])
    now = datetime.now(UTC)
    window = {"start_time": (now - timedelta(hours=1)).isoformat(), "min_runs": 300, "max_runs": 300}
    api.request("POST", "/deployments/{id}/schedule", path_params={"id": deployment}, json=window)

    nights = read_nights(api, now, "often/often")

    api.delete_deployment(deployment)
    assert nights is not None
    assert len(nights) == MOST_RETURNED
    assert 59 <= sum(night.due_at < now for night in nights) <= 60


def test_two_nights_wait_for_each_other(api: SyncPrefectClient) -> None:
    deployment = api.read_deployment_by_name("nightly/nightly")

    queue = api.read_work_queue_by_name("nights", work_pool_name="nightbench")
    assert (deployment.work_queue_name, queue.concurrency_limit) == ("nights", 1)
    assert deployment.global_concurrency_limit is None  # its lease ends a night whose server is lost for minutes


@pytest.mark.parametrize("name", NAMES)
def test_no_path_of_the_deploying_computer_is_deployed(api: SyncPrefectClient, name: str) -> None:
    deployment = api.read_deployment_by_name(name)

    step = {"prefect.deployments.steps.set_working_directory": {"directory": "{{ $NIGHTBENCH_HOME }}"}}
    assert deployment.pull_steps == [step]
    assert str(ROOT) not in deployment.model_dump_json()


@pytest.mark.parametrize("name", NAMES)
def test_no_deployed_run_talks_to_anybody(api: SyncPrefectClient, name: str) -> None:
    given = api.read_deployment_by_name(name).job_variables["env"]

    # What is set for the server alone says nothing to a run.
    quiet = {key: value for key, value in QUIET.items() if not key.startswith("PREFECT_SERVER_")}
    assert given == quiet | CONSOLE | HEARTBEATS.get(name, {})


def test_a_worker_on_another_computer_does_not_stand_for_the_one_of_this_service(api: SyncPrefectClient) -> None:
    began, path = datetime.now(UTC) - timedelta(minutes=1), {"work_pool_name": "nightbench"}

    api.request("POST", "/work_pools/{work_pool_name}/workers/heartbeat", path_params=path, json={"name": "further"})

    polled = polled_at(api)
    assert polled is not None
    assert polled > began
    assert polled_at(api, WORKER) is None


def test_a_pool_of_containers_takes_the_machines_of_a_night_and_nothing_else(
    api: SyncPrefectClient, api_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_MACHINES_POOL", "containers")
    monkeypatch.setenv("NIGHTBENCH_MACHINES_IMAGE", "registry.example/team/nightbench:1")
    service = NightService(Settings(data=tmp_path, service_port=int(api_url.split(":")[2].split("/", maxsplit=1)[0])))
    before = api.read_deployment_by_name("machine-night/machine-night")
    with pytest.raises(UsageError, match=r"has no such work pool: run `source .*/service/env` and `prefect work-pool"):
        place_machines(service)

    api.create_work_pool(WorkPoolCreate(name="containers", type="docker", base_job_template=template_of("docker")))
    try:
        place_machines(service)
        placed = api.read_deployment_by_name("machine-night/machine-night")
        assert (placed.work_pool_name, placed.work_queue_name) == ("containers", "machines")
        assert placed.job_variables == {**before.job_variables, "image": "registry.example/team/nightbench:1"}
        assert api.read_deployment_by_name("nightly/nightly").work_pool_name == "nightbench"
    finally:
        undone = DeploymentUpdate(
            work_pool_name="nightbench", work_queue_name="machines", job_variables=before.job_variables
        )
        api.update_deployment(before.id, undone)
        api.delete_work_pool("containers")
