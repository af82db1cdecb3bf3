import json
from dataclasses import asdict

import pytest

from bench.audit.claim import Claim
from bench.audit.evidence.evidence import Subject
from tests.bench.judging import judge_claims
from tests.warehouse.importers.reading import FORMATS, claims_at, claims_of

HERE = FORMATS / "nvidia"


def with_throughput(cell: str) -> Claim:
    return claims_of("t.csv", (HERE / "table.csv").read_text().replace("41.5 output tokens/sec", cell))[0]


def test_a_row_says_what_its_cell_counts() -> None:
    first = claims_at(HERE / "table.csv")[0]

    assert first.said.output_throughput_tok_per_s == 41.5
    assert (first.asked.gpu, first.asked.gpu_count, first.asked.precision) == ("MI300X", 1, "fp8")
    assert (first.asked.isl, first.asked.osl, first.asked.tp_size, first.asked.engine_version) == (
        128,
        2048,
        1,
        "0.9.2",
    )


def test_zero_output_tokens_is_a_failed_run_and_no_speed() -> None:
    claim = with_throughput("0 output tokens/sec")

    assert claim.said.output_throughput_tok_per_s is None
    assert [remark.code for remark in claim.remarks] == ["failed_not_zero"]
    assert judge_claims([claim], lambda _: Subject())[0].verdict == "failed"


def test_tokens_that_are_not_named_are_kept_apart() -> None:
    claim = with_throughput("41.5 tokens/sec")

    assert claim.said.output_throughput_tok_per_s is None
    assert claim.said.unstated_throughput_tok_per_s == 41.5
    assert [remark.code for remark in claim.remarks] == ["tokens_ambiguous"]


def test_a_unit_that_nobody_knows_is_not_guessed() -> None:
    assert [remark.code for remark in with_throughput("41.5 pages/h").remarks] == ["unit_unknown"]


def test_text_in_place_of_a_speed_is_named_with_its_row() -> None:
    (remark,) = with_throughput("OOM").remarks

    assert remark.code == "unreadable_value"
    assert remark.message.startswith("t.csv row 1: Throughput = 'OOM'")


def test_not_available_is_missing_without_a_word() -> None:
    claim = with_throughput("N/A")

    assert claim.said.output_throughput_tok_per_s is None
    assert claim.remarks == ()


def test_version_1_says_the_same_as_the_csv() -> None:
    of_json, of_csv = claims_at(HERE / "v1.json"), claims_at(HERE / "table.csv")

    assert [claim.said for claim in of_json] == [claim.said for claim in of_csv]
    assert [claim.asked for claim in of_json] == [claim.asked for claim in of_csv]


def test_version_2_has_levels_of_concurrency_longer_answers_and_a_cost() -> None:
    claims = claims_at(HERE / "v2.json")

    assert [claim.asked.concurrency for claim in claims] == [1, 4, 16, None, None, None]
    assert claims[1].said.total_output_tokens == 40_000
    assert (claims[1].said.completed, claims[1].asked.request_count) == (40, 40)
    assert claims[3].asked.osl == 3000
    assert claims[5].said.usd_per_mtok_output == pytest.approx(2.0 / (593.28 * 3600) * 1e6)
    assert claims[5].asked.usd_per_hour == 2.0


def test_a_cost_of_unnamed_tokens_is_kept_apart_and_says_which_fit() -> None:
    text = (HERE / "v2.json").read_text().replace("cost_per_1m_output_tokens_usd", "cost_per_1m_tokens_usd")

    cost = claims_of("v2.json", text)[-1]

    assert cost.said.usd_per_mtok_output is None
    assert cost.said.usd_per_mtok_unstated is not None
    assert "which it is of the stated 593.28 tok/s" in cost.remarks[0].message


def test_a_cost_a_thousand_is_one_a_million() -> None:
    report = json.loads((HERE / "v2.json").read_text())
    report["cost_analysis"] = {"cost_per_1k_total_tokens_usd": 0.0005}

    assert claims_of("v2.json", json.dumps(report))[-1].said.usd_per_mtok_total == pytest.approx(0.5)


def test_a_failed_scenario_of_version_1_is_its_own_row() -> None:
    report = json.loads((HERE / "v1.json").read_text())
    report["benchmarks"][1]["throughput_tokens_per_sec"] = 0

    claims = claims_of("v1.json", json.dumps(report))

    assert [bool(claim.remarks) for claim in claims] == [False, True, False]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("33.1k output tokens/sec", ("output_throughput_tok_per_s", 33_100.0)),
        ("600 output tokens/min", ("output_throughput_tok_per_s", 10.0)),
        ("33.1 output tokens/sec/GPU", ("output_per_gpu_tok_per_s", 33.1)),
        ("90 total tokens per second", ("total_throughput_tok_per_s", 90.0)),
    ],
)
def test_the_unit_of_a_cell_is_read_to_its_end(cell: str, said: tuple[str, float]) -> None:
    claim = with_throughput(cell)

    assert {name: value for name, value in asdict(claim.said).items() if value is not None} == dict([said])
    assert claim.remarks == ()


@pytest.mark.parametrize("number", ['"1.234,5"', "1 234", "1'234", "15-20", "1.234.567"])
def test_a_number_with_more_behind_it_is_not_cut_off(number: str) -> None:
    cell = f'{number[:-1]} output tokens/sec"' if number.startswith('"') else f"{number} output tokens/sec"
    claim = with_throughput(cell)

    assert claim.said.output_throughput_tok_per_s is None
    assert [remark.code for remark in claim.remarks] == ["unreadable_value"]


def test_the_rate_of_a_user_is_not_that_of_the_system() -> None:
    claim = with_throughput("33.1 output tokens/sec/user")

    assert claim.said.output_throughput_tok_per_s is None
    assert [remark.code for remark in claim.remarks] == ["unit_unknown"]


def test_a_row_without_a_throughput_and_with_a_reason_failed() -> None:
    table = (HERE / "table.csv").read_text().splitlines()
    rows = f"{table[0]},Reason\n{table[1].replace('41.5 output tokens/sec', 'N/A')},OOM\n"
    report = json.loads((HERE / "v1.json").read_text())
    report["benchmarks"] = [{"input_length": 128, "output_length": 128, "error": "OOM"}]

    for claim in (claims_of("t.csv", rows)[0], claims_of("r.json", json.dumps(report))[0]):
        assert (claim.outcome, claim.said.stated_cause) == ("failed", "OOM")
        assert not {"Reason", "error"} & claim.unread.keys()
