"""Each planted trouble brings exactly one message, with its cause, to a real webhook and a real mailbox."""

import email
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.header import decode_header, make_header
from pathlib import Path

import pytest
import yaml
from prefect.events.schemas.automations import AutomationCore, EventTrigger
from typer.testing import CliRunner

from bench.errors import BudgetError, CloudDeniedError, ModelError, NightbenchError, NoCapacityError
from bench.record import NightRecord
from flows.cli import app
from flows.nightly import nightly
from flows.notifying import notify_of_night
from flows.prefect_events import PREFIX
from flows.reap import reap
from infra.leases.watchdog import WatchedLease, guard
from infra.ledger.ledger import Intent, Ledger
from infra.notices.leases import LEAKED
from infra.processes.machine_lock import MachineLock
from infra.settings import Settings
from nights.durable import make_folder
from tests.emulators.digitalocean import Emulator
from tests.emulators.digitalocean.faults import FOR_EVER
from tests.emulators.messages import Mailbox, Webhook, mailbox, webhook
from tests.emulators.tracker import tracker
from tests.emulators.virtual_clock import VirtualClock
from tests.flows.conftest import NightFixture
from tests.infra.rented import start_of_an_exited_process
from tests.told.page import PAGE, page
from tests.told.troubles import TROUBLES, WHAT, Trouble, trouble
from tests.warehouse.folders import Shape, write_night
from tests.warehouse.simulated_lake import write
from tests.warehouse.trends.judgements import judgement
from warehouse.lake.database import build_warehouse, opened_once

NIGHT, LEASE = "2026-03-01T010000Z", "01k9xlease"
GONE = (1, start_of_an_exited_process())


@dataclass
class Place:
    """A data folder whose messages go to a webhook and a mailbox, and what finds troubles there."""

    house: NightFixture
    hook: Webhook
    mail: Mailbox
    monkeypatch: pytest.MonkeyPatch

    @property
    def data(self) -> Path:
        return self.house.data

    def check(self) -> None:
        CliRunner().invoke(app, ["--data", str(self.data), "check"])

    def reap(self, *more: str) -> None:
        CliRunner().invoke(app, ["--data", str(self.data), "reap", *more])

    def night(self) -> None:
        """A real night of the house's suite, which ends in whatever way."""
        with suppress(NightbenchError):
            nightly(suite=str(self.house.suite), target="local")

    def end(self, error: Exception | None = None) -> None:
        """The end of a night that was measured, if it was, before."""
        night = write_night(self.data, NIGHT, {"chat": Shape()}) if not (self.data / "runs").exists() else self._read()
        with suppress(Exception), notify_of_night(Settings(), WHAT, lambda _line: None) as notice:
            notice.night = night
            if error is not None:
                raise error

    def _read(self) -> NightRecord:
        return NightRecord.model_validate_json((self.data / "runs" / NIGHT / "night.json").read_bytes())

    def write_runs(self, night: str, verdict: str = "accepted", *names: tuple[str, str | None]) -> None:
        """Runs in the lake, a scenario and a machine each."""
        rows = [run_row(night, verdict, *name) for name in names or (("chat", None),)]
        write(self.data / "lake", "measurements", night, rows)
        build_warehouse(self.data)

    def lease(self, machine: str | None = None) -> None:
        """A lease that has expired, of a process that is gone."""
        past = datetime.now(UTC) - timedelta(minutes=1)
        name = f"nb-{LEASE}-a1-x{past.timestamp():.0f}"
        intent = Intent(night=NIGHT, cloud="digitalocean", usd_per_hour=2.59, expires_at=past, name=name)
        make_folder(self.data)
        ledger = Ledger(self.data / "ledger.sqlite")
        ledger.intend(LEASE, intent)
        if machine is not None:
            ledger.hold(LEASE, machine)

    @property
    def subjects(self) -> list[str]:
        mails = map(email.message_from_string, self.mail.mails)
        return [re.sub(r"\s+", " ", str(make_header(decode_header(one["Subject"])))) for one in mails]


