"""Several client hosts share one load: processes of this computer stand for them, with a shell in place of ssh."""

import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meter.crew import GRACE_NS
from meter.host_clock import ClockOffset, RoundTrip, offset_of, worst_error_ns
from meter.plan import Load
from meter.schedule import arrivals_ns
from tests.meter.conftest import PLAN, Report, RunMeter, StartTruth

SHELL = ("sh", "-c")
AHEAD_S = 5000


def hosts(*shells: Sequence[str]) -> list[dict[str, object]]:
    return [{"name": f"host-{number}", "argv": list(shell)} for number, shell in enumerate(shells)]


def names(report: Report) -> list[str]:
    """The host of each request."""
    of_worker = {worker["worker"]: worker["host"] for worker in report.summary["workers"]}
    return [of_worker[row["worker"]] for row in report.requests]


def origin_ns(report: Report) -> int:
    """Where the times of a report begin on this computer's clock, to within a microsecond."""
    summary = report.summary
    wall = datetime.fromisoformat(summary["origin_utc"]) - datetime(1970, 1, 1, tzinfo=UTC)
    return wall // timedelta(microseconds=1) * 1000 - int(summary["clock"]["real_minus_mono_start_ns"])


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=20),
)
def test_the_offset_is_right_to_within_its_error_however_a_round_trip_is_divided(
    planted_ns: int, ways_ns: list[tuple[int, int]]
) -> None:
    trips = [RoundTrip(at, at + there + planted_ns, at + there + back) for at, (there, back) in enumerate(ways_ns)]

    found = offset_of(trips)

    assert abs(found.offset_ns - planted_ns) <= found.error_ns
    assert found.error_ns == (min(there + back for there, back in ways_ns) + 1) // 2


def test_a_clock_that_moved_during_the_run_adds_to_the_error() -> None:
    assert worst_error_ns(ClockOffset(1_000, 40), ClockOffset(1_000, 30)) == 40
    assert worst_error_ns(ClockOffset(1_000, 40), ClockOffset(700, 30)) == 330


def test_hosts_share_a_closed_loop_and_lose_no_request(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth(ttft_ms=20)

    report = run_meter(
        truth.url,
        hosts=hosts(SHELL, SHELL),
        workers=2,
        load={"kind": "closed", "concurrency": 5},
        request_count=20,
        warmup_count=5,
    )

    assert (report.exit_code, report.stderr) == (0, "")
    assert [row["index"] for row in report.rows] == list(range(25))
    assert names(report) == [f"host-{index % 2}" for index in range(25)]
    assert [row["worker"] for row in report.rows] == [index % 4 for index in range(25)]
    assert report.outcomes == ["ok"] * 25
    assert max(entry["running"] for entry in truth.log("received")) == 5
    assert {entry["request_id"] for entry in truth.log("received")} == {row["request_id"] for row in report.rows}
    assert [one["requests"] for one in report.summary["hosts"]] == [13, 12]


def test_the_arrivals_of_all_hosts_are_those_of_the_plan(start_truth: StartTruth, run_meter: RunMeter) -> None:
    load = {"kind": "poisson", "rate_per_s": 100.0}

    report = run_meter(start_truth().url, hosts=hosts(SHELL, SHELL, SHELL), load=load, request_count=12)

    planned = arrivals_ns(Load("poisson", rate_per_s=100.0), 12, PLAN["prompts"]["seed"])
    assert [row["intended_at_ns"] for row in report.requests] == [GRACE_NS + at for at in planned]
    assert names(report) == [f"host-{index % 3}" for index in range(12)]


def test_a_host_with_another_clock_is_placed_on_ours(start_truth: StartTruth, run_meter: RunMeter) -> None:
    ahead = ("unshare", "-T", "--monotonic", str(AHEAD_S), "--", *SHELL)
    if subprocess.run([*ahead, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not create a time namespace")
    truth = start_truth(ttft_ms=20)

    report = run_meter(truth.url, hosts=hosts(SHELL, ahead))

    near, far = (one["clock"]["before"] for one in report.summary["hosts"])
    assert abs(near["offset_ns"]) <= near["error_ns"]
    assert abs(far["offset_ns"] - AHEAD_S * 10**9) <= far["error_ns"]
    error_ns = max(one["clock"]["worst_error_ns"] for one in report.summary["hosts"])
    received = {entry["request_id"]: entry["at_ns"] for entry in truth.log("received")}
    for row in report.requests:
        name = row["request_id"]
        assert origin_ns(report) + row["send_start_ns"] <= received[name] + error_ns
        assert truth.written_at(name)[0] <= origin_ns(report) + row["first_token_at_ns"] + error_ns


def test_a_host_that_is_lost_ends_the_run_and_is_named(
    start_truth: StartTruth, start_meter: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    truth = start_truth(ttft_ms=200)
    meter = start_meter(truth.url, hosts=hosts(SHELL, SHELL), request_count=600)
    while len(truth.log("received")) < 4:
        time.sleep(0.05)
    lost, left = psutil.Process(meter.pid).children()
    left_over = left.children(recursive=True)

    for process in (lost, *lost.children(recursive=True)):
        process.kill()
    _out, stderr = meter.communicate(timeout=120)

    assert meter.returncode == 3
    assert "client host host-0 was lost" in stderr
    assert "one of 2 shares of the load, so the run has no result" in stderr
    assert not (tmp_path / "out" / "meter.json").exists()
    assert psutil.wait_procs([left, *left_over], timeout=30)[1] == []


def test_a_host_that_cannot_be_reached_is_named_with_what_ssh_printed(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    refused = ("sh", "-c", "echo Permission denied >&2; exit 255", "sh")

    report = run_meter(start_truth().url, hosts=hosts(SHELL, refused))

    assert report.exit_code == 3
    assert "client host host-1 was lost: Permission denied" in report.stderr


def test_the_reason_of_a_host_that_fails_is_given(run_meter: RunMeter) -> None:
    report = run_meter("http://127.0.0.1:1", hosts=hosts(SHELL, SHELL))

    assert report.exit_code == 3
    assert "The client host host-" in report.stderr
    assert "refused" in report.stderr


def test_more_hosts_than_streams_are_refused(run_meter: RunMeter) -> None:
    report = run_meter("http://127.0.0.1:1", hosts=hosts(SHELL, SHELL, SHELL))

    assert report.exit_code == 2
    assert "3 workers on all hosts cannot share 2 streams" in report.stderr
