"""What is scheduled starts by itself, on a server and a worker as `nightbench up` starts them, with every service on.

A newer dependency is only locked if this passes: with sqlalchemy 2.1 the scheduler of prefect 3.8.8 failed each time,
and no other test noticed, because their server schedules nothing.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import DeploymentResponse
from prefect.events.actions import PauseDeployment
from prefect.events.filters import EventFilter, EventNameFilter, EventRelatedFilter, EventResourceFilter
from prefect.events.schemas.automations import AutomationCore
from prefect.events.schemas.events import Event
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.states import Completed, Crashed, Failed, Pending, Running, Scheduled
from pydantic import SecretStr

from flows.check import find_faults
from flows.dead_runs import STARTS_WITHIN, WORKER_LABEL, schedule_again
from flows.service.parts import WORKER
from flows.service.scheduled_nights import faults_of_nights, read_nights
from infra.ledger.ledger import Intent, Ledger
from infra.processes.liveness import FOLDER
from infra.settings import Settings
from tasks.server_calls import ServerCalls
from tests.emulators.messages import Mailbox, mailbox, webhook
from tests.flows.as_documented import DOWN, PAGE, SHELL, STATUS, UP, AsDocumented, service
from tests.flows.serving import DATABASE, PATIENCE_S, client, refuses_others
from tests.told.troubles import trouble

pytestmark = pytest.mark.prefect
EVERY_MINUTE = "* * * * *"


@pytest.fixture(scope="module")
def computer(tmp_path_factory: pytest.TempPathFactory, shared: Path | None) -> Iterator[AsDocumented]:
    with service(tmp_path_factory.mktemp("home"), shared) as found:
        yield found


@pytest.fixture(scope="module")
def api(computer: AsDocumented) -> Iterator[SyncPrefectClient]:
    known = {PREFECT_API_URL: computer.api_url, PREFECT_API_AUTH_STRING: computer.login}
    with temporary_settings(known), get_client(sync_client=True) as client:
        yield client


def runs_of(api: SyncPrefectClient, deployment: DeploymentResponse) -> list[FlowRun]:
    only = DeploymentFilter(id=DeploymentFilterId(any_=[deployment.id]))
    return api.read_flow_runs(deployment_filter=only)


def state_names(api: SyncPrefectClient, deployment: DeploymentResponse) -> list[str]:
    return [str(run.state_name) for run in runs_of(api, deployment)]


def errors(log: str) -> list[str]:
    """The errors of a server's log; a locked database is none, because the server tries again."""
    records = re.split(r"\n(?=\d\d:\d\d:\d\d\.\d+ \| )", log)
    wrong = [record for record in records if re.search(r"\| (ERROR|CRITICAL)|Traceback \(most recent", record)]
    return [record for record in wrong if "database is locked" not in record]


