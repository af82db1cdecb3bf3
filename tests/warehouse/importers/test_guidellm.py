import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.errors import ToldBesideError, UnreadableResultError
from tests.data.formats.closed_loop import closed_loop
from tests.warehouse.importers.reading import FORMATS, SAMPLES, alarms, at_hand, claims_at, claims_of

REPORT = FORMATS / "guidellm/report-v2.json"


def changed(*path: Any, value: Any) -> str:
    report = json.loads(REPORT.read_text())
    place = report["benchmarks"][0]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(report)


def test_a_report_says_what_was_measured_in_seconds_and_of_successes() -> None:
    run = closed_loop(seed=4)

    (claim,) = claims_at(REPORT)

    assert (claim.said.completed, claim.said.failed) == (400, 0)
    assert claim.said.total_output_tokens == 400 * 128
    assert claim.said.output_throughput_tok_per_s == pytest.approx(run.output_tok_per_s)
    assert claim.latency("ttft", "mean") == pytest.approx(run.ttft_s.mean())
    assert claim.latency("tpot", "p99") == pytest.approx(np.percentile(run.tpot_s, 99))
    assert claim.latency("e2el", "median") == pytest.approx(np.median(run.e2el_s))
    assert claim.latency("e2el", "p999") == pytest.approx(np.percentile(run.e2el_s, 99.9))
    assert "itl" not in claim.latency_s


def test_warm_up_is_no_part_of_the_window() -> None:
    assert claims_at(REPORT)[0].said.duration_s == pytest.approx(closed_loop(seed=4).duration_s)


def test_what_was_asked_stands_in_the_report() -> None:
    asked = claims_at(REPORT)[0].asked

    assert (asked.model, asked.isl, asked.osl, asked.concurrency) == ("example/dense-8b", 512, 128, 8)
    assert (asked.request_count, asked.is_open_loop, asked.has_fixed_lengths) == (400, False, True)


def test_a_count_for_each_benchmark_is_read_at_the_place_of_this_one() -> None:
    limit = {"args": {"count": [10, 400]}, "current_index": 1}

    (claim,) = claims_of("r", changed("config", "constraints", "max_requests", value=limit))

    assert claim.asked.request_count == 400
    assert not claim.remarks


def test_a_whole_number_that_adding_floats_left_uneven_is_one() -> None:
    (claim,) = claims_of(
        "r", changed("metrics", "prompt_token_count", "successful", "total_sum", value=2137.0000000000005)
    )

    assert claim.said.total_input_tokens == 2137
    assert not claim.remarks


def test_requests_are_read_one_by_one() -> None:
    run, series = closed_loop(seed=4), claims_at(REPORT)[0].series

    assert series is not None
    assert series.e2el_s == pytest.approx(run.e2el_s, abs=1e-6)
    assert series.ttft_s == pytest.approx(run.ttft_s)
    assert series.is_ok is not None
    assert series.is_ok.all()


def test_a_report_of_before_version_2_says_the_same() -> None:
    (new,), (old,) = claims_at(REPORT), claims_at(REPORT.with_name("report-0.3.json"))

    assert old.latency_s == new.latency_s
    assert old.said.duration_s == pytest.approx(new.said.duration_s)
    assert (old.asked.model, old.asked.osl, old.asked.concurrency) == ("example/dense-8b", 128, 8)


@pytest.mark.parametrize("kind", ["yaml", "csv"])
def test_a_report_says_the_same_in_each_form(kind: str) -> None:
    here = FORMATS.parent / "peers/guidellm-closed"
    (as_json,) = claims_of("report.json", (here / "report.json").read_text())

    (claim,) = claims_of(f"report.{kind}", (here / f"report.{kind}").read_text())

    assert claim.asked == as_json.asked
    assert claim.lineage.tool_version == "0.8.1"
    assert claim.said.completed == 16
    assert claim.said.mean_output_tokens == 32
    for name in ("duration_s", "output_throughput_tok_per_s", "request_throughput_per_s", "failed"):
        assert getattr(claim.said, name) == pytest.approx(getattr(as_json.said, name)), name
    left_out = "p999" if kind == "csv" else ""
    assert claim.latency_s == {
        metric: {name: value for name, value in stated.items() if name != left_out}
        for metric, stated in as_json.latency_s.items()
    }
    assert (claim.series is None) is (kind == "csv")
    assert not claim.remarks


def test_a_report_beside_its_fuller_form_is_one_claim() -> None:
    here = FORMATS.parent / "peers/guidellm-closed"
    full = (here / "report.json").read_text()

    with pytest.raises(ToldBesideError, match=r"report\.csv holds the report of report\.json"):
        claims_of("report.csv", (here / "report.csv").read_text(), report__json=full)
    assert claims_of("report.csv", (here / "report.csv").read_text(), report__json=REPORT.read_text())


