"""Errors inside a stream of status 200, which a client counts as answers, are named from what its file tells."""

import json

import pytest

from bench.audit.claim import Claim
from tests.warehouse.importers.reading import FORMATS, claims_of

STAGE = "stage_0_lifecycle_metrics.json"
REPORT = "profile_export_aiperf.json"


def stage(fallback: dict[str, int]) -> Claim:
    report = json.loads((FORMATS / "inference_perf" / STAGE).read_text())
    report["successes"]["client_fallback_requests"] = fallback
    (claim,) = claims_of(STAGE, json.dumps(report))
    return claim


@pytest.mark.parametrize(
    ("fallback", "without"), [({"prompt": 2, "output": 40}, 40), ({}, None), ({"prompt": 400, "output": 400}, None)]
)
def test_inference_perf_counts_answers_without_usage(fallback: dict[str, int], without: int | None) -> None:
    """Where no answer has usage, the server was not asked for it."""
    assert stage(fallback).said.without_usage == without


@pytest.mark.parametrize(("with_usage", "without"), [(400, 0), (360, 40), (None, None)])
def test_aiperf_counts_the_answers_that_have_usage(with_usage: int | None, without: int | None) -> None:
    report = json.loads((FORMATS / "aiperf" / REPORT).read_text())
    report["usage_completion_tokens"] = {"unit": "tokens", "avg": 128.0, "count": with_usage}

    (claim,) = claims_of(REPORT, json.dumps(report))

    assert (claim.said.completed, claim.said.without_usage) == (400, without)
