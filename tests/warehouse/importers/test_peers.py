"""What the newest releases of the load tools wrote in clean runs, and the same with a number doubled."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.audit.claim import Claim
from bench.audit.evidence.evidence import Subject
from bench.errors import ToldBesideError, UnreadableResultError
from tests.bench.judging import judge_claims
from tests.warehouse.importers.reading import claims_at, claims_of
from warehouse.importers import read_claims
from warehouse.importers.parsing.document import read_document

PEERS = Path(__file__).parents[2] / "data/peers"
CLEAN = (
    "guidellm-closed/report.json",
    "guidellm-open/report.json",
    "aiperf-closed/profile_export_aiperf.json",
    "aiperf-open/profile_export_aiperf.json",
    "inference-perf-closed/stage_0_lifecycle_metrics.json",
    "inference-perf-open/stage_0_lifecycle_metrics.json",
)
# Files of the same runs, which are no measurements of their own.
PARTS = (
    *(f"guidellm-closed/report.{kind}" for kind in ("yaml", "csv")),
    *(f"aiperf-closed/profile_export{rest}" for rest in (".jsonl", "_raw.jsonl", "_aiperf.csv")),
    *(f"aiperf-closed/profile_export_aiperf_timeslices{kind}" for kind in (".csv", ".json")),
    *(f"aiperf-closed/{name}" for name in ("inputs.json", "phase_manifest.json")),
    *(f"aiperf-closed/phases/{phase}/profile_export_aiperf.json" for phase in ("profiling", "warmup")),
    *(f"inference-perf-closed/{name}_lifecycle_metrics.json" for name in ("summary", "per_request")),
    *(f"inference-perf-closed/{name}" for name in ("config.yaml", "validation.json")),
    "inference-perf-closed/inference-perf.partial.stage_0.yaml",
)


def verdicts(claims: list[Claim]) -> list[str]:
    return [judged.verdict for judged in judge_claims(claims, lambda _claim: Subject())]


def doubled(value: Any, name: str, *, is_inside: bool = False) -> Any:
    """The value with every number in a field of this name times 2."""
    if isinstance(value, dict):
        return {key: doubled(each, name, is_inside=is_inside or key == name) for key, each in value.items()}
    if isinstance(value, list):
        return [doubled(each, name, is_inside=is_inside) for each in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value * 2 if is_inside and is_number else value


@pytest.mark.parametrize("file", CLEAN)
def test_a_clean_run_is_not_rejected(file: str) -> None:
    (claim,) = claims_at(PEERS / file)

    assert verdicts([claim]) == ["suspect"]  # it is short
    assert (claim.asked.model, claim.asked.isl, claim.asked.osl) == ("truth", 64, 32)
    assert claim.said.completed == 16
    assert claim.said.total_output_tokens == 16 * 32
    assert claim.asked.is_open_loop is ("open" in file)
    assert claim.asked.concurrency == (None if "open" in file else 2)
    assert claim.asked.request_rate_per_s == (4 if "open" in file else None)
    assert claim.asked.request_count == 16
    assert claim.asked.has_fixed_lengths
    assert claim.series is not None


@pytest.mark.parametrize("client", ["vllm", "vllm-python"])
@pytest.mark.parametrize("loop", ["closed", "open"])
def test_a_clean_run_that_does_not_hold_its_lengths_is_not_rejected(client: str, loop: str) -> None:
    (claim,) = claims_at(PEERS / f"{client}-{loop}/result.json")

    assert verdicts([claim]) == ["suspect"]
    assert (claim.asked.model, claim.asked.isl, claim.asked.osl) == ("truth", None, None)
    assert (claim.said.completed, claim.said.total_output_tokens) == (16, 16 * 32)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("vllm-closed/result.json", "output_throughput"),
        ("vllm-open/result.json", "mean_ttft_ms"),
        ("guidellm-closed/report.json", "output_tokens_per_second"),
        ("guidellm-closed/report.json", "time_to_first_token_ms"),
        ("guidellm-closed/report.json", "inter_token_latency_ms"),
        ("guidellm-open/report.json", "request_latency"),
        ("guidellm-open/report.json", "output_token_count"),
        ("aiperf-closed/profile_export_aiperf.json", "output_token_throughput"),
        ("aiperf-closed/profile_export_aiperf.json", "request_count"),
        ("aiperf-open/profile_export_aiperf.json", "inter_token_latency"),
        ("aiperf-open/profile_export_aiperf.json", "goodput"),
        ("inference-perf-closed/stage_0_lifecycle_metrics.json", "output_tokens_per_sec"),
        ("inference-perf-closed/stage_0_lifecycle_metrics.json", "benchmark_time_seconds"),
        ("inference-perf-closed/stage_0_lifecycle_metrics.json", "time_to_first_token"),
        ("inference-perf-open/stage_0_lifecycle_metrics.json", "time_per_output_token"),
    ],
)
def test_a_run_with_a_number_doubled_is_rejected(file: str, name: str) -> None:
    place = PEERS / file
    text = json.dumps(doubled(json.loads(place.read_text()), name))
    beside = {each.name: each.read_text() for each in place.parent.iterdir() if each.is_file() and each != place}

    assert verdicts(claims_of(place.name, text, **beside)) == ["rejected"]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_run_is_told_by_its_report(part: str) -> None:
    place = PEERS / part
    files = {each.name: each.read_bytes() for each in place.parent.iterdir() if each.is_file()}
    document = read_document(part, place.read_bytes(), files.get, sorted(files))

    with pytest.raises(ToldBesideError, match=place.name):
        list(read_claims(document))


def test_a_part_without_its_report_names_the_report() -> None:
    name = "profile_export_aiperf_timeslices.csv"

    with pytest.raises(UnreadableResultError, match=f"{name} holds only the time slices.* pass its profile_export"):
        claims_of(name, (PEERS / "aiperf-closed" / name).read_text())


def test_a_warm_up_that_is_passed_from_inside_its_folder_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = PEERS / "aiperf-closed/phases/warmup"
    monkeypatch.chdir(folder)

    with pytest.raises(ToldBesideError, match="is the warm-up of a run"):
        claims_of("profile_export_aiperf.json", (folder / "profile_export_aiperf.json").read_text())


def test_one_of_several_measured_phases_is_a_measurement_with_its_own_load() -> None:
    report = json.loads((PEERS / "aiperf-closed/profile_export_aiperf.json").read_text())
    phases = report["input_config"]["phases"]
    phases.append({"name": "more", "kind": "profiling", "type": "poisson", "requests": 99, "rate": 7.0})

    (more,) = claims_of("run/phases/more/profile_export_aiperf.json", json.dumps(report))
    (whole,) = claims_of("run/profile_export_aiperf.json", json.dumps(report))

    assert (more.asked.request_count, more.asked.request_rate_per_s, more.asked.is_open_loop) == (99, 7.0, True)
    assert (whole.asked.request_count, whole.asked.is_open_loop) == (None, None)
    assert more.asked.warmup_count == 2


@pytest.mark.parametrize(
    ("prompts", "more", "isl", "osl"),
    [
        ({"isl": 64, "osl": {"mean": 32, "stddev": 8}}, {}, 64, 32),
        ({"isl": {"mean": 64}, "osl": {"mean": 32}}, {"turns": {"mean": 3}}, None, 32),
        ({}, {}, None, None),
    ],
)
def test_aiperfs_lengths_are_those_of_plain_prompts(prompts: Any, more: Any, isl: int | None, osl: int | None) -> None:
    report = json.loads((PEERS / "aiperf-closed/profile_export_aiperf.json").read_text())
    report["input_config"]["datasets"] = [{"name": "main", "type": "synthetic", "prompts": prompts, **more}]

    (claim,) = claims_of("profile_export_aiperf.json", json.dumps(report))

    assert (claim.asked.isl, claim.asked.osl) == (isl, osl)
    assert claim.asked.has_fixed_lengths is (None if osl is None else "stddev" not in str(prompts))


def test_goodput_is_held_to_its_requests() -> None:
    (claim,) = claims_at(PEERS / "aiperf-closed/profile_export_aiperf.json")

    assert claim.said.good_count == 13
    assert claim.said.goodput_per_s == pytest.approx(13 / (claim.said.duration_s or 0), rel=1e-3)