def run_row(night: str, verdict: str, scenario: str, machine: str | None) -> dict[str, object]:
    at = datetime.strptime(night, "%Y-%m-%dT%H%M%SZ").replace(tzinfo=UTC)
    return {
        "night": night,
        "run_id": f"{night}/{scenario}/{machine}",
        "scenario_id": scenario,
        "repeat": 0,
        "suite": "nightly",
        "scenario": scenario,
        "machine": machine,
        "model": "m",
        "outcome": "measured" if verdict in {"accepted", "suspect", "rejected"} else verdict,
        "verdict": verdict,
        "started_at": at,
    }


def nights_ago(days: float) -> str:
    return f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%dT%H%M%SZ}"


@contextmanager
def account(place: Place) -> Iterator[Emulator]:
    """An emulated account whose token the settings have."""
    with Emulator() as emulator:
        known = {
            "NIGHTBENCH_DO_TOKEN": emulator.token,
            "NIGHTBENCH_DO_ENDPOINT": emulator.url,
            "NIGHTBENCH_DO_CA": str(emulator.ca),
            "NIGHTBENCH_DO_SETTLE_S": "0.1",
        }
        for name, value in known.items():
            place.monkeypatch.setenv(name, value)
        yield emulator


def ends_with(error: Exception) -> Callable[[Place], None]:
    def plant(place: Place) -> None:
        for _ in range(2):
            place.end(error)

    return plant


def failed(place: Place) -> None:
    place.house.write_suite(fault="oom_at_start")
    place.night()
    place.check()


def rejected(place: Place) -> None:
    place.write_runs(NIGHT, "rejected")
    for _ in range(2):
        place.end()


def in_use(place: Place) -> None:
    with MachineLock(place.data / "machine.lock", place.data).hold(pytest.fail, wait=False):
        place.night()


def no_space(place: Place) -> None:
    place.monkeypatch.setenv("NIGHTBENCH_MIN_FREE_GIB", "90000")
    place.night()


def no_book(place: Place) -> None:
    make_folder(place.data / "events.sqlite")
    place.end(ModelError("no such model"))


def changed(direction: str) -> Callable[[Place], None]:
    def plant(place: Place) -> None:
        place.write_runs(NIGHT)
        write_night(place.data, NIGHT, {"chat": Shape()})
        said = judgement(NIGHT)
        changes = tuple(one.model_copy(update={"direction": direction}) for one in said.changes)
        said = said.model_copy(update={"changes": changes})
        (place.data / "runs" / NIGHT / "judgement.json").write_text(said.model_dump_json())
        for _ in range(2):
            place.end()

    return plant


def killed(place: Place) -> None:
    make_folder(place.data / "living")
    (place.data / "living" / "a-run").touch()
    for _ in range(2):
        place.check()


def stale_suite(place: Place) -> None:
    rows = [run_row(NIGHT, "accepted", "chat", None) | {"suite": "synthetic"}]
    write(place.data / "lake", "measurements", NIGHT, rows)
    build_warehouse(place.data)
    for _ in range(2):
        place.check()


def stays_away(*gone: tuple[str, str | None], others: Sequence[tuple[str, str | None]]) -> Callable[[Place], None]:
    def plant(place: Place) -> None:
        place.write_runs(nights_ago(4), "accepted", *gone, *others)
        for days in (1.2, 0.2):
            night = nights_ago(days)
            rows = [run_row(night, "failed", *one) for one in gone] + [
                run_row(night, "accepted", *one) for one in others
            ]
            write(place.data / "lake", "measurements", night, rows)
            build_warehouse(place.data)
            place.check()

    return plant


def fills_up(place: Place) -> None:
    make_folder(place.data)
    place.monkeypatch.setenv("NIGHTBENCH_MIN_FREE_GIB", "90000")
    for _ in range(2):
        place.check()


def leak(place: Place) -> None:
    place.lease()
    for _ in range(2):
        place.check()


