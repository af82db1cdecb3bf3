from pathlib import Path

import pytest

from bench.errors import UnreadableResultError
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import Shape, Told, seal, write_night, write_run
from warehouse.columns import COLUMNS
from warehouse.folders import Place, read_run
from warehouse.rows import Row, lease_row, run_rows, usd_per_mtok_output

GOOD = Told()


def _row(data: Path, shape: Shape, told: Told = GOOD) -> Row:
    night = write_night(data, NIGHT, {"chat": shape})
    folder = write_run(data, night, night.runs[0], shape, told)
    return run_rows(Place(NIGHT, night.runs[0].scenario.scenario_id, 0), read_run(folder)).measurement


def test_seconds_become_milliseconds(tmp_path: Path) -> None:
    row = _row(tmp_path, Shape(ttft_ms=20.0, gap_ms=5.0, tokens=8))

    found = [row[f"{metric}_p50_ms"] for metric in ("ttft", "tpot", "itl", "e2el")]
    assert found == pytest.approx([20.0, 5.0, 5.0, 55.0])
    assert row["client_lag_p99_ms"] == pytest.approx(0.05)


def test_a_row_has_exactly_the_declared_columns(tmp_path: Path) -> None:
    assert set(_row(tmp_path, Shape())) == {column.name for column in COLUMNS["measurements"]}


def test_a_percentile_that_few_requests_cannot_support_is_null(tmp_path: Path) -> None:
    row = _row(tmp_path, Shape(requests=40))

    assert (row["ttft_p90_ms"] is None, row["ttft_p95_ms"]) == (False, None)


def test_a_run_whose_every_request_failed_has_no_latency(tmp_path: Path) -> None:
    row = _row(tmp_path, Shape(requests=40, failed=40))

    assert (row["completed"], row["failed"]) == (0, 40)
    assert [row[name] for name in ("duration_s", "ttft_mean_ms", "output_throughput_tok_per_s")] == [None] * 3


def test_a_failed_request_has_null_times_and_counts(tmp_path: Path) -> None:
    shape = Shape(requests=40, failed=1)
    night = write_night(tmp_path, NIGHT, {"chat": shape})
    folder = write_run(tmp_path, night, night.runs[0], shape)

    table = run_rows(Place(NIGHT, night.runs[0].scenario.scenario_id, 0), read_run(folder)).requests

    assert table is not None
    last, before = table.to_pylist()[-1], table.to_pylist()[-2]
    assert last["outcome"] == "connection"
    assert [last[name] for name in ("ttft_ms", "tpot_ms", "e2el_ms", "output_tokens", "itl_ms")] == [None] * 5
    assert before["itl_ms"] == pytest.approx([5.0] * 7)


def test_one_token_answers_have_an_empty_list_of_gaps_and_no_tpot(tmp_path: Path) -> None:
    shape = Shape(requests=40, tokens=1)
    night = write_night(tmp_path, NIGHT, {"chat": shape})
    folder = write_run(tmp_path, night, night.runs[0], shape)

    table = run_rows(Place(NIGHT, night.runs[0].scenario.scenario_id, 0), read_run(folder)).requests

    assert table is not None
    assert (table["itl_ms"][0].as_py(), table["tpot_ms"][0].as_py()) == ([], None)


def test_a_run_without_a_lease_has_no_price(tmp_path: Path) -> None:
    row = _row(tmp_path, Shape(), Told(usd_per_hour=None))

    assert (row["usd_per_hour"], row["usd_per_mtok_output"]) == (None, None)


def test_a_million_tokens_at_a_thousand_a_second_cost_a_thousand_seconds() -> None:
    assert usd_per_mtok_output(3.6, 1000.0) == pytest.approx(1.0)


def test_a_lease_without_a_zone_is_refused() -> None:
    text = b'{"lease_id":"a","cloud":"b","machine_id":"c","usd_per_hour":1,"rented_at":"2026-03-01T00:00:00"}'

    with pytest.raises(UnreadableResultError, match="the lease"):
        lease_row(NIGHT, text)


def test_a_manifest_that_points_outside_is_refused(one_run: tuple[Path, Path]) -> None:
    _data, run = one_run
    (run / "MANIFEST.sha256").write_text(f"{'0' * 64}  ../../night.json\n")

    with pytest.raises(UnreadableResultError, match="not a hash and a name"):
        read_run(run)


def test_what_the_server_said_is_placed_on_the_clients_clock(one_run: tuple[Path, Path]) -> None:
    _data, run = one_run

    samples = run_rows(Place(NIGHT, run.parent.name, 0), read_run(run)).server_samples

    assert samples is not None
    first, failed = samples.to_pylist()[0], samples.to_pylist()[-1]
    assert (first["at_s"], first["took_ms"]) == (pytest.approx(0.101, abs=1e-6), pytest.approx(2.0))
    assert (failed["error"], failed["at_s"], failed["requests_running"]) == ("timed out", None, None)


def test_a_run_from_before_the_server_was_scraped_still_loads(one_run: tuple[Path, Path]) -> None:
    _data, run = one_run
    (run / "server-samples.parquet").unlink()
    seal(run)

    rows = run_rows(Place(NIGHT, run.parent.name, 0), read_run(run))

    assert rows.server_samples is None
    assert rows.measurement["outcome"] == "measured"


def test_a_driver_without_our_clock_leaves_the_servers_samples_unplaced(tmp_path: Path) -> None:
    shape = Shape(driver="vllm-bench", warmup=0)
    night = write_night(tmp_path, NIGHT, {"peer": shape})
    folder = write_run(tmp_path, night, night.runs[0], shape)

    samples = run_rows(Place(NIGHT, folder.parent.name, 0), read_run(folder)).server_samples

    assert samples is not None
    assert set(samples["at_s"].to_pylist()) == {None}
    assert samples["took_ms"][0].as_py() == pytest.approx(2.0)
