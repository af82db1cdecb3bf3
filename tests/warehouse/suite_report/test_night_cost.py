"""The cost of a night: its machines, and a day of what its suite keeps, held against arithmetic done by hand."""

from pathlib import Path

import pytest

from bench.suite.report import ReportTable
from bench.suite.suite import Suite
from infra.loadgen.suite_file import parse_suite_file
from tests.warehouse.folders import Shape, lease, write_night
from warehouse.load import load_night
from warehouse.suite_report.measured import NightValues
from warehouse.suite_report.night_cost import night_cost_rows

SUITE = parse_suite_file(Path(__file__).parents[3] / "suites" / "llama-3.3-70b-mi300x.toml")[0]
NIGHT = "2026-03-01"
BUCKET = 2 * 70.55e9 / 1024**3 * 0.02  # USD a month for weights of 16 bits
IMAGE = 50 * 0.06
DAYS = 28  # of a month that is paid in full


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cost")
    write_night(folder, NIGHT, {"chat": Shape()})
    load_night(folder, NIGHT)
    return folder


def _usd(suite: Suite, data: Path) -> dict[str, float | None]:
    rows = night_cost_rows(suite, ReportTable(title="Cost", kind="night_cost"), [], NightValues(NIGHT, {}, data=data))
    return {row["item"]: row["usd"] for row in rows}


@pytest.mark.parametrize(
    ("keeps", "usd_a_month"),
    [({}, IMAGE), ({"cache_bucket_minutes": 30}, IMAGE + BUCKET), ({"cache_volume_gib": 150}, IMAGE + 15.0)],
    ids=["image", "bucket", "volume"],
)
def test_a_night_pays_a_day_of_what_its_suite_keeps(data: Path, keeps: dict[str, int], usd_a_month: float) -> None:
    suite = SUITE.model_copy(update={"model": SUITE.model.model_copy(update=keeps)})

    found = _usd(suite, data)

    assert found["total"] == lease()["usd"]
    assert found["total with a day of what is kept"] == pytest.approx(lease()["usd"] + usd_a_month / DAYS, rel=1e-3)
    assert found["bucket with the models, a month"] == pytest.approx(BUCKET, rel=0.01)


def test_traffic_is_free_at_the_cloud_whose_prices_say_so_and_else_unknown(data: Path) -> None:
    assert (lease()["cloud"], _usd(SUITE, data)["traffic"]) == ("static", None)
