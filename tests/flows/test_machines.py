"""A night over several machines: side by side, each for itself, and what the night says of those that failed."""

import os
import signal
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from bench.errors import BudgetError, HostError, MachinesEndedError, NoCapacityError, SuiteError
from bench.record import NightEnd, NightRecord
from flows.ending import handle_stop_signals
from flows.machines import run_machines
from flows.rental import release_at_end
from infra.bootstrap import cloud_named, ledger
from infra.clock import SystemClock
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, LeaseRequest
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage import store
from tasks.machine import capacity_wait_s
from tests.flows.conftest import NightFixture
from warehouse.rows.unmeasured_rows import not_run_row

pytestmark = pytest.mark.usefixtures("nights_without_prefect")

SUITE = """
name = "two"
repeats = 2
budget_usd = 12.0
[model]
name = "tiny"
source = "generated:tiny?seed=0"
[engine]
version = "0.32.0"
max_model_len = 4096
[[machines]]
name = "mi300x"
kind = "gpu-mi300x1-192gb"
[[machines]]
name = "mi325x"
kind = "gpu-mi325x1-256gb"
[[scenarios]]
name = "one"
isl = 16
osl = 8
concurrency = 1
request_count = 12
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
    return Settings()


def night_of(settings: Settings, folder: Path, text: str = SUITE) -> NightRecord:
    suite = folder / "two.toml"
    suite.write_text(text)
    night = make_night(suite, "digitalocean", poc=False, is_draft=True)
    store.write_json(store.night_file(settings.data, night.night), night)
    return night


def measure(settings: Settings, part: NightRecord) -> None:
    for run in store.missing_runs(settings.data, part):
        store.run_folder(settings.data, part.night, run).mkdir(parents=True)


def test_without_capacity_for_one_machine_the_other_measures_and_the_night_says_what_is_missing(
    settings: Settings, tmp_path: Path
) -> None:
    night = night_of(settings, tmp_path)
    both = threading.Barrier(2, timeout=300)

    def benchmark(part: NightRecord) -> BaseException | None:
        both.wait()  # they run at the same time
        if part.suite.machine.name == "mi325x":
            return NoCapacityError("digitalocean has no gpu-mi325x1-256gb available now")
        measure(settings, part)
        return None

    error = run_machines(settings, night, benchmark)

    assert isinstance(error, MachinesEndedError)
    assert str(error) == (
        "mi325x: 2 of its 2 runs are missing, because digitalocean has no gpu-mi325x1-256gb available now; the runs of "
        f"mi300x are complete; run `nightbench run --resume {night.night}` for the missing ones"
    )
    end = NightEnd.model_validate_json(store.end_file(settings.data, night.night).read_bytes())
    reasons = {(run.scenario.machine.name, str(not_run_row(night, run, end)["reason"])) for run in night.runs}
    assert reasons == {
        ("mi300x", "not started: the night was stopped or is still running"),
        ("mi325x", "not started: digitalocean has no gpu-mi325x1-256gb available now"),
    }

    resumed: list[str | None] = []
    assert run_machines(settings, night, lambda part: resumed.append(part.suite.machine.name)) is None
    assert resumed == ["mi325x"]


def test_a_night_without_capacity_says_for_how_many_nights_in_a_row(settings: Settings, tmp_path: Path) -> None:
    first = night_of(
        settings, tmp_path, SUITE.replace('[[machines]]\nname = "mi325x"\nkind = "gpu-mi325x1-256gb"\n', "")
    )
    names = ("2026-03-01T010000Z", "2026-03-02T010000Z", "2026-03-03T010000Z", "2026-03-04T010000Z")
    of_another_suite = first.suite.model_copy(update={"name": "other"})
    said = list[str]()
    for name in names:
        night = first.model_copy(update={"night": name})
        other = night.model_copy(update={"night": f"{name}-other", "suite": of_another_suite})
        for one in (night, other):
            store.write_json(store.night_file(settings.data, one.night), one)
        why = BudgetError("spent") if name == names[0] else NoCapacityError("digitalocean has none")
        error = run_machines(settings, night, lambda _part, why=why: why)  # type: ignore[misc]
        said.append(str(error))

    assert said == [
        "spent",
        "digitalocean has none",
        f"digitalocean has none; no capacity for 2 nights in a row, since night {names[1]}",
        f"digitalocean has none; no capacity for 3 nights in a row, since night {names[1]}",
    ]
    end = NightEnd.model_validate_json(store.end_file(settings.data, names[3]).read_bytes())
    assert (end.ending, end.reason) == ("No capacity", said[3])


def test_a_night_waits_for_a_machine_until_a_time_of_day_once(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    monkeypatch.setenv("NIGHTBENCH_CAPACITY_UNTIL", f"{now + timedelta(hours=3):%H:%M}")
    night, until = night_of(settings, tmp_path), Settings()
    old = night.model_copy(update={"started_at": now - timedelta(days=2)})

    assert 2.9 * 3600 < capacity_wait_s(until, night) <= 3 * 3600
    assert capacity_wait_s(until, old) == until.capacity_wait_s  # a machine that is replaced later waits no day
    assert capacity_wait_s(settings, night) == settings.capacity_wait_s
    monkeypatch.setenv("NIGHTBENCH_CAPACITY_UNTIL", "06:00 Europe/Berlim")
    with pytest.raises(ValidationError, match="the time zone 'Europe/Berlim' is unknown here"):
        Settings()


def test_a_machine_that_is_lost_is_replaced_for_its_own_runs_only(settings: Settings, tmp_path: Path) -> None:
    night, rented = night_of(settings, tmp_path), list[str | None]()

    def benchmark(part: NightRecord) -> BaseException | None:
        rented.append(part.suite.machine.name)
        if rented.count("mi300x") == 1 and part.suite.machine.name == "mi300x":
            return HostError("the machine is gone")
        measure(settings, part)
        return None

    assert run_machines(settings, night, benchmark) is None
    assert sorted(map(str, rented)) == ["mi300x", "mi300x", "mi325x"]
    assert store.missing_runs(settings.data, night) == []


def test_a_defect_of_ours_ends_the_night_as_it_is(settings: Settings, tmp_path: Path) -> None:
    night = night_of(settings, tmp_path)

    error = run_machines(settings, night, lambda _part: KeyError("a bug"))

    assert isinstance(error, KeyError)


def test_the_budget_is_divided_by_what_the_leases_cost_and_one_host_is_refused(
    settings: Settings, tmp_path: Path
) -> None:
    night = night_of(settings, tmp_path)

    assert sum(night.budget_shares.values()) == pytest.approx(12.0)
    assert night.budget_shares["mi325x"] > night.budget_shares["mi300x"] > 0
    with pytest.raises(SuiteError, match=r"runs on 2 machines \(mi300x, mi325x\), and --target ssh:a@b:22 is one host"):
        make_night(tmp_path / "two.toml", "ssh:a@b", poc=False)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_two_machines_are_rented_releases_both(house: NightFixture, tmp_path: Path, stop: int) -> None:
    settings = Settings()
    night = night_of(settings, tmp_path)
    both = threading.Barrier(3, timeout=300)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def benchmark(part: NightRecord) -> BaseException | None:
        request = LeaseRequest((Choice("local"),), minutes=60, machine=part.suite.machine.name)
        with release_at_end(settings, part.night, request.machine):
            cloud = cloud_named(settings, "local")
            take_lease(cloud, ledger(settings), SystemClock(), request, night=part.night)
            both.wait()
            SystemClock().sleep(60)
        return None

    def interrupt() -> None:
        both.wait()
        os.kill(os.getpid(), stop)

    handle_stop_signals(settings.data)
    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            run_machines(settings, night, benchmark)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    released = sorted(str(lease.machine) for lease in ledger(settings).leases() if lease.state == "released")
    assert released == ["mi300x", "mi325x"]
    assert house.leftovers() == []
    assert len(store.missing_runs(settings.data, night)) == 4