def broken_check(place: Place) -> None:
    make_folder(place.data / "ledger.sqlite")
    for _ in range(2):
        place.check()
    (place.data / "ledger.sqlite").rmdir()


def not_released(*argv: str) -> Callable[[Place], None]:
    """Whoever tries it, and a check after it, which finds the same machine."""

    def plant(place: Place) -> None:
        with account(place) as emulator:
            past = datetime.now(UTC) - timedelta(minutes=1)
            machine = emulator.plant_droplet(f"nb-{LEASE}-a1-x{past.timestamp():.0f}", foreign=False)
            emulator.fault("DELETE", r"/v2/droplets/\d+", phase="status", status=403, times=FOR_EVER)
            place.lease(str(machine.droplet_id))
            for _ in range(2):
                place.reap(*argv)
                place.check()

    return plant


def blind(place: Place) -> None:
    with account(place):
        place.monkeypatch.setenv("NIGHTBENCH_DO_TOKEN", "dop_v1_wrong")
        for _ in range(2):
            place.reap()


def broken_reap(place: Place) -> None:
    make_folder(place.data / "ledger.sqlite")
    for _ in range(2):
        with suppress(NightbenchError):
            reap()
    (place.data / "ledger.sqlite").rmdir()


def gives_up(place: Place) -> None:
    place.lease()
    clock = VirtualClock(place.data / "clock")
    guard(WatchedLease(place.data / "ledger.sqlite", LEASE, *GONE), clock, lambda _attempt: None, lambda _line: None)


def hangs(place: Place) -> None:
    place.monkeypatch.setattr("infra.notices.send.PATIENCE_S", 0.3)
    place.hook.is_hanging = True
    killed(place)
    assert place.hook.titles == []
    place.hook.is_hanging = False
    place.check()


def answers_500(place: Place) -> None:
    place.hook.status = 500
    killed(place)
    assert place.hook.titles == []
    place.hook.status = 200
    place.check()


def tracker_answers_500(place: Place) -> None:
    with tracker("github") as site:
        place.monkeypatch.setenv("NIGHTBENCH_TRACKER_URL", site.url)
        place.monkeypatch.setenv("NIGHTBENCH_TRACKER_TOKEN", site.token)
        site.fault = (500, b"", {})
        killed(place)
        assert site.states == []
        site.fault = None
        place.monkeypatch.setattr("infra.notices.issues.SETTLED", timedelta(0))
        place.check()
        assert site.states == [(trouble("killed night").title, "open")]


def refuses(place: Place) -> None:
    place.mail.refuses = True
    killed(place)
    assert place.mail.mails == []
    place.mail.refuses = False
    place.check()


PLANTS: dict[str, Callable[[Place], None]] = {
    "failed night": failed,
    "rejected night": rejected,
    "spent budget": ends_with(BudgetError("the budget of 5 USD is spent")),
    "no capacity": ends_with(NoCapacityError("no capacity in atl1")),
    "refused token": ends_with(CloudDeniedError("the token is wrong: set another one")),
    "machine in use": in_use,
    "full disk": no_space,
    "book of events that cannot be written": no_book,
    "any other error": ends_with(RuntimeError("a bug")),
    "regression": changed("worse"),
    "improvement": changed("better"),
    "killed night": killed,
    "stale suite": stale_suite,
    "stale series": stays_away(("chat", None), others=[("code", None)]),
    "stayed-away machine": stays_away(("chat", "b"), ("code", "b"), others=[("chat", "a"), ("code", "a")]),
    "disk that fills up": fills_up,
    "leak": leak,
    "check that fails": broken_check,
    "lease that cannot be released": not_released(),
    "token refused to the reaper": blind,
    "reap that fails": broken_reap,
    "watchdog that cannot release": not_released("--lease", LEASE),
    "watchdog that gives up": gives_up,
    "webhook that hangs": hangs,
    "webhook that answers 500": answers_500,
    "tracker that answers 500": tracker_answers_500,
    "mail server that refuses": refuses,
}


