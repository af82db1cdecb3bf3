"""What only several claims together show."""

import time
from dataclasses import replace

import pytest

from bench.audit.claim import Claim, ClaimSource
from bench.audit.evidence.statistics import repeats
from tests.bench.claims import HEALTHY, LINEAGE, changed, findings, found


def _level(concurrency: int, output: float, *, e2el_s: float | None = None, tpot_s: float | None = None) -> Claim:
    """One level of a sweep, with what Little's law and the rate make of its latencies."""
    tpot = tpot_s or concurrency / output
    whole = e2el_s or concurrency * 500 / output
    said = {
        "completed": None,
        "duration_s": None,
        "total_input_tokens": None,
        "total_output_tokens": None,
        "request_throughput_per_s": output / 500,
        "output_throughput_tok_per_s": output,
        "total_throughput_tok_per_s": 3 * output,
    }
    latency = {"tpot": {"mean": tpot}, "e2el": {"mean": whole, "p99": 1.1 * whole}}
    return changed({"concurrency": concurrency, "request_count": 20 * concurrency}, said, latency_s=latency)


SWEEP = [_level(1, 165.0), _level(8, 1200.0), _level(16, 2196.0), _level(32, 3700.0), _level(64, 5200.0)]


def test_a_sweep_that_saturates_has_no_findings() -> None:
    assert found(*SWEEP, _level(128, 5400.0)) == {}


def test_a_load_that_did_not_grow_fails_at_its_level_and_above() -> None:
    capped = [*SWEEP, _level(128, 5210.0, e2el_s=64 * 500 / 5210.0), _level(256, 5190.0, e2el_s=64 * 500 / 5190.0)]

    bad = [each for each in findings(*capped) if each.status == "FAIL"]

    assert {each.code for each in bad} == {"concurrency_not_reached"}
    assert len(bad) == 2


def test_many_streams_have_no_more_than_so_many_times_the_throughput_of_one() -> None:
    assert found(SWEEP[0], _level(8, 1600.0)) == {"scaling_conflict": "FAIL"}


def test_throughput_that_falls_and_rises_again_is_doubted() -> None:
    assert found(SWEEP[0], SWEEP[1], _level(16, 900.0), SWEEP[3]) == {"scaling_conflict": "WARN"}
    assert found(*SWEEP, _level(128, 4000.0)) == {}


def test_a_token_that_takes_less_time_among_more_streams_is_doubted() -> None:
    levels = (SWEEP[3], _level(64, 5200.0, tpot_s=0.007))
    said = [each.message for each in findings(*levels) if each.status == "WARN"]

    assert found(*levels) == {"scaling_conflict": "WARN"}
    assert any("8.649 ms per token at 32, 7 here" in each for each in said)


def test_twice_the_gpus_are_at_most_twice_as_fast() -> None:
    one = _level(16, 1000.0)
    two = replace(one, asked=replace(one.asked, tp_size=2, gpu_count=2))
    good = replace(_level(16, 1900.0), asked=two.asked)
    bad = replace(_level(16, 2400.0), asked=two.asked)

    assert found(one, good) == {}
    assert found(one, bad) == {"tp_scaling": "WARN"}


def test_a_fleet_whose_throughput_is_exactly_so_many_times_that_of_one_was_scaled_up() -> None:
    one = _level(16, 1234.56)
    fleet = replace(_level(128, 9600.0).asked, gpu_count=8, dp_size=8)
    scaled, measured = (replace(_level(128, rate), asked=fleet) for rate in (8 * 1234.56, 7.9 * 1234.56))
    rounded = replace(_level(128, 9600.0), asked=fleet)

    assert found(one, scaled) == {"scaled_up": "WARN"}
    assert found(one, measured) == {}
    assert found(_level(16, 1200.0), rounded) == {}


def test_half_the_bits_are_at_most_twice_as_fast() -> None:
    one = _level(16, 1000.0)
    narrow = replace(one.asked, precision="fp8", model="amd/Llama-3.1-8B-Instruct-FP8", weights_gib=None)
    good, bad = (replace(each, asked=narrow) for each in (_level(16, 1800.0), _level(16, 2300.0)))

    assert found(one, good) == {}
    assert found(one, bad) == {"precision_speedup": "WARN"}


def test_the_same_number_of_another_version_is_a_stale_copy() -> None:
    old = changed({"engine_version": "0.9.2"}, latency_s={})
    new = changed({"engine_version": "0.11.0"}, latency_s={})

    assert found(old, new) == {"stale_copy": "WARN"}
    assert found(old, old) == {}