@pytest.mark.parametrize(
    ("cell", "by", "why"),
    [
        ('"{""max_requests"": {""type_""', '"{max', "Benchmark Constraints is not valid JSON"),
        ("concurrent@2", "concurrent,2", "170 cells but the header has 169"),
    ],
)
def test_a_broken_table_says_where(cell: str, by: str, why: str) -> None:
    text = (FORMATS.parent / "peers/guidellm-closed/report.csv").read_text()

    with pytest.raises(UnreadableResultError, match=f"line 4.*{why}"):
        claims_of("report.csv", text.replace(cell, by, 1))


def test_an_empty_line_of_a_table_is_passed_over_and_the_others_keep_their_numbers() -> None:
    text = (FORMATS.parent / "peers/guidellm-closed/report.csv").read_text()
    apart = text.replace("\n", "\n\n")

    (usual,), (found,) = claims_of("report.csv", text), claims_of("report.csv", f"{apart}\n\n")

    assert (found.said, found.asked, found.latency_s) == (usual.said, usual.asked, usual.latency_s)
    with pytest.raises(UnreadableResultError, match="line 7 has 170 cells"):
        claims_of("report.csv", apart.replace("concurrent@2", "concurrent,2", 1))


def test_a_throughput_of_zero_is_a_failure() -> None:
    (claim,) = claims_of("r", changed("metrics", "output_tokens_per_second", "successful", "mean", value=0.0))

    assert claim.said.output_throughput_tok_per_s is None
    assert [remark.code for remark in claim.remarks] == ["failed_not_zero"]
    assert "output_tokens_per_second" in claim.remarks[0].message


def test_a_value_of_the_wrong_type_is_named_with_its_place() -> None:
    (claim,) = claims_of("r.json", changed("metrics", "request_latency", "successful", "mean", value="fast"))

    assert "r.json benchmarks[0] metrics request_latency successful: mean = 'fast' is not a number" in (
        claim.remarks[0].message
    )


def test_a_sample_of_the_requests_is_not_taken_for_all_of_them() -> None:
    few = json.loads(REPORT.read_text())["benchmarks"][0]["requests"]["successful"][:10]

    assert claims_of("r", changed("requests", "successful", value=few))[0].series is None


def test_unknown_fields_are_kept() -> None:
    (claim,) = claims_of("r", changed("metrics", "novelty", value=7))

    assert claim.unread["metrics.novelty"] == 7
    assert any("time_per_output_token_ms" in name for name in claim.unread)


SAMPLE = SAMPLES / "guidellm_report_v2.json"
READ: dict[
    Path, list[tuple[float | None, int | None, float | None]]
] = {  # of each benchmark: mean latency in seconds, input tokens, mean TPOT in seconds
    REPORT: [(1.6427418782896, 204800, 0.01199105834991)],
    SAMPLE: [(0.01978909969, 143, None), (None, None, 0.0010904414)],
}


@pytest.mark.parametrize("path", at_hand(*READ), ids=lambda path: path.name)
def test_a_report_is_read_without_an_alarm(path: Path) -> None:
    found = claims_at(path)

    for claim, (e2el_s, tokens, tpot_s) in zip(found, READ[path], strict=True):
        assert e2el_s is None or claim.latency("e2el", "mean") == pytest.approx(e2el_s)
        assert tokens is None or claim.said.total_input_tokens == tokens
        assert tpot_s is None or claim.latency("tpot", "mean") == pytest.approx(tpot_s)
    # The sample is too small for a verdict, and nothing else is wrong with it.
    too_small = {"duration_short:", "too_few_prompts:", "tail_unsupported:"} if path == SAMPLE else set()
    assert {line.split()[1] for line in alarms(found)} <= too_small


@pytest.mark.parametrize(
    ("drawn", "osl"),
    [
        ({"output_tokens_min": 64, "output_tokens_max": 256}, 160),
        ({"output_tokens_max": 256}, 192),
        ({"output_tokens_min": 64, "output_tokens_max": 192, "output_tokens_stdev": 30}, 128),
        ({"output_tokens_max": 130, "output_tokens_stdev": 30}, None),
        ({"output_tokens_stdev": 30}, 128),
    ],
)
def test_lengths_that_are_drawn_between_limits_have_the_mean_of_the_draw(drawn: Any, osl: int | None) -> None:
    report = json.loads(REPORT.read_text())
    report["config"]["spec"]["data"] = [{"prompt_tokens": 512, "output_tokens": 128, **drawn}]

    (claim,) = claims_of("r", json.dumps(report))

    assert (claim.asked.isl, claim.asked.osl, claim.asked.has_fixed_lengths) == (512, osl, False)
