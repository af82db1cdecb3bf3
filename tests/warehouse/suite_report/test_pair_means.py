"""The mean ratio of two machines over the shapes of a comparison, held against arithmetic done by hand."""

import math
from pathlib import Path

import pytest

from bench.suite.report import ReportTable
from infra.loadgen.suite_file import parse_suite_file
from tests.warehouse.lake.test_machine_pairs import NIGHT, rows_of
from warehouse.lake.lake import write_rows
from warehouse.suite_report.measured import NightValues
from warehouse.suite_report.pair_means import pair_mean_rows

SUITE = parse_suite_file(Path(__file__).parents[3] / "suites" / "llama-4-mi300x-h200.toml")[0]
METRIC = "output_throughput_tok_per_s"
# Tokens per second of the MI300X and of the H200, by the name of a scenario.
SPEEDS = {"serve/short": (120.0, 100.0), "serve/long": (100.0, 100.0), "as-posted/short": (110.0, 100.0)}
T_975_1 = 12.7062  # of one degree of freedom, from a table


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        row | {"scenario": f"{name}@llama-4-maverick@{machine}", "scenario_id": f"{place}{machine[0] * 15}"}
        for place, (name, speeds) in enumerate(SPEEDS.items())
        for machine, speed in zip(("mi300x", "h200"), speeds, strict=True)
        for row in rows_of(machine, (speed, speed, speed), 20.0)
    ]
    write_rows(tmp_path / "lake", "measurements", NIGHT, rows)
    return tmp_path


@pytest.mark.parametrize(
    ("only", "logs"), [("serve/", [math.log(1.2), 0.0]), ("as-posted/", [math.log(1.1)]), ("scout/", [])]
)
def test_the_mean_is_that_of_the_tables_own_scenarios_beside_the_1_1_of_the_post(
    data: Path, only: str, logs: list[float]
) -> None:
    table = next(one for one in SUITE.report.tables if one.kind == "machine_pair_means" and one.only == only)

    found = list(pair_mean_rows(SUITE, _of(table), [], NightValues(NIGHT, {}, data=data)))

    assert len(found) == bool(logs)
    for row in found:
        middle = sum(logs) / len(logs)
        assert (row["machines"], row["scenarios"]) == ("mi300x over h200", len(logs))
        assert row["mean_ratio"] == pytest.approx(math.exp(middle))
        if len(logs) > 1:
            half = T_975_1 * (logs[0] - middle)  # the deviation of two values over the root of two
            assert row["mean_ratio_high"] == pytest.approx(math.exp(middle + half), rel=1e-3)
        assert row["published"].startswith("1.1")
        assert row["ratio"] == pytest.approx(math.exp(middle) / 1.1)


def _of(table: ReportTable) -> ReportTable:
    """The same with the one metric that the rows have."""
    return table.model_copy(update={"metrics": (METRIC,)})
