"""Two sides of a warehouse are compared as a person would who knows what was measured."""

import shutil
from pathlib import Path

import pytest

from bench.errors import UsageError
from tests.warehouse.folders import Shape, Told, write_night, write_run
from warehouse.load import load_night
from warehouse.trends.compare import compare, geometric_means

OLD, NEW = "0.32.0+cpu", "0.32.0+dev7"
MEDIAN = "tpot_p50_ms"


def night(data: Path, name: str, gap_ms: float, version: str) -> None:
    shapes = {"chat": Shape(gap_ms=gap_ms)}
    record = write_night(data, name, shapes)
    for run in record.runs:
        write_run(data, record, run, shapes["chat"], Told(engine_version=version))
    load_night(data, name)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights of one engine version, and three of the next, which takes 10 % longer for each token."""
    data = tmp_path_factory.mktemp("versions")
    night(data, "2026-03-01", 5.0, OLD)
    night(data, "2026-03-04", 5.5, NEW)
    for table in (data / "lake").iterdir():
        for day, like in ((2, 1), (3, 1), (5, 4), (6, 4)) if table.is_dir() else ():
            shutil.copytree(table / f"night=2026-03-0{like}", table / f"night=2026-03-0{day}")
    return data


def test_a_slower_engine_version_is_a_confirmed_loss_of_about_its_size(versions: Path) -> None:
    found = compare(versions, OLD, NEW)
    row = next(row for row in found.answer()["pairs"] if row["metric"] == MEDIAN)
    means = {mean["metric"]: mean for mean in geometric_means(found.found.pairs)}

    assert found.exit_code == 1
    assert row["verdict"] == "loss"
    assert row["ci_lo"] < 10 < row["ci_hi"]
    assert row["differs"] == {"engine_version": (OLD, NEW)}
    assert (row["a_leases"], row["b_leases"], row["interval"]) == (3, 3, "between leases")
    assert means[MEDIAN]["ci_lo"] < 1 / 1.1 < means[MEDIAN]["ci_hi"] < 1
    assert means["output_throughput_tok_per_s"]["ratio"] < 1


def test_a_published_number_of_another_model_is_refused_term_by_term(versions: Path) -> None:
    found = compare(versions, OLD, "published:2")

    assert found.found.pairs == ()
    assert "model differs: Llama-3.3-70B published" in found.found.refused[0].reason


def test_a_published_range_is_wrong_usage(versions: Path) -> None:
    with pytest.raises(UsageError, match="printed as 'N/A', which is not one number"):
        compare(versions, OLD, "published:10")
