"""`nightbench costs`: the ledger beside the emulated cloud's invoice."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bench.cost.invoice import NOT_BILLED, NOT_RECORDED
from flows.cli import app
from infra.bootstrap import ledger_file
from infra.settings import Settings
from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import Rig

HOURS = 30


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """An account in which one lease was held for 30 hours; a machine of others runs on."""
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock) as emulator:
        for name, value in {
            "NIGHTBENCH_DATA": str(tmp_path),
            "NIGHTBENCH_DO_TOKEN": emulator.token,
            "NIGHTBENCH_DO_ENDPOINT": emulator.url,
            "NIGHTBENCH_DO_CA": str(emulator.ca),
        }.items():
            monkeypatch.setenv(name, value)
        found = Rig(emulator, clock, ledger_file(Settings()).parent)
        emulator.plant_droplet("web-1")
        lease = found.take(minutes=HOURS * 120)
        clock.sleep(HOURS * 3600)
        found.release_lease(lease)
        yield found


def _costs(rig: Rig, *more: str) -> Result:
    return CliRunner().invoke(app, ["costs", "--month", f"{rig.clock.now():%Y-%m}", *more])


def _rows(rig: Rig) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(_costs(rig, "--json").stdout)["rows"]
    return rows


def test_each_day_of_a_lease_stands_beside_its_part_of_the_invoice(rig: Rig) -> None:
    rows = _rows(rig)

    ours = [row for row in rows if row["sort"] == "machine"]
    assert len(ours) in {2, 3}  # days, by the hour at which the clock began
    assert sum(row["usd"] for row in ours) == pytest.approx(HOURS * 2.59, rel=0.01)
    assert all(abs(row["difference_usd"]) < 0.02 for row in ours)
    assert {row["night"] for row in ours} == {"2026-11-21"}
    (others,) = (row for row in rows if row["sort"] == "other")
    assert (others["name"], others["remark"]) == ("1 items", "not ours")


def test_an_invoice_that_bills_more_is_shown_and_the_page_has_both_sides(rig: Rig) -> None:
    rig.emulator.state.billed_extra_share = 0.25

    done = _costs(rig)

    assert done.exit_code == 0, done.output
    assert "billed more than expected" in done.output
    page = (rig.folder / "reports" / f"costs-{rig.clock.now():%Y-%m}.html").read_text()
    assert "billed more than expected" in page
    assert "not ours" in page


def test_a_machine_of_ours_that_the_ledger_lacks_exits_1(rig: Rig) -> None:
    rig.emulator.plant_droplet("nb-lost-a1-x1", foreign=False)
    rig.clock.sleep(3600)

    done = _costs(rig)

    assert done.exit_code == 1
    assert NOT_RECORDED in " ".join(done.output.split())


def test_without_the_scope_our_own_side_is_shown_with_the_reason(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTBENCH_DO_TOKEN", rig.emulator.add_token("snapshot:read"))

    done = _costs(rig)

    assert done.exit_code == 0
    assert "lacks the scope billing:read" in " ".join(done.output.split())


def test_a_month_that_cannot_be_read_is_refused(rig: Rig) -> None:
    del rig

    done = CliRunner().invoke(app, ["costs", "--month", "november"])

    assert "must have the form YYYY-MM" in str(done.exception)


def test_leases_and_what_is_kept_are_told_apart_with_their_sum(rig: Rig) -> None:
    rig.emulator.plant_snapshot("nb-golden-1", size_gb=6720.0, foreign=False)

    told = next(line for line in _costs(rig).stdout.splitlines() if line.startswith("expected: "))

    both, leases, kept = map(float, re.findall(r"\d+\.\d\d", told))
    assert told == f"expected: {both:.2f} USD, of it {leases:.2f} for leases and {kept:.2f} for what is kept"
    assert kept > 0
    assert (both, leases) == pytest.approx((leases + kept, HOURS * 2.59), rel=0.01)
    (page,) = (Settings().data / "reports").glob("costs-*.html")
    assert f"<p>{told.replace('expected', 'Expected')}.</p>" in page.read_text()


def test_traffic_is_expected_to_cost_nothing_and_what_is_billed_stands_beside_it(rig: Rig, tmp_path: Path) -> None:
    (without,) = [row for row in _rows(rig) if row["sort"] == "traffic"]
    day = f"{rig.clock.now():%Y-%m-%d}"
    invoice = tmp_path / "invoice.csv"
    invoice.write_text(
        "product,group_description,description,hours,start,end,USD,project_name,category\n"
        f"Bandwidth,,Transfer over the pool,1,{day} 00:00:00 +0000,{day} 01:00:00 +0000,$4.50,,iaas\n"
    )

    shown = json.loads(_costs(rig, "--json", "--invoice", str(invoice)).stdout)["rows"]

    assert (without["usd"], without["usd_billed"], without["remark"]) == (0.0, None, NOT_BILLED)
    (traffic,) = [row for row in shown if row["sort"] == "traffic"]
    assert (traffic["usd"], traffic["usd_billed"], traffic["difference_usd"]) == (0.0, 4.5, 4.5)
