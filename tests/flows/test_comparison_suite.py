"""The suite that compares two machines, in its local shape: both "machines" are this computer, one after the other."""

from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture, run_nightly
from warehouse.lake.query import run_sql

pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("calibrated", "nights_without_prefect")]
SUITE = Path(__file__).parents[2] / "suites" / "llama-4-mi300x-h200.toml"


def test_both_machines_of_the_comparison_measure_every_shape_on_leases_of_their_own(house: NightFixture) -> None:
    run_nightly(house, suite=SUITE)

    assert house.leftovers() == []
    found = run_sql(
        house.data,
        "SELECT machine, outcome, count(*), count(DISTINCT lease_id) FROM measurements GROUP BY ALL ORDER BY 1",
    )
    assert found.rows == (("h200", "measured", 5, 1), ("mi300x", "measured", 5, 1))
    leases = run_sql(house.data, "SELECT machine, rented_at, released_at FROM leases ORDER BY rented_at").rows
    assert [lease[0] for lease in leases] == ["mi300x", "h200"]
    assert leases[0][2] <= leases[1][1]  # the second began when the first had ended
    refused = run_sql(house.data, "SELECT DISTINCT refused FROM machine_pairs").rows
    assert set(refused) <= {(None,)}
