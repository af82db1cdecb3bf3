"""What people are notified of: a night at its end, what stands between nights, and a call after each good one."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from bench.errors import BudgetError, MachineUnfitError, NightbenchError, UnreachableHostError, UsageError
from flows.cli import app
from flows.notifying import notify_of_night
from flows.service.parts import Service
from flows.service.status import read_status
from infra.notices.event import Event
from infra.notices.tell import tell
from infra.settings import Settings
from infra.storage import store
from tasks.night_notice import night_event
from tests.emulators.messages import Webhook, webhook
from tests.warehouse.folders import whole_night
from tests.warehouse.trends.judgements import write_judgement
from warehouse.load import load_night

NIGHT = "2026-03-01T010000Z"


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as found:
        yield found


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("data")
    whole_night(data, NIGHT)
    load_night(data, NIGHT)
    return data


def settings_of(data: Path, hook: Webhook, **more: object) -> Settings:
    urls = (SecretStr(f"json://{hook.url}/"),)
    return Settings(data=data, notify_urls=urls, heartbeat_url=SecretStr(f"http://{hook.url}/beat"), **more)  # type: ignore[arg-type]


def copied(measured: Path, data: Path) -> Path:
    shutil.copytree(measured, data, ignore=shutil.ignore_patterns("events.sqlite"))
    return data


def damage_lake(data: Path) -> None:
    """Have each file of the lake lose its end."""
    for part in (data / "lake").rglob("*.parquet"):
        part.write_bytes(part.read_bytes()[:-100])


def test_a_night_sends_one_message_with_its_verdicts_and_its_page(measured: Path, hook: Webhook) -> None:
    settings = settings_of(measured, hook, pages_url="http://pages.example")

    for _again in range(2):
        with notify_of_night(settings, "suites/local.toml on local", pytest.fail) as notice:
            notice.night = store.read_night(measured, NIGHT)

    [taken] = hook.taken
    assert taken["title"].startswith(f"suites/local.toml on local, night {NIGHT}: ")
    assert "accepted" in taken["title"]
    assert "audit: " in taken["message"]
    assert taken["message"].endswith(f"http://pages.example/reports/{NIGHT}.html")


def test_a_night_that_fails_says_why_and_what_to_do_next_and_calls_no_heartbeat(
    tmp_path: Path, measured: Path, hook: Webhook
) -> None:
    night = store.read_night(measured, NIGHT)

    def spend() -> None:
        with notify_of_night(settings_of(tmp_path, hook), "a suite", pytest.fail) as notice:
            notice.night = night
            raise BudgetError("the budget of 5 USD is spent")

    with pytest.raises(BudgetError):
        spend()

    [taken] = hook.taken
    assert taken["title"] == f"a suite, night {NIGHT}: out of budget"
    assert taken["type"] == "warning"
    assert "It ended early: BudgetError: the budget of 5 USD is spent" in taken["message"]
    assert f"nightbench run --resume {NIGHT}" in taken["message"]
    assert hook.called == []


def test_a_night_that_fails_again_sends_a_message_where_it_failed_otherwise(
    tmp_path: Path, measured: Path, hook: Webhook
) -> None:
    night = store.read_night(measured, NIGHT)

    def fail(error: NightbenchError) -> None:
        with notify_of_night(settings_of(tmp_path, hook), "a suite", pytest.fail) as notice:
            notice.night = night
            raise error

    no_route, no_gpu = UnreachableHostError("no route to 10.0.0.1"), MachineUnfitError("GPU 3 is gone")
    for error in (no_route, no_route, no_gpu, no_gpu):
        with pytest.raises(type(error)):
            fail(error)

    assert len({taken["title"] for taken in hook.taken}) == 1
    assert [taken["message"].splitlines()[0] for taken in hook.taken] == [
        "It ended early: UnreachableHostError: no route to 10.0.0.1",
        "It ended early: MachineUnfitError: GPU 3 is gone",
    ]


def test_a_good_night_calls_the_heartbeat_and_a_refused_call_is_a_warning(measured: Path, hook: Webhook) -> None:
    night, said = store.read_night(measured, NIGHT), list[str]()
    for status in (200, 500):
        hook.status = status
        with notify_of_night(settings_of(measured, hook), "a suite", said.append) as notice:
            notice.night = night

    assert hook.called == ["/beat", "/beat"]
    assert said == ["the heartbeat http://127.0.0.1 did not take the call: HTTPStatusError"]


def test_a_change_for_the_worse_is_in_the_message_and_calls_no_heartbeat(
    tmp_path: Path, measured: Path, hook: Webhook
) -> None:
    data = copied(measured, tmp_path / "data")
    write_judgement(data, NIGHT)

    with notify_of_night(settings_of(data, hook), "a suite", pytest.fail) as notice:
        notice.night = store.read_night(data, NIGHT)

    assert "worse: confirmed: " in hook.taken[0]["message"]
    assert hook.called == []


@pytest.mark.parametrize("is_built", [True, False])
def test_a_night_whose_warehouse_cannot_be_read_is_not_a_good_one(
    tmp_path: Path, measured: Path, hook: Webhook, *, is_built: bool
) -> None:
    data = copied(measured, tmp_path / "data")
    damage_lake(data)
    if not is_built:
        (data / "warehouse.duckdb").unlink(missing_ok=True)  # then no view can be made over the damaged files

    with notify_of_night(settings_of(data, hook), "a suite", pytest.fail) as notice:
        notice.night = store.read_night(data, NIGHT)

    [taken] = hook.taken
    assert taken["title"] == f"a suite, night {NIGHT}: the warehouse cannot be read"
    assert taken["type"] == "warning"
    assert "No magic bytes found at end of file" in taken["message"]
    assert hook.called == []


def test_a_night_without_a_data_folder_has_no_verdicts_and_no_other_trouble(measured: Path, tmp_path: Path) -> None:
    night = store.read_night(measured, NIGHT)

    event = night_event(Settings(data=tmp_path / "typo"), "a suite", night, BudgetError("it is spent"))

    assert event.title == f"a suite, night {NIGHT}: out of budget"
    assert "cannot be read" not in event.body


def test_a_check_that_cannot_read_the_lake_has_failed_and_says_of_no_fault_that_it_is_over(
    tmp_path: Path, measured: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_NOTIFY_URLS", f"json://{hook.url}/")
    data = copied(measured, tmp_path / "data")
    stale = CliRunner().invoke(app, ["--data", str(data), "check"])

    damage_lake(data)
    unreadable = CliRunner().invoke(app, ["--data", str(data), "check"])

    assert stale.exit_code == 1
    assert isinstance(unreadable.exception, UsageError)
    assert hook.titles == [f"suite synthetic has no data since night {NIGHT}", "`nightbench check` failed"]


@pytest.mark.parametrize("error", [None, BudgetError("the budget of 5 USD is spent")])
def test_a_message_that_fails_in_whatever_way_leaves_the_end_of_its_night_as_it_was(
    measured: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    def fail(*_arguments: object) -> None:
        raise ValueError("hunter2 is no port")

    monkeypatch.setattr("flows.notifying.night_event", fail)
    said, raised = list[str](), list[Exception]()

    def spend() -> None:
        with notify_of_night(settings_of(measured, hook), "a suite", said.append):
            if error is not None:
                raise error

    try:
        spend()
    except Exception as why:  # noqa: BLE001 - whatever it is, the next line looks at it
        raised.append(why)

    assert raised == ([] if error is None else [error])
    assert said == ["no message of this night was sent: ValueError"]


def test_a_good_night_with_an_address_that_python_cannot_parse_is_a_good_night(measured: Path) -> None:
    said = list[str]()
    settings = Settings(data=measured, notify_urls=(SecretStr("json://team:pa]ss@127.0.0.1:9/hook"),))

    with notify_of_night(settings, "another suite", said.append) as notice:
        notice.night = store.read_night(measured, NIGHT)

    assert "was not sent to json://..." in said[0]
    assert "pa]ss" not in "".join(said)


def test_a_night_that_a_person_stops_sends_nothing(tmp_path: Path, hook: Webhook) -> None:
    with pytest.raises(KeyboardInterrupt), notify_of_night(settings_of(tmp_path, hook), "a suite", pytest.fail):
        raise KeyboardInterrupt

    assert hook.taken == []


def test_a_suite_without_new_data_is_a_fault_until_there_is_some(measured: Path) -> None:
    newest = datetime(2026, 3, 1, 22, tzinfo=UTC)
    service = Service(Settings(data=measured, stale_hours=36))

    stale = read_status(service, newest + timedelta(hours=40)).faults
    fresh = read_status(service, newest + timedelta(hours=30)).faults

    assert [fault.title for fault in stale] == [f"suite synthetic has no data since night {NIGHT}"]
    assert fresh == ()


def test_a_suite_that_is_retired_is_listed_and_no_fault(measured: Path) -> None:
    retired = Settings.model_validate({"data": measured, "retired_suites": "other, synthetic"})

    status = read_status(Service(retired), datetime(2026, 5, 1, tzinfo=UTC))

    assert [suite.suite for suite in status.suites] == ["synthetic"]
    assert status.faults == ()


def test_check_sends_a_fault_once_and_that_it_is_over(
    tmp_path: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_NOTIFY_URLS", f"json://{hook.url}/")
    (tmp_path / "service").mkdir()  # a service that was started once, and runs no more
    argv = ["--data", str(tmp_path), "check"]

    first, second = (CliRunner().invoke(app, argv) for _ in range(2))
    shutil.rmtree(tmp_path / "service")
    last = CliRunner().invoke(app, argv)

    assert (first.exit_code, second.exit_code, last.exit_code) == (1, 1, 0)
    assert "the worker of the service is stopped" in first.stdout
    assert last.stdout == "all is well\n"
    parts = [f"the {name} of the service is stopped" for name in ("server", "pages", "worker")]
    assert sorted(hook.titles) == sorted([*parts, *(f"over: {title}" for title in parts)])


def test_check_names_a_data_folder_that_does_not_exist(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["--data", str(tmp_path / "typo"), "check"])

    assert isinstance(done.exception, UsageError)
    assert f"no data folder {tmp_path / 'typo'}" in str(done.exception)
    assert not (tmp_path / "typo").exists()


def test_check_reports_a_fault_itself_where_the_book_of_events_is_damaged(
    tmp_path: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_NOTIFY_URLS", f"json://{hook.url}/")
    (tmp_path / "service").mkdir()
    (tmp_path / "events.sqlite").write_bytes(b"no database" * 100)

    done = CliRunner().invoke(app, ["--data", str(tmp_path), "check"])

    assert done.exit_code == 1
    assert "the worker of the service is stopped" in done.stdout
    assert "no message was sent: the ledger " in done.stderr


def test_a_test_message_goes_to_each_address_and_exits_1_where_one_does_not_take_it(
    tmp_path: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ["--data", str(tmp_path), "check", "--test"]
    without = CliRunner().invoke(app, argv)
    monkeypatch.setenv("NIGHTBENCH_NOTIFY_URLS", f"json://{hook.url}/ json://127.0.0.1:9/")

    half = CliRunner().invoke(app, argv)

    assert without.exit_code != 0
    assert half.exit_code == 1
    assert "1 of 2 addresses took the test message" in half.stdout
    assert hook.titles == ["Nightbench: a test message"]


def test_older_messages_count_for_no_address_that_does_not_take_the_test_message(
    tmp_path: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook.status = 500
    tell(settings_of(tmp_path, hook), Event("night.failed/N", "act", "night N: failed"), lambda _line: None)
    hook.status = 200
    monkeypatch.setenv("NIGHTBENCH_NOTIFY_URLS", f"json://{hook.url}/ json://127.0.0.1:9/")

    done = CliRunner().invoke(app, ["--data", str(tmp_path), "check", "--test"])

    assert hook.titles == ["night N: failed", "Nightbench: a test message"]
    assert "1 of 2 addresses took the test message" in done.stdout
    assert done.exit_code == 1