@pytest.fixture
def place(house: NightFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with webhook() as hook, mailbox() as mail:
        urls = f"json://{hook.url}/ mailto://{mail.address}?from=nights@example.com&to=team@example.com"
        monkeypatch.setenv("NIGHTBENCH_NOTIFY_URLS", urls)
        monkeypatch.setenv("NIGHTBENCH_HEARTBEAT_URL", f"http://{hook.url}/beat")
        monkeypatch.setenv("NIGHTBENCH_MACHINE_LOCK", str(house.data / "machine.lock"))
        yield Place(house, hook, mail, monkeypatch)


@pytest.mark.usefixtures("nights_without_prefect", "calibrated")
@pytest.mark.parametrize("one", [one for one in TROUBLES if not one.test], ids=lambda one: one.name)
def test_a_trouble_is_told_once_to_each_address(place: Place, one: Trouble) -> None:
    PLANTS[one.name](place)

    assert [one.is_told_by(title) for title in place.hook.titles] == [True], place.hook.titles
    assert place.subjects == place.hook.titles
    assert one.cause in place.hook.taken[0]["title"] + place.hook.taken[0]["message"], place.hook.taken
    assert (place.hook.taken[0]["type"] == "info") == (one.name == "improvement")


@pytest.mark.usefixtures("nights_without_prefect", "calibrated")
def test_a_series_that_stays_away_is_told_beside_a_suite_that_is_stale(place: Place) -> None:
    trial = nights_ago(2)
    write(place.data / "lake", "measurements", trial, [run_row(trial, "accepted", "x", None) | {"suite": "trial"}])

    stays_away(("chat", None), others=[("code", None)])(place)

    assert sorted(place.hook.titles) == sorted(set(place.hook.titles))
    assert [title.partition(" has no ")[0] for title in sorted(place.hook.titles)] == [
        "series m chat of suite nightly",
        "suite trial",
    ]


@pytest.mark.parametrize("count", [3, pytest.param(100, marks=pytest.mark.matrix)])
def test_quiet_nights_bring_their_own_messages_and_no_other(place: Place, count: int) -> None:
    nights = [nights_ago(count - at) for at in range(count)]
    for night in nights:
        write(place.data / "lake", "measurements", night, [run_row(night, "accepted", "chat", None)])
    build_warehouse(place.data)
    planned = write_night(place.data, nights[0], {"chat": Shape()})

    with opened_once(place.data):
        for night in nights:
            with notify_of_night(Settings(), WHAT, pytest.fail) as notice:
                notice.night = planned.model_copy(update={"night": night})
    place.check()

    assert place.hook.titles == [f"{WHAT}, night {night}: 1 accepted" for night in nights]
    assert {one["type"] for one in place.hook.taken} == {"info"}
    assert place.hook.called == ["/beat"] * count


def test_a_lost_computer_is_told_by_whoever_expects_its_heartbeat(place: Place) -> None:
    """An outside service alerts where no call came since its last look, as after the second night, which is not run."""
    place.write_runs(NIGHT)
    calls: list[int] = []
    for is_alive in (True, False):
        if is_alive:
            place.end()
        calls.append(len(place.hook.called) - sum(calls))

    assert calls == [1, 0]


def test_the_page_of_troubles_is_up_to_date_and_each_line_has_its_test() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.told"
    assert {one.name for one in TROUBLES if not one.test} == PLANTS.keys()
    assert len(TROUBLES) >= 20


def test_the_documented_automation_is_one_that_prefect_takes_and_names_our_events() -> None:
    how_to = PAGE.parents[1] / "how-to" / "be-notified.md"
    (documented,) = re.findall(r"```yaml\n(.*?)```", how_to.read_text("utf-8"), re.DOTALL)

    (automation,) = (AutomationCore.model_validate(one) for one in yaml.safe_load(documented)["automations"])

    kinds = {"regression.confirmed", LEAKED}
    assert isinstance(automation.trigger, EventTrigger)
    assert automation.trigger.expect == {f"{PREFIX}{kind}" for kind in kinds}
