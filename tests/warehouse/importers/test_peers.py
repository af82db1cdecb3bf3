"""What the newest releases of the load tools wrote in clean runs, and the same with a number doubled."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.audit.claim import Claim
from bench.audit.evidence.evidence import Subject
from tests.bench.judging import judge_claims
from tests.warehouse.importers.reading import claims_at, claims_of

PEERS = Path(__file__).parents[2] / "data/peers"
CLEAN = ("guidellm-closed/report.json", "guidellm-open/report.json")


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


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("guidellm-closed/report.json", "output_tokens_per_second"),
        ("guidellm-closed/report.json", "time_to_first_token_ms"),
        ("guidellm-closed/report.json", "inter_token_latency_ms"),
        ("guidellm-open/report.json", "request_latency"),
        ("guidellm-open/report.json", "output_token_count"),
    ],
)
def test_a_run_with_a_number_doubled_is_rejected(file: str, name: str) -> None:
    text = json.dumps(doubled(json.loads((PEERS / file).read_text()), name))

    assert verdicts(claims_of(Path(file).name, text)) == ["rejected"]
