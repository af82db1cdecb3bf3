"""A finding about single metrics takes their columns out of every view for comparison, and nothing else."""

from pathlib import Path
from typing import Any

import pytest

from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import Shape, whole_night
from warehouse.exporters import read_measurements
from warehouse.imports import import_file
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.rebuild import rebuild
from warehouse.report.page import write_report

AUDIT = Path(__file__).parents[1] / "data" / "audit"


@pytest.fixture(scope="module")
def chunked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loaded night of one run whose stream brought two tokens an event, which its client does not say."""
    data = tmp_path_factory.mktemp("chunked")
    whole_night(data, NIGHT, {"chat": Shape(driver="vllm-bench", warmup=0, event_tokens=2)})
    load_night(data, NIGHT)
    return data


def _ask(data: Path, sql: str) -> dict[str, Any]:
    (row,) = run_sql(data, sql).dicts()
    return row


def _told(row: dict[str, Any], beginning: str) -> list[str]:
    return [name for name, value in row.items() if name.startswith(beginning) and value is not None]


def test_what_was_measured_and_found_is_kept(chunked: Path) -> None:
    kept = _ask(chunked, "FROM measurements")
    found = _ask(chunked, "FROM findings WHERE code = 'chunk_token_ratio'")

    assert _told(kept, "itl") == sorted(kept["withdrawn"], key=list(kept).index)
    assert "itl_event_p99_ms" in kept["withdrawn"]
    assert (found["status"], found["scope"], found["observed"]) == ("FAIL", "metric", 0.5)


def test_the_run_is_accepted_with_its_other_numbers(chunked: Path) -> None:
    kept, accepted = _ask(chunked, "FROM measurements"), _ask(chunked, "FROM accepted")

    differing = {name for name, value in kept.items() if accepted[name] != value}
    assert differing == set(kept["withdrawn"])
    assert accepted["ttft_p99_ms"] == pytest.approx(20.0)


@pytest.mark.parametrize("view", ["standing", "accepted", "results"])
def test_a_view_of_runs_has_null_for_them(chunked: Path, view: str) -> None:
    row = _ask(chunked, f"FROM {view}")

    assert _told(row, "itl") == []
    assert _told(row, "e2el") != []


@pytest.mark.parametrize("view", ["nightly_medians", "latest_vs_30"])
def test_a_view_of_metrics_has_no_row_of_them(chunked: Path, view: str) -> None:
    metrics = {metric for (metric,) in run_sql(chunked, f"SELECT metric FROM {view}").rows}

    assert {metric for metric in metrics if metric.startswith("itl")} == set()
    assert "tpot_p50_ms" in metrics


def test_exporters_do_not_tell_them(chunked: Path) -> None:
    (one,) = read_measurements(chunked, [])

    assert one.latencies_ms("itl_event") == {}
    assert one.latencies_ms("tpot") != {}


def test_the_page_of_a_night_is_written_without_them(chunked: Path) -> None:
    assert "accepted" in write_report(chunked, NIGHT).read_text()


def test_a_rebuild_withdraws_the_same(chunked: Path) -> None:
    before = {path: path.read_bytes() for path in (chunked / "lake").rglob("*.parquet")}

    rebuild(chunked)

    assert {path: path.read_bytes() for path in (chunked / "lake").rglob("*.parquet")} == before


def _imported(tmp_path: Path, file: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    import_file(data, file)
    return data


def test_a_claim_loses_what_was_withdrawn_and_keeps_the_rest(tmp_path: Path) -> None:
    data = _imported(tmp_path, AUDIT / "chunked_stream.json")

    kept, standing = _ask(data, "FROM claims"), _ask(data, "FROM standing_claims")

    assert _told(kept, "itl") != []
    assert _told(standing, "itl") == []
    assert {name for name, value in kept.items() if standing[name] != value} == set(kept["withdrawn"])
    found = _ask(data, "FROM claim_findings WHERE code = 'chunked_stream'")
    assert (found["status"], found["observed"] > 1) == ("FAIL", True)


def test_only_claims_that_are_accepted_may_be_compared(tmp_path: Path) -> None:
    data = _imported(tmp_path, AUDIT / "little_excess.json")

    assert run_sql(data, "SELECT verdict FROM standing_claims").rows == (("rejected",),)
    assert run_sql(data, "FROM accepted_claims").rows == ()


def test_a_percentile_of_too_few_requests_is_kept_and_withheld(tmp_path: Path) -> None:
    data = _imported(tmp_path, AUDIT / "tail_unsupported.json")

    kept, standing = _ask(data, "FROM claims"), _ask(data, "FROM standing_claims")

    assert kept["completed"] < 368
    assert "ttft_p99_ms" in kept["withdrawn"]
    assert "ttft_p50_ms" not in kept["withdrawn"]
    assert (kept["ttft_p99_ms"] is None, standing["ttft_p99_ms"]) == (False, None)


def test_a_cost_that_does_not_say_of_which_tokens_is_withdrawn(tmp_path: Path) -> None:
    data = _imported(tmp_path, AUDIT / "cost_denominator_unstated.csv")

    withdrawn = run_sql(data, "SELECT DISTINCT unnest(withdrawn) FROM claims").rows

    assert [name for (name,) in withdrawn if name.startswith("usd_per_mtok")] != []
    assert run_sql(data, "SELECT count(usd_per_mtok_unstated) FROM standing_claims").rows == ((0,),)


@pytest.mark.parametrize(("file", "beginning"), [("power_range.csv", "power"), ("temp_order.csv", "temp")])
def test_what_telemetry_cannot_have_read_is_withdrawn(tmp_path: Path, file: str, beginning: str) -> None:
    data = _imported(tmp_path, AUDIT / file)

    kept, standing = _ask(data, "FROM claims"), _ask(data, "FROM standing_claims")

    assert _told(kept, beginning) != []
    assert _told(standing, beginning) == []
