"""Every net catches what the page of nets says it catches, within the time that the page says."""

import pytest

from infra.leases.nets import nets_under
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
    off = {net.net: net.stands for net in nets_under(is_rented=True, has_switch=False, server=None) if not net.is_up}

    assert off == {
        "worker's hook": "off: PREFECT_API_URL is not set",
        "machine's own switch": "off: NIGHTBENCH_DO_DEAD_MAN_TOKEN is not set",
    }


def test_only_a_rented_machine_has_the_nets_of_a_cloud() -> None:
    names = {net.net for net in nets_under(is_rented=False, has_switch=True, server=None)}

    assert names == {"teardown", "worker's hook", "watchdog", "reaper"}
