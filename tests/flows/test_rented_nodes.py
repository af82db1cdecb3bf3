"""Commands on several rented machines at once: all or none are rented, and one that is lost costs a row."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import NoCapacityError
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.renting import KIND, MACHINE, Account, renting
from tests.flows.serving import free_port
from tests.flows.test_nodes import MEET, write_scenarios
from warehouse.lake.query import run_sql

pytestmark = [pytest.mark.prefect, pytest.mark.matrix]


@pytest.fixture
def account(house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with renting(tmp_path, house) as account:
        for name, value in account.settings.items():
            monkeypatch.setenv(name, value)
        yield account


def write_suite(account: Account, nodes: int, **programs: str) -> None:
    suite = account.house.suite
    write_scenarios(account.house, **programs)
    text = suite.read_text().replace("nodes = 2", f"nodes = {nodes}").replace("\n[model]", MACHINE, 1)
    suite.write_text(text.replace("budget_usd = 20.0", "budget_usd = 100.0"))


@pytest.mark.usefixtures("prefect_api")
def test_where_two_of_eight_machines_cannot_be_had_the_others_are_given_back_and_the_run_has_the_reason(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_CAPACITY_WAIT_S", "0")
    write_suite(account, 8, meets=MEET.format(port=free_port(), dies="pass"))
    account.emulator.capacity[KIND, "atl1"] = 6

    said = "6 of the 8 machines that its commands need at once were rented, and are released: .* no capacity"
    with pytest.raises(NoCapacityError, match=said.replace("no capacity", f"has no {KIND} available now")):
        run_nightly(account.house, "digitalocean")

    assert len(account.names()) == 6
    ((outcome, reason),) = run_sql(account.house.data, "SELECT outcome, reason FROM measurements").rows
    assert outcome == "not-run"
    assert "6 of the 8 machines" in reason
    account.judge()


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_a_machine_that_is_lost_while_its_command_runs_ends_the_others_and_the_night_goes_on(
    account: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NIGHTBENCH_SSH_PATIENCE_S", "30")
    flag = tmp_path / "runs"
    # Only the first run loses its machine, in whatever order the runs were drawn: the night has one to go on with.
    waits = f"os.path.exists({str(flag)!r}) or (open({str(flag)!r}, 'w').write(master), time.sleep(600))"
    write_suite(account, 2, meets=MEET.format(port=free_port(), dies=waits))
    account.house.suite.write_text(account.house.suite.read_text().replace("repeats = 1", "repeats = 2"))
    is_over = threading.Event()

    def vanish() -> None:
        while not (flag.exists() and flag.read_text()):
            if is_over.wait(0.2):
                return
        (lost,) = [one for one in account.emulator.living("nb") if one.address != flag.read_text()]
        account.emulator.reclaim(lost.droplet_id)

    reclaimer = threading.Thread(target=vanish)
    reclaimer.start()
    try:
        run_nightly(account.house, "digitalocean")
    finally:
        is_over.set()
        reclaimer.join()

    rows = run_sql(account.house.data, "SELECT outcome, reason FROM measurements ORDER BY 1").rows
    assert [outcome for outcome, _reason in rows] == ["failed", "measured"]
    assert "the command was ended: node 1 of 2" in rows[0][1]
    stages = run_sql(account.house.data, "SELECT count(DISTINCT lease_id) FROM stages WHERE stage = 'measure'").rows
    assert stages[0][0] >= 2
    usd = run_sql(account.house.data, "SELECT max(usd_per_hour) FROM measurements").rows
    assert usd[0][0] == pytest.approx(2 * 1.99, rel=0.5)
    account.judge()
