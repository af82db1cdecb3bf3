import json
from pathlib import Path

import pytest

from bench.errors import UnreadableResultError
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import Shape, Told, seal, write_night, write_run
from warehouse.rows.lease_rows import lease_rows
from warehouse.rows.measurement_results import usd_per_mtok
from warehouse.rows.run_folder import RunId, read_run
from warehouse.rows.run_rows import run_rows
from warehouse.schema.columns import COLUMNS
from warehouse.schema.row import Row

GOOD = Told()
PEER = Shape(driver="vllm-bench", warmup=0)


def _row(data: Path, shape: Shape, told: Told = GOOD) -> Row:
    night = write_night(data, NIGHT, {"chat": shape})
    folder = write_run(data, night, night.runs[0], shape, told)
    return run_rows(RunId(NIGHT, night.runs[0].scenario.scenario_id, 0), read_run(folder)).measurement


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

    table = run_rows(RunId(NIGHT, night.runs[0].scenario.scenario_id, 0), read_run(folder)).requests

    assert table is not None
    last, before = table.to_pylist()[-1], table.to_pylist()[-2]
    assert last["outcome"] == "connection"
    assert [last[name] for name in ("ttft_ms", "tpot_ms", "e2el_ms", "output_tokens", "itl_us")] == [None] * 5
    assert before["itl_us"] == pytest.approx([5000] * 7, abs=1)


def test_one_token_answers_have_an_empty_list_of_gaps_and_no_tpot(tmp_path: Path) -> None:
    shape = Shape(requests=40, tokens=1)
    night = write_night(tmp_path, NIGHT, {"chat": shape})
    folder = write_run(tmp_path, night, night.runs[0], shape)

    table = run_rows(RunId(NIGHT, night.runs[0].scenario.scenario_id, 0), read_run(folder)).requests

    assert table is not None
    assert (table["itl_us"][0].as_py(), table["tpot_ms"][0].as_py()) == ([], None)


def test_a_run_without_a_lease_has_no_price(tmp_path: Path) -> None:
    row = _row(tmp_path, Shape(), Told(usd_per_hour=None))

    assert (row["usd_per_hour"], row["usd_per_mtok_output"]) == (None, None)


def test_a_million_tokens_at_a_thousand_a_second_cost_a_thousand_seconds() -> None:
    assert usd_per_mtok(3.6, 1000.0) == pytest.approx(1.0)


def test_a_lease_without_a_zone_is_refused() -> None:
    text = b'{"lease_id":"a","cloud":"b","machine_id":"c","usd_per_hour":1,"rented_at":"2026-03-01T00:00:00"}'

    with pytest.raises(UnreadableResultError, match="the lease"):
        lease_rows(NIGHT, text)


def test_a_manifest_that_points_outside_is_refused(one_run: tuple[Path, Path]) -> None:
    _data, run = one_run
    (run / "MANIFEST.sha256").write_text(f"{'0' * 64}  ../../night.json\n")

    with pytest.raises(UnreadableResultError, match="not a SHA-256 and a file name"):
        read_run(run)


def test_what_the_server_said_is_placed_on_the_clients_clock(one_run: tuple[Path, Path]) -> None:
    _data, run = one_run

    samples = run_rows(RunId(NIGHT, run.parent.name, 0), read_run(run)).server_samples

    assert samples is not None
    first, failed = samples.to_pylist()[0], samples.to_pylist()[-1]
    assert (first["at_s"], first["took_ms"]) == (pytest.approx(0.101, abs=1e-6), pytest.approx(2.0))
    assert (failed["error"], failed["at_s"], failed["requests_running"]) == ("timed out", None, None)


def test_a_run_from_before_the_server_was_scraped_still_loads(one_run: tuple[Path, Path]) -> None:
    _data, run = one_run
    (run / "server-samples.parquet").unlink()
    seal(run)

    rows = run_rows(RunId(NIGHT, run.parent.name, 0), read_run(run))

    assert rows.server_samples is None
    assert rows.measurement["outcome"] == "measured"


def test_a_driver_without_our_clock_leaves_the_servers_samples_unplaced(tmp_path: Path) -> None:
    night = write_night(tmp_path, NIGHT, {"peer": PEER})
    folder = write_run(tmp_path, night, night.runs[0], PEER)

    samples = run_rows(RunId(NIGHT, folder.parent.name, 0), read_run(folder)).server_samples

    assert samples is not None
    assert set(samples["at_s"].to_pylist()) == {None}
    assert samples["took_ms"][0].as_py() == pytest.approx(2.0)


def test_the_steady_window_is_published_beside_the_whole_run(tmp_path: Path) -> None:
    row = _row(tmp_path, Shape(requests=398, concurrency=4))

    # One hundred waves of 55 ms, 8 tokens of 4 streams each; the first and the last are no part of it.
    assert (row["steady_begin_s"], row["steady_duration_s"]) == (pytest.approx(0.055), pytest.approx(98 * 0.055))
    assert row["steady_output_throughput_tok_per_s"] == pytest.approx(8 * 4 / 0.055, rel=0.01)
    assert (row["live_mean"], row["server_live_mean"], row["server_live_sample_count"]) == (4.0, 4.0, 11)
    assert [row[f"{part}_count"] for part in ("ramp", "steady", "drain")] == [2, 392, 4]
    assert abs(row["steady_slope_share"]) <= 2 * row["steady_slope_se_share"]


