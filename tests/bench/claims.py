"""A healthy claim to change one thing of: Llama-3.1-8B in BF16 on one MI300X, and how it is judged."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, ClaimSource, Metric
from bench.audit.judge import Finding
from bench.audit.rules import CLAIM_RULES
from bench.audit.rules.identities import IDENTITY_RULES
from tests.bench.judging import judge_claims
from warehouse.rows.catalog_subject import subject_of

LINEAGE = ClaimSource("measured.json", "0" * 64, "", "test", 1, "vllm bench serve", "0.11.0")
ASKED = ClaimedConfig(
    model="meta-llama/Llama-3.1-8B-Instruct",
    precision="bf16",
    kv_precision="bf16",
    gpu="MI300X",
    gpu_count=1,
    tp_size=1,
    max_model_len=8192,
    gpu_memory_utilization=0.9,
    isl=1000.0,
    osl=500.0,
    has_fixed_lengths=True,
    concurrency=16,
    is_open_loop=False,
    request_count=320,
    prefix_caching=False,
    has_distinct_prompts=True,
    usd_per_hour=2.59,
    weights_gib=14.96,
    weights_source="log",
)
# 16 streams of 7 ms a token and 150 ms to the first: 320 requests of 500 tokens.
SAID = ClaimedTotals(
    completed=320,
    failed=0,
    duration_s=72.86,
    started_at_s=1_790_000_000.0,
    ended_at_s=1_790_000_073.0,
    total_input_tokens=320_000,
    total_output_tokens=160_000,
    request_throughput_per_s=320 / 72.86,
    output_throughput_tok_per_s=160_000 / 72.86,
    total_throughput_tok_per_s=480_000 / 72.86,
)
LATENCY: Mapping[Metric, Mapping[str, float]] = {
    "ttft": {"mean": 0.15, "median": 0.149, "p95": 0.2},
    "tpot": {"mean": 0.007, "median": 0.007, "p95": 0.0075},
    "e2el": {"mean": 3.643, "median": 3.642, "p95": 3.9},
}
HEALTHY = Claim(LINEAGE, ASKED, SAID, LATENCY)


def changed(asked: Mapping[str, Any] | None = None, said: Mapping[str, Any] | None = None, **others: Any) -> Claim:
    """The healthy claim with these fields of what was asked and said, and of itself, otherwise."""
    return replace(HEALTHY, asked=replace(ASKED, **(asked or {})), said=replace(SAID, **(said or {})), **others)


# What is changed here need not add up otherwise; the twins in tests/data/audit are held to one code of all there are.
COLUMNS_HERE = {rule.column for rule in CLAIM_RULES if rule not in IDENTITY_RULES} | {"ev_engine_version_conflict"}


def findings(*claims: Claim) -> list[Finding]:
    """Every finding of these claims about physics, provenance, money, telemetry and coherence."""
    judged = judge_claims(claims, subject_of)
    return [finding for each in judged for finding in each.findings if finding.column in COLUMNS_HERE]


def found(*claims: Claim) -> dict[str, str]:
    """Which codes fail or warn, the worst of each."""
    bad = [finding for finding in findings(*claims) if finding.status in ("FAIL", "WARN")]
    return {finding.code: finding.status for finding in sorted(bad, key=lambda each: each.status == "FAIL")}


def missing(claim: Claim) -> dict[str, str]:
    """What each code that is not checkable lacks."""
    return {each.code: each.message for each in findings(claim) if each.status == "NOT-CHECKABLE"}