def as_documented(site: DeploymentResponse) -> AutomationCore:
    """The automation of the page, with an action that can be seen here."""
    ((text),) = re.findall(r"```yaml\n(automations:.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (automation,) = yaml.safe_load(text)["automations"]
    action = PauseDeployment(source="selected", deployment_id=site.id)
    return AutomationCore.model_validate({**automation, "actions": [action]})


def test_what_is_scheduled_becomes_a_run_that_is_late_without_a_worker_and_ends_with_one(
    computer: AsDocumented, api: SyncPrefectClient
) -> None:
    nightly, reap = (api.read_deployment_by_name(name) for name in ("nightly/nightly", "reap/reap"))
    computer.wait_until(lambda: "Scheduled" in state_names(api, nightly), "the nights of the coming days are runs")
    at_two = {run.expected_start_time.hour for run in runs_of(api, nightly) if run.expected_start_time}
    assert at_two == {2}
    assert "02:00 UTC, Scheduled" in computer.run(STATUS)

    computer.kill("worker")
    assert "the worker of the service is stopped" in computer.run(STATUS, exit_code=1)
    computer.run(SHELL, f"prefect deployment schedule create reap/reap --cron '{EVERY_MINUTE}'")
    computer.wait_until(lambda: "Late" in state_names(api, reap), "a run that no worker takes is late")
    assert "started: worker" in computer.run(UP)
    computer.wait_until(lambda: "Completed" in state_names(api, reap), "the run that was due has ended")
    ended = next(run for run in runs_of(api, reap) if run.state_name == "Completed")

    assert ended.auto_scheduled
    assert ended.created_by is not None
    assert ended.created_by.type == "SCHEDULE"
    events = EventFilter(
        resource=EventResourceFilter(id=[f"prefect.flow-run.{ended.id}"]), related=EventRelatedFilter()
    )
    computer.wait_until(lambda: bool(api.read_events(filter=events, limit=1).events), "its events are kept")
    assert errors(computer.log("server")) == []


def test_the_automation_of_the_page_fires_once_for_a_rejected_night_and_not_for_a_good_one(
    computer: AsDocumented, api: SyncPrefectClient
) -> None:
    nightly, site = (api.read_deployment_by_name(name) for name in ("nightly/nightly", "site/site"))
    automation = api.create_automation(as_documented(site))
    assert not site.paused

    # No run of a schedule that is minutes old: its events are held back for a quarter of an hour, until one is given up
    # that the server never sends, since the scheduler creates its runs without one.
    ends: tuple[State[object], ...] = (Completed(name="No capacity"), Failed(name="Rejected"))
    for state in ends:
        run = api.create_flow_run_from_deployment(nightly.id)
        api.set_flow_run_state(run.id, Running(), force=True)
        api.set_flow_run_state(run.id, state, force=True)

    computer.wait_until(lambda: api.read_deployment(site.id).paused, "the automation has fired")
    fired = EventFilter(
        event=EventNameFilter(name=["prefect.automation.triggered"]),
        resource=EventResourceFilter(id=[f"prefect.automation.{automation}"]),
        related=EventRelatedFilter(),
    )
    computer.wait_until(lambda: bool(api.read_events(filter=fired, limit=10).events), "it is kept that it has fired")
    assert len(api.read_events(filter=fired, limit=10).events) == 1


def test_an_event_of_a_deployed_check_reaches_prefect_by_its_name(
    computer: AsDocumented, api: SyncPrefectClient
) -> None:
    """A machine that was never released, found by the check of the schedule."""
    past = datetime.now(UTC) - timedelta(minutes=1)
    ledger = Ledger(computer.home / "data" / "ledger.sqlite")
    ledger.intend("01k9x", Intent(night="n", cloud="digitalocean", usd_per_hour=1.0, expires_at=past))
    check = api.read_deployment_by_name("check/check")

    def leaked() -> Sequence[Event]:
        # A filter is of the events until it is made.
        named = EventFilter(event=EventNameFilter(name=["nightbench.lease.leaked"]), related=EventRelatedFilter())
        return api.read_events(filter=named, limit=5).events

    api.create_flow_run_from_deployment(check.id)
    computer.wait_until(lambda: bool(leaked()), "the event is kept")
    ledger.mark_released("01k9x")

    (event,) = leaked()
    assert event.resource.id == "nightbench.lease.leaked/01k9x"
    assert event.payload["title"] == "not released: 01k9x"
    assert [one.role for one in event.related] == ["flow-run"]


def test_what_a_locked_database_did_not_take_is_shown_once_it_is_free(
    computer: AsDocumented, api: SyncPrefectClient
) -> None:
    calls = ServerCalls(retry_s=0.1)

    def show() -> None:
        with get_client(sync_client=True) as client:
            client.request("POST", "/variables/", json={"name": "shown_by_a_night", "value": "all of it"})

    (database,) = computer.home.rglob(DATABASE)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        calls.post("a table", show)
        assert not calls.responds(1.0)
        other.execute("ROLLBACK")

    assert calls.settle(PATIENCE_S)
    variable = api.read_variable_by_name("shown_by_a_night")
    assert variable is not None
    assert variable.value == "all of it"


def test_every_service_is_on_and_the_pages_are_served(computer: AsDocumented, api: SyncPrefectClient) -> None:
    services = api.request("GET", "/admin/settings").json()["server"]["services"]

    assert {name for name, service in services.items() if service["enabled"] is False} == {
        "event_logger"
    }  # so by default
    pages = client().get(computer.api_url.removesuffix("/api"))
    assert (pages.status_code, pages.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert client().get(f"{computer.api_url.removesuffix('/api')}/ui-settings").json()["auth"] == "BASIC"


def test_no_page_of_prefects_uis_may_reach_another_host(computer: AsDocumented) -> None:
    ui = computer.api_url.removesuffix("/api")

    answers = [client().get(f"{ui}{path}", headers={"accept": "text/html"}) for path in ("/", "/v2/", "/v2/runs")]

    for answer in answers:
        assert answer.headers["content-type"].startswith("text/html")
        directives = dict(one.strip().split(" ", 1) for one in answer.headers["content-security-policy"].split(";"))
        sources = " ".join(directives.values()).split()
        assert not [
            one for one in sources if "//" in one and not one.startswith(("ws://127.0.0.1:", "ws://localhost:"))
        ]
        assert "*" not in sources
        assert directives["default-src"] == "'self'"


def test_the_server_asks_everybody_for_its_login_and_lets_no_foreign_page_in(computer: AsDocumented) -> None:
    refuses_others(computer.api_url, computer.login)


def test_a_run_that_was_taken_and_never_started_is_scheduled_again_for_the_time_at_which_it_was_due(
    api: SyncPrefectClient,
) -> None:
    deployment = api.create_deployment(api.create_flow_from_name("taken"), name="taken", paused=False)
    taken, running = (api.create_flow_run_from_deployment(deployment) for _ in range(2))
    api.set_flow_run_state(taken.id, Pending(name="Submitting"), force=True)
    api.set_flow_run_state(running.id, Running(), force=True)
    now = datetime.now(UTC)

    nights = read_nights(api, now, "taken/taken")
    early, late = schedule_again(now), schedule_again(now + STARTS_WITHIN + timedelta(minutes=1))

    after, other = api.read_flow_run(taken.id), api.read_flow_run(running.id)
    api.delete_deployment(deployment)
    titles = [one.title for one in faults_of_nights(nights, now + timedelta(hours=1))]
    assert sum("has not begun" in title for title in titles) == 1
    assert early == []
    # The schedule of another test goes on, and its runs may be pending too.
    ours = [line for line in late if taken.name in line or running.name in line]
    assert ours == [f"flow run {taken.name} was taken by a worker that never started it: it is scheduled again"]
    assert after.state is not None
    assert after.state.is_scheduled()
    assert after.state.state_details.scheduled_time == taken.expected_start_time
    assert other.state is not None
    assert other.state.is_running()


def test_a_run_that_crashed_before_it_had_begun_is_scheduled_again_once(api: SyncPrefectClient) -> None:
    deployment = api.create_deployment(api.create_flow_from_name("lost"), name="lost", paused=False)
    unbegun, begun = (api.create_flow_run_from_deployment(deployment) for _ in range(2))
    api.set_flow_run_state(begun.id, Running(), force=True)
    names = {unbegun.name, begun.name}

    def crash_and_reap(*runs: FlowRun) -> list[str]:
        for run in runs:
            api.set_flow_run_state(run.id, Pending(name="Submitting"), force=True)
            api.set_flow_run_state(run.id, Crashed(message="exited with status code 1"), force=True)
        lines = schedule_again(datetime.now(UTC))
        return [line for line in lines if any(name in line for name in names)]

    once = crash_and_reap(unbegun, begun)
    is_offered = api.read_flow_run(unbegun.id).state
    twice = crash_and_reap(unbegun)

    api.delete_deployment(deployment)
    assert once == [f"flow run {unbegun.name} crashed before it had begun: it is scheduled again, once"]
    assert is_offered is not None
    assert is_offered.is_scheduled()
    assert twice == []


def test_up_reports_what_a_killed_worker_left_so_that_no_later_run_waits_for_it(
    computer: AsDocumented, api: SyncPrefectClient
) -> None:
    with paused(computer, api, "reap/reap"):  # its next run would find what is left here
        computer.kill("worker")
        deployment = api.create_deployment(api.create_flow_from_name("left"), name="left", paused=False)
        taken, running, locked, of_others = (api.create_flow_run_from_deployment(deployment) for _ in range(4))
        for run in (taken, running, locked, of_others):
            api.set_flow_run_state(run.id, Pending() if run is taken else Running(), force=True)
            api.update_flow_run_labels(run.id, {WORKER_LABEL: "another" if run is of_others else WORKER})
        lock = computer.home / "data" / FOLDER / str(locked.id)
        lock.parent.mkdir(exist_ok=True)
        lock.touch()  # of a night, which the next reap would report with a message

        shown = computer.run(UP)

        ended = [api.read_flow_run(run.id).state for run in (taken, running, locked, of_others)]
        lock.unlink()
        api.delete_deployment(deployment)
    assert f"flow run {taken.name} was taken by a worker that was killed: it is scheduled again" in shown
    assert [state and state.type.value for state in ended] == ["SCHEDULED", "CRASHED", "RUNNING", "RUNNING"]
    assert ended[1] is not None
    assert ended[1].message == "its worker and its process were killed; it had planned no night"


@contextmanager
def paused(computer: AsDocumented, api: SyncPrefectClient, name: str) -> Iterator[None]:
    """No run of the deployment is under way, and none begins by its schedule."""
    deployment = api.read_deployment_by_name(name)
    busy = {StateType.RUNNING, StateType.PENDING}  # by type: a worker also names a pending run "Submitting"
    api.pause_deployment(deployment.id)
    computer.wait_until(lambda: busy.isdisjoint(run.state_type for run in runs_of(api, deployment)), f"no {name} runs")
    try:
        yield
    finally:
        api.resume_deployment(deployment.id)


def test_what_a_check_finds_of_the_service_is_told_once(computer: AsDocumented, api: SyncPrefectClient) -> None:
    nightly = api.read_deployment_by_name("nightly/nightly")
    due = [datetime.now(UTC) - timedelta(hours=hours) for hours in (1, 28)]

    with telling(computer) as (found, mail):
        with paused(computer, api, "check/check"):  # one that has read an older state would write it to the same book
            left = found()  # of other tests, such as a schedule that is off
            computer.kill("worker")
        dead_worker = found()
        runs = [api.create_flow_run_from_deployment(nightly.id, state=Scheduled(scheduled_time=one)) for one in due]
        api.set_flow_run_state(runs[1].id, Completed(name="Skipped", message="late by 26 h"), force=True)
        nights = found()
        for run in runs:
            api.delete_flow_run(run.id)
        over = found()
        computer.kill("server")
        dead_server = found()

    assert [one["title"] for one in over] == [f"over: {one['title']}" for one in nights]
    told = [*dead_worker, *sorted(nights, key=lambda one: one["title"][-5:]), *dead_server]
    names = ("stopped worker", "missing night", "skipped night", "stopped server")
    for one, expected in zip(told, map(trouble, names), strict=True):
        assert expected.is_told_by(one["title"]), one
        assert expected.cause in one["message"]
    assert len(mail.mails) == len([*left, *told, *over])


@contextmanager
def telling(computer: AsDocumented) -> Iterator[tuple[Callable[[], list[dict[str, str]]], Mailbox]]:
    """What looks twice for the faults of a service and returns the messages that came of it; and its mailbox."""
    with webhook() as hook, mailbox() as mail, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(computer.home))  # no systemd of this user
        mails = f"mailto://{mail.address}?from=nights@example.com&to=team@example.com"
        settings = Settings(
            data=computer.home / "data",
            service_port=computer.port,
            pages_port=computer.pages_port,
            notify_urls=(SecretStr(f"json://{hook.url}/"), SecretStr(mails)),
        )

        def found() -> list[dict[str, str]]:
            hook.taken.clear()
            for _ in range(2):
                find_faults(settings, pytest.fail)
            return [*hook.taken]

        yield found, mail


@pytest.mark.matrix  # its worker gets a minute to end by itself
def test_a_worker_whose_server_is_gone_is_ended_too(computer: AsDocumented) -> None:
    computer.run(UP)
    computer.kill("server")

    assert "stopped: worker, pages" in computer.run(DOWN)

    assert computer.left() == []
