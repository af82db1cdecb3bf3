"""The star: dimensions with keys by content, facts by these keys, and a wide row a run."""

from pathlib import Path

import pytest

from tests.warehouse.simulated_lake import write_lake
from warehouse.lake.query import run_sql
from warehouse.schema.star import DIMENSIONS

NIGHTS = 6


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six nights on three hosts, with an upgrade of the engine on the way."""
    return write_lake(tmp_path_factory.mktemp("star"), NIGHTS, requests=1)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_each_run_has_one_row_in_each_dimension(data: Path, dimension: str) -> None:
    joined = f"SELECT count(*) FROM fact_run JOIN dim_{dimension} USING ({dimension}_key)"

    assert run_sql(data, joined).rows == run_sql(data, "SELECT count(*) FROM measurements").rows


def test_a_dimension_has_one_row_for_each_combination(data: Path) -> None:
    hosts = run_sql(data, "SELECT host, last_night FROM dim_host ORDER BY host").rows
    stacks = "SELECT engine_version_found, first_night FROM dim_stack ORDER BY first_night"

    assert [host for host, _last in hosts] == ["host-a", "host-b", "host-slow"]
    assert hosts[-1][1] == "2026-02-05T010000Z"
    assert run_sql(data, stacks).rows == (("1.0", "2026-01-01T010000Z"), ("1.1", "2026-01-22T010000Z"))


def test_a_key_depends_on_nothing_but_its_columns(data: Path, tmp_path: Path) -> None:
    other = write_lake(tmp_path, 3, scenarios=1, requests=1)
    keys = "SELECT host, host_key FROM dim_host ORDER BY host"

    assert run_sql(other, keys).rows == run_sql(data, keys).rows


def test_valid_facts_are_the_values_of_metrics(data: Path) -> None:
    valid = "SELECT night, metric, value FROM fact_measurement WHERE is_valid ORDER BY ALL"
    invalid = "SELECT count(DISTINCT run_id) FROM fact_measurement WHERE NOT is_valid"

    assert (
        run_sql(data, valid).rows == run_sql(data, "SELECT night, metric, value FROM metric_values ORDER BY ALL").rows
    )
    assert run_sql(data, invalid).rows == ((2 * NIGHTS,),)


def test_a_metric_has_its_unit_and_direction(data: Path) -> None:
    said = "SELECT unit, direction, min_effect FROM dim_metric WHERE metric IN (?, ?) ORDER BY direction"

    assert run_sql(data, said, ("ttft_p99_ms", "output_throughput_tok_per_s")).rows == (
        ("ms", -1, 0.05),
        ("tok/s", 1, 0.02),
    )
    assert run_sql(data, "SELECT metric FROM fact_measurement ANTI JOIN dim_metric USING (metric)").rows == ()


def test_a_price_has_the_nights_in_which_it_was_paid(data: Path) -> None:
    said = "SELECT kind, usd_per_hour, valid_from, valid_to FROM dim_price"

    assert run_sql(data, said).rows == (("gpu-1", 5.0, "2026-01-01T010000Z", "2026-02-05T010000Z"),)
