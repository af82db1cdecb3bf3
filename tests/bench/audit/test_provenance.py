"""What a claim says of itself in two places, and what was found in the place of what was claimed."""

import pytest

from bench.audit.claim import ClaimedTotals, ClaimSource, Pair
from bench.audit.evidence.timestamps import start_of
from tests.bench.claims import HEALTHY, LINEAGE, changed, findings, found, missing


@pytest.mark.parametrize(
    ("pair", "outcome"),
    [
        (Pair("engine_version", "0.9.2", "0.9.2"), None),
        (Pair("engine_version", "vllm/vllm-openai:v0.9.2", "0.9.2"), None),
        (Pair("engine_version", "0.9", "0.9.2"), None),
        (Pair("engine_version", "0.9.2", "0.9.2.dev12+g1a2b3c"), None),
        (Pair("engine_version", "0.9.2rc1", "0.9.2.dev12+g1a2b3c"), "WARN"),
        (Pair("engine_version", "0.9.2", "0.10.0"), "FAIL"),
        (Pair("engine_mode", "V1", "v1"), None),
        (Pair("engine_mode", "V1", "V0"), "FAIL"),
        (Pair("arch", "MI300X", "gfx942:sramecc+:xnack-"), None),
        (Pair("arch", "gfx942", "gfx90a"), "FAIL"),
        (Pair("arch", "MI300X", "gfx950"), "FAIL"),
        (Pair("label", "fp8", "FP8"), None),
        (Pair("label", "70B", "8B", "folder / model"), "FAIL"),
        (Pair("flag", "max_num_seqs=256", "max_num_seqs=256"), None),
        (Pair("flag", "0.90", "0.9"), None),
        (Pair("flag", "max_num_seqs=256", "max_num_seqs=1024"), "FAIL"),
        (Pair("timestamp", "20260204-101500", "2026-02-04T10:16:00Z"), None),
        (Pair("timestamp", "2026-02-04", "2026-02-04T23:59:00Z"), None),
        (Pair("timestamp", "20260204-101500", "2026-02-04T15:15:00"), "WARN"),
        (Pair("timestamp", "2026-02-04T10:15:00Z", "1770977700"), "FAIL"),
        (Pair("timestamp", "2026-02-04T10:15:00Z", "1770200100000"), None),
    ],
)
def test_two_places_agree_or_conflict(pair: Pair, outcome: str | None) -> None:
    codes = {"arch": "arch_conflict", "label": "label_conflict", "flag": "flag_conflict"}
    codes |= {"engine_version": "engine_version_conflict", "engine_mode": "engine_mode_conflict"}
    codes |= {"timestamp": "timestamp_conflict"}

    assert found(changed(pairs=(pair,))) == ({} if outcome is None else {codes[pair.what]: outcome})


def test_a_date_that_is_none_is_not_checkable() -> None:
    pair = Pair("timestamp", "yesterday", "2026-02-04")

    assert "yesterday" in missing(changed(pairs=(pair,)))["timestamp_conflict"]


def test_a_file_named_after_another_model_conflicts() -> None:
    def of(name: str) -> ClaimSource:
        return ClaimSource(name, "0" * 64, "", "test", 1, LINEAGE.tool, LINEAGE.tool_version)

    assert found(changed(lineage=of("runs/llama-70b_tp1.json"))) == {"label_conflict": "FAIL"}
    assert found(changed(lineage=of("runs/llama-8b-bf16.json"))) == {}
    assert found(changed(lineage=of("runs/llama-8b-fp8.json"))) == {"label_conflict": "FAIL"}
    assert found(changed(lineage=of("70b/8b_and_70b.json"))) == {}


def test_a_label_of_another_size_conflicts() -> None:
    assert found(changed(label="Llama-70B at 16")) == {"label_conflict": "FAIL"}
    assert found(changed(label="Llama 8B, MI300X 192GB at 16")) == {}


def test_a_model_named_by_another_precision_conflicts() -> None:
    named = {"model": "amd/Llama-3.1-8B-Instruct-FP8-KV"}

    assert found(changed(named)) == {"label_conflict": "FAIL"}
    assert found(changed(named | {"precision": "fp8", "weights_gib": None})) == {}


