"""The output folder is complete: after a finished run, a stopped one, and from the one-file meter."""

import hashlib
import json
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from bench.loadgen.meter_report import read_meter
from meter import METER_VERSION
from meter.bundle import bundle
from meter.clock import Offset, has_stepped, kernel_stamp_ns, read_offset
from meter.events import Events
from meter.percentiles import percentile_ms
from tests.meter.conftest import RunMeter, StartTruth, answer_models, make_plan

FILES = ["events.bin", "meter.json", "progress.json", "requests.jsonl"]
FIELDS = [
    *(
        "index",
        "phase",
        "request_id",
        "server_request_id",
        "model",
        "prompt_id",
        "conversation",
        "turn",
        "worker",
        "connection",
        "local_port",
        "address",
        "reused",
    ),
    *("intended_at_ns", "slot_free_ns", "connect_start_ns", "connect_end_ns", "send_start_ns", "send_end_ns"),
    *("headers_at_ns", "first_event_at_ns", "first_token_at_ns", "first_content_at_ns", "last_token_at_ns"),
    *("done_at_ns", "prompt_tokens_planned", "prompt_tokens_counted", "cached_tokens_planned", "cached_tokens"),
    *("output_tokens_planned", "output_tokens_counted", "tokens_by"),
    *("lag_p99_ns", "lag_max_ns", "merged_events", "merged_late_events", "finish_reason", "stop_reason"),
    *(
        "http_status",
        "outcome",
        "error",
        "retry_after_s",
        "body_sha256",
        "output_sha256",
        "cancel_after_ns",
        "answer_is_valid",
        "server_metrics",
    ),
    *("event_first", "event_count", "window"),
]
StartMeter = Callable[..., "subprocess.Popen[str]"]


def test_a_record_holds_every_documented_field(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, warmup_count=2)

    assert report.exit_code == 0
    assert [list(row) for row in report.requests] == [FIELDS] * 8
    assert [row["index"] for row in report.rows] == list(range(8))
    assert sorted(path.name for path in report.folder.iterdir()) == FILES
    assert json.loads((report.folder / "progress.json").read_text()) == {"done": 8, "planned": 8}


