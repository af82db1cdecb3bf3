"""Every net catches what the page of nets says it catches, within the time that the page says."""

import pytest

from infra.leases.nets import exposure, nets_under
from tests.infra.rented import Rig
from tests.nets import CASES, PAGE, Case, page, row_of

STALE = "run `.venv/bin/python -m tests.nets`"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.play.__name__.strip("_"))
def test_a_net_catches_what_dies_within_the_time_on_the_page(rig: Rig, case: Case) -> None:
    assert row_of(case, case.caught_s(rig)) in PAGE.read_text().splitlines(keepends=True), STALE


def test_the_page_has_these_cases_and_nothing_else() -> None:
    lines = PAGE.read_text().splitlines(keepends=True)
    rows = [next(line for line in lines if line.startswith(f"| {case.dies} |")) for case in CASES]

    assert PAGE.read_text() == page(rows), STALE


def test_a_net_that_needs_a_setting_is_shown_as_off_with_its_name() -> None:
    off = {
        net.net: net.stands for net in nets_under(is_rented=True, why_no_switch="set it", server=None) if not net.is_up
    }

    assert off == {
        "worker's hook": "off: PREFECT_API_URL is not set",
        "machine's own switch": "off: set it",
    }


def test_only_a_rented_machine_has_the_nets_of_a_cloud() -> None:
    names = {net.net for net in nets_under(is_rented=False, why_no_switch=None, server=None)}

    assert names == {"teardown", "worker's hook", "watchdog", "reaper"}


def test_without_the_switch_the_death_of_this_computer_is_billed_without_end() -> None:
    told = exposure(why_no_switch="let it delete itself", lease_minutes=60, usd_per_hour=2.59)

    assert (
        "billed without end, at 2.59 USD/h or 62.16 USD a day, unless another computer runs `nightbench reap`" in told
    )
    assert "after the lease's expiry: let it delete itself, or let another computer" in told


def test_with_the_switch_it_is_billed_until_the_lease_expires() -> None:
    assert exposure(why_no_switch=None, lease_minutes=90, usd_per_hour=2.59).startswith(
        "if this computer fails, the machine deletes itself at its lease's expiry, at most 3.88 USD; "
    )