def test_one_copy_of_a_model_is_in_no_more_gpus_than_there_are() -> None:
    assert found(changed({"tp_size": 8, "gpu_count": 4}))["label_conflict"] == "FAIL"


def test_a_run_that_ends_before_it_starts_conflicts() -> None:
    start = 1_790_000_000.0

    assert found(changed(None, {"ended_at_s": start - 60.0})) == {"timestamp_conflict": "FAIL"}
    assert found(changed(None, {"ended_at_s": start + 30.0})) == {"timestamp_conflict": "WARN"}
    assert found(changed(None, {"ended_at_s": start + 80_000.0})) == {}
    assert found(changed(None, {"ended_at_s": start + 90_000.0})) == {"timestamp_conflict": "WARN"}


def test_what_can_be_another_thing_tomorrow_is_doubted() -> None:
    digest = f"vllm/vllm-openai@sha256:{'0' * 64}"

    assert found(changed({"image": "vllm/vllm-openai:v0.9.2"})) == {"revision_unpinned": "WARN"}
    assert found(changed({"image": digest, "model_revision": "main"})) == {"revision_unpinned": "WARN"}
    assert found(changed({"image": digest, "model_revision": "0e9e39f249a16976918f6564b8830bc894c89659"})) == {}


def test_a_number_that_was_not_measured_is_no_baseline() -> None:
    assert found(changed(kind="interpolated")) == {"not_measured": "FAIL"}


def test_a_claim_that_says_nothing_has_no_conflicts() -> None:
    assert found(changed({"max_model_len": 8192}, None)) == {}
    assert HEALTHY.said != ClaimedTotals()


@pytest.mark.parametrize(
    ("image", "code"),
    [
        (f"vllm/vllm-openai:v0.9.2@sha256:{'0' * 64}", "engine_version_conflict"),
        (f"rocm/vllm:gfx950@sha256:{'0' * 64}", "arch_conflict"),
        (f"nvcr.io/nvidia/vllm:26.01@sha256:{'0' * 64}", "arch_conflict"),
        (f"rocm/vllm:gfx942@sha256:{'0' * 64}", None),
        (f"vllm/vllm-openai:v0.11.0@sha256:{'0' * 64}", None),
    ],
)
def test_an_image_names_a_version_and_a_maker(image: str, code: str | None) -> None:
    claim = changed({"image": image, "engine": "vllm", "engine_version": "0.11.0"})

    assert found(claim) == ({} if code is None else {code: "FAIL"})


def test_what_was_observed_stands_beside_what_was_claimed() -> None:
    agreeing = changed(unread={"engine_mode": "V1", "observed_engine_mode": "v1", "observed_alone": "x"})
    mode = changed(unread={"engine_mode": "V1", "observed_engine_mode": "V0"})
    flag = changed(unread={"observed_max_model_len": 4096})

    assert found(agreeing) == {}
    assert found(mode) == {"engine_mode_conflict": "FAIL"}
    assert found(flag) == {"flag_conflict": "FAIL"}


def test_a_date_is_that_of_the_name_and_of_the_clock() -> None:
    good = changed(unread={"date": "20260921-091410"})  # on a clock of some other place
    name = ClaimSource("run-20250921-141410.json", "0" * 64, "", "test", 1, LINEAGE.tool, LINEAGE.tool_version)

    assert found(good) == {}
    assert found(changed(unread={"date": "20260101-000000"})) == {"timestamp_conflict": "FAIL"}
    assert found(changed(lineage=name, unread={"date": "20260921-141410"})) == {"timestamp_conflict": "FAIL"}


@pytest.mark.parametrize("start", [1e300, -1e300, float("inf"), float("nan")])
def test_a_start_that_no_calendar_has_is_an_unknown_one(start: float) -> None:
    odd = changed(None, {"started_at_s": start}, unread={"date": "2026-02-04"})

    assert start_of(odd) is None
    assert {finding.code for finding in findings(odd, odd)} >= {"memory_fit", "roofline_compute"}
