import pytest

from bench.audit.claim import Claim
from tests.warehouse.importers.reading import FORMATS, claims_at, claims_of

HERE = FORMATS / "mad"


def perf(before: str, after: str) -> Claim:
    text = (HERE / "perf.csv").read_text()
    assert before in text
    return claims_of("perf.csv", text.replace(before, after))[0]


def test_a_row_of_perf_csv_is_a_claim() -> None:
    (claim,) = claims_at(HERE / "perf.csv")

    assert claim.said.output_throughput_tok_per_s == 812.5
    assert (claim.asked.gpu_count, claim.outcome) == (1, "measured")
    assert claim.unread["gpu_architecture"] == "gfx942"


def test_success_without_a_number_is_no_success() -> None:
    claim = perf("812.5", "")

    assert claim.outcome == "failed"
    assert claim.said.stated_cause == "status SUCCESS, without a number"


def test_success_with_zero_is_a_failure() -> None:
    claim = perf("812.5", "0")

    assert [remark.code for remark in claim.remarks] == ["failed_not_zero"]


def test_a_status_of_failure_is_kept_with_its_word() -> None:
    claim = perf("SUCCESS", "FAILURE")

    assert (claim.outcome, claim.said.stated_cause) == ("failed", "status FAILURE")


def test_tokens_a_second_of_no_sort_are_kept_apart() -> None:
    claim = perf("output_tokens_per_second", "tokens_per_second")

    assert claim.said.unstated_throughput_tok_per_s == 812.5
    assert [remark.code for remark in claim.remarks] == ["tokens_ambiguous"]


def test_a_metric_of_unknown_unit_is_not_guessed() -> None:
    claim = perf("output_tokens_per_second", "samples")

    assert claim.said.output_throughput_tok_per_s is None
    assert [remark.code for remark in claim.remarks] == ["unit_unknown"]


def test_rows_that_differ_in_the_metric_alone_are_one_claim() -> None:
    (claim,) = claims_at(HERE / "metrics.csv")

    assert claim.lineage.place == "row 1, 2, 3, 4, 5, 6"
    assert claim.said.total_throughput_tok_per_s == 10_240
    assert claim.said.request_throughput_per_s == 16
    assert claim.latency("ttft", "mean") == pytest.approx(0.19)
    assert claim.latency("tpot", "mean") == pytest.approx(0.03)
    assert claim.latency("e2el", "mean") == pytest.approx(4.0)
    assert claim.asked.concurrency == 64
    assert str(claim.unread["cmd"]).endswith('--extra "a, b"')


def test_a_names_end_tells_the_unit_before_the_column_does() -> None:
    text = (HERE / "metrics.csv").read_text().replace("mean_ttft_ms,ms", "mean_ttft_ms,s")

    assert claims_of("m.csv", text)[0].latency("ttft", "mean") == pytest.approx(0.19)


def test_two_configurations_are_two_claims() -> None:
    text = (HERE / "metrics.csv").read_text()
    other = text.splitlines()[1].replace(",64,", ",32,")

    assert [claim.asked.concurrency for claim in claims_of("m.csv", f"{text}{other}\n")] == [64, 32]


@pytest.mark.parametrize(
    ("again", "said"),
    [
        ("10240", []),
        ("9000", ["m.csv row 1 row 7: total_token_throughput = 10240 of row 1 ignored: this row says 9000"]),
    ],
)
def test_a_number_that_a_later_row_replaces_is_named(again: str, said: list[str]) -> None:
    text = (HERE / "metrics.csv").read_text()
    other = text.splitlines()[1].replace(",10240,", f",{again},")

    (claim,) = claims_of("m.csv", f"{text}{other}\n")

    assert claim.said.total_throughput_tok_per_s == float(again)
    assert [remark.message for remark in claim.remarks] == said


def test_a_latency_report_keeps_both_times_for_the_sniff() -> None:
    (claim,) = claims_at(HERE / "dense_latency_report.csv")

    assert claim.latency("e2el", "mean") == pytest.approx(2.56)
    assert claim.said.latency_per_token_s == pytest.approx(0.02)
    assert (claim.asked.batch, claim.asked.osl) == (8, 128)


def test_seconds_under_ms_are_loaded_as_they_are_named() -> None:
    text = (HERE / "dense_latency_report.csv").read_text().replace("2560", "2.56")

    (claim,) = claims_of("l.csv", text)

    assert claim.latency("e2el", "mean") == pytest.approx(0.00256)
    assert claim.said.latency_per_token_s == pytest.approx(0.02)


def test_a_throughput_report_has_total_and_generated() -> None:
    said = claims_at(HERE / "dense_throughput_report.csv")[0].said

    assert (said.total_throughput_tok_per_s, said.output_throughput_tok_per_s) == (10_240, 2048)


def test_a_training_report_is_of_one_gpu() -> None:
    assert claims_at(HERE / "training.csv")[0].said.train_tflops_per_gpu == 412.0


def test_an_empty_model_is_missing() -> None:
    assert perf("example/dense-8b", "").asked.model is None
