"""Connections: kept from request to request, or a fresh one for each where a server closes them unsaid."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bench.loadgen.meter_report import read_meter
from infra.engines.first_probe import stream_once
from infra.engines.http_client import Origin
from tests.meter.conftest import PLAN, Report, RunMeter, StartTruth

OUTPUT_TOKENS = PLAN["output_tokens"]


def test_the_first_probe_sees_whether_a_connection_outlives_its_answer(start_truth: StartTruth) -> None:
    urls = {fault: start_truth(fault).url for fault in ("", "close_unsaid")}

    found = {fault: stream_once(Origin(url), "small", timeout_s=30) for fault, url in urls.items()}

    assert {fault: (one.status, one.keeps_connection) for fault, one in found.items()} == {
        "": (200, True),
        "close_unsaid": (200, False),
    }


def test_a_fresh_connection_for_each_request_loses_none_and_its_time_counts(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    report = run_meter(start_truth("close_unsaid").url, connections="fresh")

    assert set(report.outcomes) == {"ok"}
    assert {row["reused"] for row in report.requests} == {False}
    assert report.summary["plan"]["connections"] == "fresh"
    read = read_meter(*((report.folder / name).read_bytes() for name in ("meter.json", "requests.jsonl", "events.bin")))
    waited_s = [(row["connect_end_ns"] - row["connect_start_ns"]) / 1e9 for row in report.requests]
    sent_s = [row["send_start_ns"] / 1e9 for row in report.requests]
    assert all(waited > 0 for waited in waited_s)
    assert read.requests.send_s.tolist() == [
        pytest.approx(sent - waited) for sent, waited in zip(sent_s, waited_s, strict=True)
    ]


@pytest.mark.parametrize(("rate_per_s", "reused"), [(1.0, True), (0.25, False)])
def test_a_connection_that_was_idle_for_seconds_carries_no_other_request(
    start_truth: StartTruth, run_meter: RunMeter, rate_per_s: float, *, reused: bool
) -> None:
    load = {"kind": "constant", "rate_per_s": rate_per_s}

    report = run_meter(start_truth("").url, load=load, request_count=2)

    assert report.outcomes == ["ok", "ok"]
    assert [row["reused"] for row in report.requests] == [False, reused]


def test_a_client_that_stood_still_uses_no_connection_that_its_server_may_have_closed(
    start_truth: StartTruth, start_meter: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    truth = start_truth("")
    meter = start_meter(truth.url, load={"kind": "constant", "rate_per_s": 0.2}, request_count=2)
    while len(truth.log("token")) < OUTPUT_TOKENS:
        time.sleep(0.02)
    time.sleep(1)  # the answer is read
    parent = psutil.Process(meter.pid)
    processes = [parent, *parent.children(recursive=True)]

    for process in processes:
        process.suspend()
    time.sleep(6)  # past the time of the second request
    for process in processes:
        process.resume()
    meter.communicate(timeout=120)

    report = Report(meter.returncode, "", tmp_path / "out")
    assert report.outcomes == ["ok", "ok"]
    assert [row["reused"] for row in report.requests] == [False, False]