@pytest.mark.parametrize(("rate", "expected"), [(2196.1, {}), (2196.123456789, {"stale_copy": "WARN"})])
def test_a_number_of_unknown_gpus_is_a_copy_only_where_no_two_machines_share_it(
    rate: float, expected: dict[str, str]
) -> None:
    said = {"request_throughput_per_s": None, "total_throughput_tok_per_s": None, "output_throughput_tok_per_s": rate}
    versions = [changed({"engine_version": version}, said, latency_s={}) for version in ("0.9.2", "0.11.0")]

    assert found(*versions) == {"stale_copy": "WARN"}
    assert found(*(_without_gpu(each, f"line {at}") for at, each in enumerate(versions))) == expected


def test_the_same_file_under_another_name_is_a_stale_copy() -> None:
    one = ClaimSource("monday.json", "ab" * 32, "", "test", 1, LINEAGE.tool, None)
    claims = [changed(lineage=one), changed(lineage=replace(one, file="tuesday.json"))]

    assert found(*claims) == {"stale_copy": "WARN"}


def test_tflops_out_of_the_band_of_their_siblings_where_tokens_fit_are_of_another_unit() -> None:
    nothing = dict.fromkeys(
        [
            *("output_throughput_tok_per_s", "total_throughput_tok_per_s", "request_throughput_per_s", "duration_s"),
            *("total_output_tokens", "total_input_tokens"),
        ]
    )

    def train(**said: float) -> Claim:
        return changed({"model": "unknown-3B"}, {**nothing, **said}, latency_s={})

    siblings = [
        train(train_tflops_per_gpu=400.0),
        train(train_tflops_per_gpu=420.0),
        train(train_tok_per_s_per_gpu=9e3),
    ]

    assert found(*siblings, train(train_tflops_per_gpu=430.0)).get("unit_suspect") is None
    assert found(*siblings, train(train_tflops_per_gpu=8900.0))["unit_suspect"] == "FAIL"


def test_repeats_that_do_not_differ_at_all_are_doubted() -> None:
    def night(day: int, rate: float) -> Claim:
        start = 1_790_000_000.0 + 86_400 * day
        return changed(
            None,
            {"started_at_s": start, "ended_at_s": start + 73, "output_throughput_tok_per_s": rate}
            | {"total_throughput_tok_per_s": None, "request_throughput_per_s": None},
            latency_s={},
        )

    quiet = [night(day, 2196.0 + 1e-3 * day) for day in range(12)]
    usual = [night(day, 2196.0 + 7.0 * day) for day in range(12)]

    assert found(*quiet) == {"too_quiet": "WARN"}
    assert found(*usual) == {}


def test_claims_of_other_configurations_are_not_compared() -> None:
    other = replace(_level(8, 1600.0), asked=replace(HEALTHY.asked, concurrency=8, request_count=160, gpu="H100-SXM"))

    assert "scaling_conflict" not in found(SWEEP[0], other)


def _without_gpu(claim: Claim, place: str) -> Claim:
    lineage = replace(LINEAGE, place=place, format="claims-table" if place.startswith("line") else "guidellm")
    return replace(claim, asked=replace(claim.asked, gpu=None), lineage=lineage)


def test_rows_of_unknown_gpus_are_never_repeats_of_one_another() -> None:
    capped = [SWEEP[3], _level(64, 3701.0, e2el_s=32 * 500 / 3701.0)]
    repeated = [replace(SWEEP[1], label="a"), replace(_level(8, 2400.0), label="a")]
    rows = [_without_gpu(each, f"line {at}") for at, each in enumerate([*capped, *repeated, *repeated])]
    parts = [_without_gpu(each, f"benchmarks[{at}]") for at, each in enumerate(capped)]

    assert found(*rows) == {}
    assert all("ev_repeat_variation" in each for each in repeats(repeated))
    assert repeats(rows) == [{}] * len(rows)
    assert found(*parts) == {"concurrency_not_reached": "FAIL"}


@pytest.mark.parametrize(("notes", "expected"), [("run by hand", {"scaling_conflict": "FAIL"}), ("set=long; n=5", {})])
def test_only_a_setting_in_the_notes_keeps_rows_apart(notes: str, expected: dict[str, str]) -> None:
    rows = [replace(SWEEP[0], unread={"notes": "the first night"}), replace(_level(8, 1600.0), unread={"notes": notes})]

    assert found(*rows) == expected


def test_the_time_to_compare_claims_does_not_grow_with_the_square_of_their_number() -> None:
    def compared_s(count: int) -> float:
        claims = [
            replace(SWEEP[at % 5], asked=replace(SWEEP[at % 5].asked, model=f"model-{at // 50}")) for at in range(count)
        ]
        begin = time.process_time()
        findings(*claims)
        return time.process_time() - begin

    assert compared_s(4000) < 24 * compared_s(500)  # eight times as many; with the square it were 64 times