def test_the_events_of_all_requests_are_in_one_file_in_order(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("cut:2,tokens_per_event:3")

    report = run_meter(truth.url)

    counts = [row["event_count"] for row in report.requests]
    assert [row["event_first"] for row in report.requests] == [sum(counts[:place]) for place in range(len(counts))]
    assert (report.folder / "events.bin").stat().st_size == 29 * sum(counts) > 0


def test_events_are_packed_by_column_in_the_order_of_their_header() -> None:
    events = Events()
    events.append(5, -6, 2, 1, 40, 1)
    events.append(7, 8, 0, 2, 6, 6)

    packed = b"".join(events.pack())

    assert struct.unpack("<4q6i2B", packed) == (5, 7, -6, 8, 2, 0, 1, 2, 40, 6, 1, 6)
    assert events.describe()["count"] == 2


def gaps_ns(times: Iterable[list[int]]) -> list[int]:
    return [later - at for request in times for at, later in pairwise(request)]


def test_the_reader_of_the_pipeline_finds_the_same_numbers(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()
    report = run_meter(truth.url, warmup_count=2)

    parts = [(report.folder / name).read_bytes() for name in ("meter.json", "requests.jsonl", "events.bin")]
    requests = read_meter(*parts).requests

    measured = [row for row in report.rows if row["phase"] == "measured"]
    by_kernel = gaps_ns(row["event_kernel_ns"] or row["event_at_ns"] for row in measured)
    found = [round(gap * 1e9) for gap in requests.gap_s.tolist()]
    assert requests.output_tokens.tolist() == requests.event_tokens.tolist() == [8] * 6
    assert found == pytest.approx(by_kernel, abs=1), "by the kernel's stamps, where it gives them"


def test_every_field_is_in_the_reference() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "meter.md").read_text()

    assert [name for name in FIELDS if f"`{name}`" not in reference] == []


def test_the_summary_holds_versions_counts_and_the_clients_health(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, warmup_count=2)

    summary = report.summary
    canonical = json.dumps(summary["plan"], sort_keys=True, separators=(",", ":")).encode()
    measured = [row for row in report.rows if row["phase"] == "measured"]
    assert summary["plan_sha256"] == hashlib.sha256(canonical).hexdigest()
    assert (summary["planned"], summary["issued"], summary["ok"], summary["failed_by_class"]) == (6, 6, 6, {})
    assert summary["started_ns"] == measured[0]["send_start_ns"]
    assert summary["ended_ns"] == max(row["done_at_ns"] for row in measured)
    assert summary["complete"] is True
    assert summary["meter_version"] == METER_VERSION


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps packets for us")
def test_every_read_carries_a_kernel_stamp_on_linux(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url)

    assert report.summary["client"]["kernel_stamp_share"] == 1.0
    lags_ns = [
        seen - stamped
        for row in report.rows
        for seen, stamped in zip(row["event_at_ns"], row["event_kernel_ns"], strict=True)
    ]
    assert 0 < report.summary["client"]["lag_p50_ms"] <= report.summary["client"]["lag_max_ms"]
    assert max(lags_ns) / 1e6 <= report.summary["client"]["lag_max_ms"]
    assert all(None not in row["event_kernel_ns"] for row in report.rows)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_run_writes_what_it_has_and_is_marked_incomplete(
    start_meter: StartMeter, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        process = start_meter(f"http://127.0.0.1:{server.getsockname()[1]}", load={"kind": "closed", "concurrency": 1})
        answer_models(server)
        connection, _peer = server.accept()
        with closing(connection):
            connection.recv(65_536)  # the first request is out, so the run is on
            process.send_signal(number)
            process.wait(timeout=300)

    rows = [json.loads(line) for line in (tmp_path / "out" / "requests.jsonl").read_text().splitlines()]
    summary = json.loads((tmp_path / "out" / "meter.json").read_text())
    assert process.returncode == code
    assert [(row["outcome"], row["done_at_ns"]) for row in rows] == [("cancelled", None)]
    assert (summary["complete"], summary["planned"], summary["issued"]) == (False, 6, 1)


def test_the_bundle_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    bundle(tmp_path / "one.pyz")
    bundle(tmp_path / "two.pyz")

    assert (tmp_path / "one.pyz").read_bytes() == (tmp_path / "two.pyz").read_bytes()


def test_the_bundle_runs_with_nothing_but_python(start_truth: StartTruth, tmp_path: Path) -> None:
    truth = start_truth()
    bundle(tmp_path / "meter.pyz")
    (tmp_path / "plan.json").write_text(json.dumps(make_plan(url=truth.url, request_count=2)))

    argv = [sys.executable, "-I", "-S", "meter.pyz", "run", "plan.json", "out"]
    found = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)

    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    assert json.loads((tmp_path / "out" / "meter.json").read_text())["ok"] == 2


def test_wrong_usage_prints_the_usage(tmp_path: Path) -> None:
    bundle(tmp_path / "meter.pyz")

    argv = [sys.executable, "-I", str(tmp_path / "meter.pyz"), "walk"]
    found = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)

    assert found.returncode == 2
    assert found.stderr.startswith("Usage: meter run")


def test_a_set_wall_clock_is_noticed() -> None:
    assert has_stepped(Offset(1_000_000, 100), Offset(1_000_300, 100))
    assert not has_stepped(Offset(1_000_000, 100), Offset(1_000_150, 100))


def test_the_wall_clock_is_read_between_two_readings_of_the_other() -> None:
    assert 0 <= read_offset().bracket_ns < 1_000_000_000


def test_a_read_without_a_stamp_has_no_stamp() -> None:
    assert kernel_stamp_ns([]) is None


def test_a_percentile_is_a_value_that_occurred() -> None:
    values = [4_000_000, 1_000_000, 3_000_000, 2_000_000]

    assert (percentile_ms(values, 0.5), percentile_ms(values, 0.99), percentile_ms([], 0.5)) == (2.0, 4.0, None)
