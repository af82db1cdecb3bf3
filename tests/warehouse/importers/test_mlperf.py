import json
from pathlib import Path

import pytest

from tests.data.formats.mlperf.make import offline
from tests.warehouse.importers.reading import FORMATS, SAMPLES, alarms, at_hand, claims_at, claims_of

HERE = FORMATS / "mlperf"


def test_a_summary_is_read_in_nanoseconds() -> None:
    (claim,) = claims_at(HERE / "offline_summary.txt")

    assert claim.outcome == "measured"
    assert claim.said.output_throughput_tok_per_s == 11520.5
    assert claim.said.request_throughput_per_s == 38.4
    assert claim.latency("e2el", "p99") == pytest.approx(639.0)
    assert claim.said.duration_s == pytest.approx(640.0)


def test_a_server_run_has_first_tokens_and_a_rate() -> None:
    (claim,) = claims_at(HERE / "server_summary.txt")

    assert claim.latency("ttft", "p99") == pytest.approx(1.2)
    assert claim.latency("tpot", "mean") == pytest.approx(0.07)
    assert (claim.asked.is_open_loop, claim.asked.request_rate_per_s) == (True, 35.0)
    assert claim.said.request_rate_sent_per_s == 35.1
    assert claim.said.duration_s is None


def test_an_invalid_result_is_never_a_measurement() -> None:
    (claim,) = claims_of("s.txt", offline("INVALID", "NO"))

    assert claim.outcome == "failed"
    assert claim.said.stated_cause == "Result is : INVALID; Min duration satisfied : NO"


def test_a_summary_that_was_cut_off_is_never_a_measurement() -> None:
    (claim,) = claims_of("s.txt", offline().split("Result is")[0])

    assert claim.outcome == "failed"
    assert claim.said.stated_cause == "no line says what the result is"


def test_rows_of_both_accuracy_targets_are_one_run() -> None:
    claims = claims_at(HERE / "summary_results.json")

    assert [claim.lineage.place for claim in claims] == ["[0] and [1]", "[2]", "[3]"]
    assert claims[0].asked.gpu_count == 16
    assert (claims[0].said.output_throughput_tok_per_s, claims[2].said.request_throughput_per_s) == (56000.5, 18.5)


def test_targets_with_different_results_are_two_runs() -> None:
    rows = json.loads((HERE / "summary_results.json").read_text())
    rows[1]["Performance_Result"] = 55000.0

    assert len(claims_of("r.json", json.dumps(rows))) == 4


def test_a_unit_that_nobody_knows_is_not_guessed() -> None:
    rows = json.loads((HERE / "summary_results.json").read_text())[:1]
    rows[0]["Performance_Units"] = "Furlongs"

    (claim,) = claims_of("r.json", json.dumps(rows))

    assert [remark.code for remark in claim.remarks] == ["unit_unknown"]


SUMMARIES = {  # each with its tokens per second and its mean latency in seconds
    HERE / "offline_summary.txt": (11520.5, 620.0),
    SAMPLES / "mlperf_v5.1_8xMI300X_llama2-70b-99.9_offline_summary.txt": (27803.9, 2653.990953659),
}


@pytest.mark.parametrize("path", at_hand(*SUMMARIES), ids=lambda path: path.name)
def test_a_summary_is_read_without_an_alarm(path: Path) -> None:
    claims = claims_at(path)

    tok_per_s, e2el_s = SUMMARIES[path]
    assert claims[0].said.output_throughput_tok_per_s == tok_per_s
    assert claims[0].latency("e2el", "mean") == pytest.approx(e2el_s)
    assert alarms(claims) == []