def test_a_report_of_the_first_meter_has_null_for_what_it_did_not_tell(tmp_path: Path) -> None:
    row = _row(tmp_path, Shape(record_version=1, is_told=False))

    untold = ("steady_duration_s", "live_mean", "server_live_mean", "slot_refill_p99_ms", "ttft_over_server_p50_ms")
    assert [row[name] for name in (*untold, "ramp_count", "ev_steady_live_share")] == [None] * 7
    assert (row["completed"], row["itl_p50_ms"]) == (400, pytest.approx(5.0))


def test_a_closed_loop_that_never_held_what_was_asked_is_told_so(tmp_path: Path) -> None:
    data = tmp_path
    night = write_night(data, NIGHT, {"chat": Shape()})
    folder = write_run(data, night, night.runs[0], Shape())
    head = json.loads((folder / "load" / "meter.json").read_text())
    (folder / "load" / "meter.json").write_text(json.dumps(head | {"steady": None}))
    seal(folder)

    row = run_rows(RunId(NIGHT, folder.parent.name, 0), read_run(folder)).measurement

    assert (row["ev_steady_live_share"], row["steady_duration_s"]) == (0.0, None)


def test_the_servers_own_times_stand_beside_each_request(tmp_path: Path) -> None:
    shape = Shape(requests=40, failed=1, ttft_ms=20.0, gap_ms=5.0, tokens=8)
    night = write_night(tmp_path, NIGHT, {"chat": shape})
    folder = write_run(tmp_path, night, night.runs[0], shape)

    rows = run_rows(RunId(NIGHT, folder.parent.name, 0), read_run(folder))

    assert rows.requests is not None
    first, failed = rows.requests.to_pylist()[0], rows.requests.to_pylist()[-1]
    names = ("server_ttft_ms", "server_queue_ms", "server_generation_ms", "server_mean_itl_ms")
    assert [first[name] for name in names] == pytest.approx([19.0, 0.5, 35.0, 5.0])
    assert [failed[name] for name in (*names, "cached_tokens")] == [None] * 5
    assert (first["cached_tokens"], first["window"], failed["window"]) == (0, "ramp", "drain")
    assert rows.measurement["ttft_over_server_p50_ms"] == pytest.approx(0.5)


def test_every_family_of_percentiles_names_its_estimator_and_its_samples(tmp_path: Path) -> None:
    row = _row(tmp_path, Shape(requests=400, failed=10, tokens=8))

    counts = [row[f"{metric}_sample_count"] for metric in ("ttft", "tpot", "itl", "itl_event", "e2el")]
    assert counts == [390, 390, 390 * 7, 390 * 7, 390]
    assert row["percentile_estimator"] == "linear-7"


def test_times_between_tokens_of_several_an_event_stand_beside_the_gaps_between_events(tmp_path: Path) -> None:
    shape = Shape(requests=40, gap_ms=20.0, event_tokens=4)
    row = _row(tmp_path, shape)

    assert (row["itl_p50_ms"], row["itl_event_p50_ms"], row["tokens_per_event"]) == (
        pytest.approx(5.0),
        pytest.approx(20.0),
        4.0,
    )
    assert row["itl_sample_count"] == 4 * row["itl_event_sample_count"]
    assert row["ev_chunk_token_ratio"] == 1.0


def test_a_peer_that_does_not_say_how_large_its_events_are_has_no_time_between_tokens(tmp_path: Path) -> None:
    night = write_night(tmp_path, NIGHT, {"peer": PEER})
    folder = write_run(tmp_path, night, night.runs[0], PEER)
    result = json.loads((folder / "load" / "result.json").read_text())
    doubled = {"output_lens": [2 * tokens for tokens in result["output_lens"]]}
    (folder / "load" / "result.json").write_text(json.dumps(result | doubled))
    seal(folder)

    rows = run_rows(RunId(NIGHT, folder.parent.name, 0), read_run(folder))

    assert (rows.measurement["itl_p50_ms"], rows.measurement["itl_event_p50_ms"]) == (None, pytest.approx(5.0))
    assert rows.requests is not None
    assert set(rows.requests["itl_tokens"].to_pylist()) == {None}


def test_chance_is_told_where_the_number_is(tmp_path: Path) -> None:
    few, many = _row(tmp_path / "few", Shape(requests=40)), _row(tmp_path / "many", Shape(requests=400, jitter=0.2))

    names = ("ttft_p99_low_ms", "ttft_p99_high_ms", "itl_p99_low_ms", "itl_p99_high_ms")
    assert [few[name] for name in names] == [None] * 4
    assert many["itl_p99_low_ms"] <= many["itl_p99_ms"] <= many["itl_p99_high_ms"]
    ends = [many[f"output_throughput_{end}_tok_per_s"] for end in ("low", "high")]
    assert ends[0] <= many["output_throughput_tok_per_s"] <= ends[1]
