"""What a token costs by price and throughput, and rates that are not what they are called."""

import pytest

from bench.audit.claim import Claim
from tests.bench.claims import SAID, changed, findings, found, missing

OUTPUT = SAID.output_throughput_tok_per_s or 0.0
COST = 2.59 / (OUTPUT * 3600) * 1e6


@pytest.mark.parametrize(
    ("usd", "expected"),
    [
        (round(COST, 4), {}),
        (round(COST, 1), {}),  # 0.3 is all that is printed
        (round(COST * 1.05, 4), {"cost_identity": "FAIL"}),
        (round(COST * 1e3, 2), {"cost_unit": "FAIL"}),
        (round(COST / 1e3, 8), {"cost_unit": "FAIL"}),
        (round(COST / 1e6, 11), {"cost_unit": "FAIL"}),
    ],
)
def test_a_token_costs_what_price_and_throughput_make(usd: float, expected: dict[str, str]) -> None:
    assert found(changed(None, {"usd_per_mtok_output": usd})) == expected


@pytest.mark.parametrize(("usd", "expected"), [(17.0, {}), (20.0, {"cost_identity": "FAIL"})])
def test_a_whole_cost_is_rounded_to_the_unit_and_not_to_its_zeros(usd: float, expected: dict[str, str]) -> None:
    price = 2.59 * 16.67 / COST

    assert found(changed({"usd_per_hour": price}, {"usd_per_mtok_output": usd})) == expected


def test_a_cost_by_a_throughput_near_the_largest_number_is_infinitely_too_high() -> None:
    claim = changed(None, {"usd_per_mtok_output": COST, "output_throughput_tok_per_s": 1e308})

    assert found(claim)["cost_identity"] == "FAIL"


def test_the_price_is_asked_for_where_it_is_not_said() -> None:
    assert "--usd-per-hour" in missing(changed({"usd_per_hour": None}, {"usd_per_mtok_output": 0.3}))["cost_identity"]


def _said(claim: Claim, code: str) -> str:
    return next(each.message for each in findings(claim) if each.code == code and each.status in ("FAIL", "WARN"))


def test_a_cost_of_tokens_that_it_does_not_name_is_told_which_it_fits() -> None:
    claim = changed(None, {"usd_per_mtok_unstated": round(COST / 3, 4)})

    assert found(claim) == {"cost_denominator_fits": "WARN"}
    assert "that of total tokens (2.59 USD/h / (" in _said(claim, "cost_denominator_fits")


def test_a_cost_of_tokens_that_it_does_not_name_is_withdrawn_where_no_price_tells_which() -> None:
    claim = changed({"usd_per_hour": None}, {"usd_per_mtok_unstated": round(COST / 3, 4)})

    assert found(claim) == {"cost_denominator_unstated": "FAIL"}


@pytest.mark.parametrize(("usd", "code"), [(2.7 * COST, "cost_identity"), (COST / 1000, "cost_unit")])
def test_a_cost_that_fits_no_tokens_is_rejected(usd: float, code: str) -> None:
    claim = changed(None, {"usd_per_mtok_unstated": float(f"{usd:.4g}")})

    assert found(claim) == {"cost_denominator_unstated": "FAIL", code: "FAIL"}


def test_a_cost_that_would_need_more_than_the_gpu_can_compute_is_off_by_its_unit() -> None:
    silent = dict.fromkeys(
        [
            *("total_input_tokens", "total_output_tokens", "request_throughput_per_s"),
            *("output_throughput_tok_per_s", "total_throughput_tok_per_s"),
        ]
    )
    seventy = {
        "model": "meta-llama/Llama-3.3-70B-Instruct",
        "precision": "fp8",
        "weights_gib": None,
        "usd_per_hour": 2.0,
    }
    claim = changed(seventy, silent | {"usd_per_mtok_output": 0.017}, latency_s={})
    dear = changed(seventy, silent | {"usd_per_mtok_output": 1.7}, latency_s={})

    assert found(claim) == {"cost_unit": "FAIL"}
    assert "per thousand tokens it would be 32.7 tok/s" in _said(claim, "cost_unit")
    assert found(dear) == {}


def test_throughput_over_concurrency_is_no_speed_of_a_user() -> None:
    assert found(changed(None, {"per_user_tok_per_s": 142.0})) == {}
    wrong = changed(None, {"per_user_tok_per_s": 100.0})
    tpot_ms = 1e3 * min(each for name in ("mean", "median") if (each := wrong.latency("tpot", name)))
    assert found(wrong) == {"unit_misuse": "FAIL"}
    assert tpot_ms > 1
    assert f"100 tok/s per user stated, TPOT {tpot_ms:.4g} ms" in _said(wrong, "unit_misuse")
    assert "TPOT is unknown" in missing(changed(None, {"per_user_tok_per_s": 142.0}, latency_s={}))["unit_misuse"]


def test_a_speed_of_a_user_that_is_0_is_found_and_no_crash() -> None:
    assert found(changed(None, {"per_user_tok_per_s": 0.0})) == {"unit_misuse": "FAIL"}


def test_tokens_that_are_not_said_which_are_doubted() -> None:
    assert found(changed(None, {"unstated_throughput_tok_per_s": 2000.0})) == {"tokens_ambiguous": "WARN"}
