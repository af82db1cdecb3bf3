"""What a healthy simulated measurement passes, and which rule each way of spoiling one makes fire."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings

from bench import evidence_columns as ev
from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, ClaimSource, Metric, RequestSeries
from bench.audit.evidence.evidence import Observed, Subject
from bench.audit.evidence.statistics import repeats
from bench.audit.judge import Judged, row_evidence
from bench.audit.rules.identities import IDENTITY_RULES
from tests.bench.judging import judge_claims
from tests.bench.simulate import (
    Load,
    as_open,
    claim_from,
    claim_of,
    latencies_of,
    load_of,
    loads,
    long_enough,
    simulate,
)

Mutation = Callable[[Claim], Claim]
Latencies = Mapping[Metric, Mapping[str, float]]
# Columns of bench.audit.rules.night that are asked of any claim here.
NIGHT_COLUMNS = {
    *("ev_failure_share", "ev_answered_share", "ev_duration_over_required", "ev_throughput_rel"),
    *("ev_e2el_broken_share", "ev_percentile_disorder", "ev_little_over_asked", "ev_concurrency_share"),
    *("ev_implied_over_median_e2el", "ev_chunk_token_ratio", "ev_osl_ratio", "ev_isl_ratio"),
    *("ev_server_client_tokens_ratio", "ev_server_client_prompt_ratio", "ev_server_client_requests_ratio"),
    *("ev_prefix_hit_share", "ev_preemptions", "ev_requests_over_required"),
}
RUN = simulate(long_enough(load_of()))
RAW = claim_of(RUN)
PLAIN = replace(claim_of(RUN, has_series=False), server=None)
VARIED = replace(claim_of(simulate(long_enough(load_of(spread=0.5))), has_series=False), server=None)
OPEN = claim_of(simulate(long_enough(as_open(load_of(osl=128, concurrency=16), 0.5))))
ONE_AT_A_TIME = claim_of(simulate(long_enough(load_of(concurrency=1))), has_series=False)


def _judged(*claims: Claim) -> list[Judged]:
    return judge_claims(claims, lambda _claim: Subject())


def _doubts(claim: Claim) -> list[str]:
    """Everything that is not passed, with its sentence."""
    found = _judged(claim)[0].findings
    return [f"{each.status} {each.code}: {each.message}" for each in found if each.status in ("WARN", "FAIL")]


def _fired(claim: Claim) -> dict[str, str]:
    """The worst outcome of each code that is not passed."""
    found = _judged(claim)[0].findings
    return {each.code: each.status for each in reversed(found) if each.status in ("WARN", "FAIL")}


def _columns(claim: Claim) -> set[str]:
    return {each.column for each in _judged(claim)[0].findings if each.status in ("WARN", "FAIL")}


def printed(claim: Claim) -> Claim:
    """The same claim with two decimals of milliseconds, of seconds and of rates, as tables have them."""
    rates = {
        name: round(value, 2)
        for name, value in vars(claim.said).items()
        if name.endswith("_per_s") and isinstance(value, float)
    }
    said = replace(claim.said, duration_s=round(claim.said.duration_s or 0.0, 2), **rates)  # type: ignore[arg-type]
    latencies: Latencies = {
        metric: {name: round(value * 1e3, 2) / 1e3 for name, value in values.items()}
        for metric, values in claim.latency_s.items()
    }
    return replace(claim, said=said, latency_s=latencies)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(loads())
@example(long_enough(load_of("SmolLM2-135M", "MI300A", isl=32, osl=32, concurrency=1)))
def test_no_rule_doubts_a_healthy_measurement(load: Load) -> None:
    run = simulate(load)

    whole, plain = claim_of(run), claim_of(run, has_series=False)

    assert [_doubts(each) for each in (whole, plain, printed(whole), printed(plain))] == [[], [], [], []]


def prefilling(share: float, seed: int, model: str = "Llama-3.1-8B", count: int = 1) -> Claim:
    """A load whose prompts alone take this share of the GPU's time."""
    load = load_of(model, count=count, isl=1024, osl=32, concurrency=None, seed=seed)
    rate = share / load.prefill_s
    return claim_of(simulate(replace(load, rate_per_s=rate, requests=max(400, round(40 * rate)))))


def test_the_waves_of_a_queue_that_is_nearly_full_are_no_rise() -> None:
    """With a plain standard error 22 of 600 seeds of these two loads were doubted; with this one, none."""
    waves = [prefilling(0.8, seed) for seed in (23, 157, 210)] + [prefilling(0.7, 157, "GLM-4.5-Air", 2)]
    lucky = replace(load_of("GLM-4.5-Air", count=2, isl=128), concurrency=32, spread=0.5, efficiency=0.5, seed=5955193)
    waves.append(claim_of(simulate(long_enough(as_open(lucky, 0.5)))))

    assert [_fired(each).get("over_saturated") for each in waves] == [None] * 5


@pytest.mark.parametrize("seed", range(4))
def test_a_load_a_little_above_what_the_gpu_can_do_is_found(seed: int) -> None:
    assert _fired(prefilling(1.05, seed))["over_saturated"] == "WARN"


def asking(**changes: object) -> Mutation:
    return lambda claim: replace(claim, asked=replace(claim.asked, **changes))  # type: ignore[arg-type]


def saying(**changes: object) -> Mutation:
    return lambda claim: replace(claim, said=replace(claim.said, **changes))  # type: ignore[arg-type]


def scaling(side: str, name: str, by: float) -> Mutation:
    """The same claim with one number of its `said`, `asked` or `server` times this."""

    def mutate(claim: Claim) -> Claim:
        part = getattr(claim, side)
        value = getattr(part, name)
        scaled = round(value * by) if isinstance(value, int) else value * by
        return replace(claim, **{side: replace(part, **{name: scaled})})

    return mutate


def serving(**changes: float) -> Mutation:
    def mutate(claim: Claim) -> Claim:
        assert claim.server is not None
        return replace(claim, server=replace(claim.server, **changes))

    return mutate


def stating(metric: Metric, by: float, *names: str) -> Mutation:
    """The same claim with these statistics of a latency times this; all of them where none are named."""

    def mutate(claim: Claim) -> Claim:
        of = {
            name: value * (by if name in names or not names else 1) for name, value in claim.latency_s[metric].items()
        }
        return replace(claim, latency_s={**claim.latency_s, metric: of})

    return mutate


def adding(metric: Metric, **statistics: float) -> Mutation:
    return lambda claim: replace(
        claim, latency_s={**claim.latency_s, metric: {**claim.latency_s[metric], **statistics}}
    )


def without(*names: str) -> Mutation:
    """The same claim without these statistics."""

    def mutate(claim: Claim) -> Claim:
        kept: Latencies = {
            metric: {name: value for name, value in values.items() if name not in names}
            for metric, values in claim.latency_s.items()
        }
        return replace(claim, latency_s=kept)

    return mutate


def both(*mutations: Mutation) -> Mutation:
    def mutate(claim: Claim) -> Claim:
        for each in mutations:
            claim = each(claim)
        return claim

    return mutate


def arrays(change: Callable[[RequestSeries], RequestSeries]) -> Mutation:
    """The same claim with other arrays under the same aggregates."""

    def mutate(claim: Claim) -> Claim:
        assert claim.series is not None
        return replace(claim, series=change(claim.series))

    return mutate


def restated(change: Callable[[RequestSeries], RequestSeries]) -> Mutation:
    """The same claim with other arrays, and its latencies computed from them."""

    def mutate(claim: Claim) -> Claim:
        assert claim.series is not None
        series = change(claim.series)
        return replace(claim, series=series, latency_s=latencies_of(series))

    return mutate


def entry(name: str, at: int, by: float) -> Callable[[RequestSeries], RequestSeries]:
    """One entry of an array raised by this."""

    def change(series: RequestSeries) -> RequestSeries:
        array = getattr(series, name).copy()
        array[at] += by
        return replace(series, **{name: array})

    return change


def torn(series: RequestSeries) -> RequestSeries:
    """Every tenth request's gaps are longer by a tenth than its E2EL holds."""
    assert series.gap_at is not None
    assert series.gap_s is not None
    counts = np.diff(series.gap_at)
    longer = np.repeat(np.arange(len(counts)) % 10 == 0, counts)
    return replace(series, gap_s=np.where(longer, series.gap_s * 1.1, series.gap_s))


def merged(every: int) -> Callable[[RequestSeries], RequestSeries]:
    """Every so many-th event of a request comes together with the one before it."""

    def change(series: RequestSeries) -> RequestSeries:
        assert series.gap_at is not None
        assert series.gap_s is not None
        starts = np.repeat(series.gap_at[:-1], np.diff(series.gap_at))
        within = np.arange(len(series.gap_s)) - starts
        begins = within % every != every - 1
        sums = np.add.reduceat(series.gap_s, np.flatnonzero(begins))
        running = np.concatenate(([0], np.cumsum(begins)))
        return replace(series, gap_s=sums, gap_at=running[series.gap_at])

    return change


def bursting(series: RequestSeries) -> RequestSeries:
    """Of three gaps the first holds all the time of the second but 10 us."""
    assert series.gap_at is not None
    assert series.gap_s is not None
    gaps = series.gap_s.copy()
    within = np.arange(len(gaps)) - np.repeat(series.gap_at[:-1], np.diff(series.gap_at))
    second = np.flatnonzero(within % 3 == 1)
    gaps[second - 1] += gaps[second] - 1e-5
    gaps[second] = 1e-5
    return replace(series, gap_s=gaps)


def one_less(series: RequestSeries) -> RequestSeries:
    """The last request's entries are missing, gaps and all."""
    assert series.gap_at is not None
    assert series.gap_s is not None
    whole = {name: getattr(series, name) for name in vars(series) if getattr(series, name) is not None}
    cut = {name: array[:-1] for name, array in whole.items() if name not in ("gap_s", "has_event_tokens")}
    return replace(series, **cut, gap_s=series.gap_s[: series.gap_at[-2]])


def halved(series: RequestSeries) -> RequestSeries:
    """One answer in ten ends half-way, with half of its tokens."""
    assert series.gap_at is not None
    assert series.gap_s is not None
    assert series.output_tokens is not None
    counts = np.diff(series.gap_at)
    counts = np.where(np.arange(len(counts)) % 10 == 0, counts // 2, counts)
    gaps = [series.gap_s[at : at + count] for at, count in zip(series.gap_at[:-1], counts, strict=True)]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    e2el_s = series.ttft_s + np.array([each.sum() for each in gaps])
    return replace(series, gap_s=np.concatenate(gaps), gap_at=offsets, output_tokens=counts + 1, e2el_s=e2el_s)


def cut_half_way(claim: Claim) -> Claim:
    assert claim.series is not None
    return claim_from(claim, RUN.load, halved(claim.series))


def without_usage(claim: Claim) -> Claim:
    return saying(without_usage=(claim.said.completed or 0) // 10)(claim)


def cold(seconds: float) -> Mutation:
    """The first wave waits so long, and everything after it begins so much later."""

    def mutate(claim: Claim) -> Claim:
        series, wave = claim.series, claim.asked.concurrency or 0
        assert series is not None
        first = np.arange(len(series.start_s if series.start_s is not None else ())) < wave
        return claim_from(
            claim,
            RUN.load,
            replace(
                series,
                start_s=series.start_s + np.where(first, 0.0, seconds),
                ttft_s=series.ttft_s + np.where(first, seconds, 0.0),
                e2el_s=series.e2el_s + np.where(first, seconds, 0.0),
            ),
        )

    return mutate


def failing(one_in: int) -> Mutation:
    """One request in so many failed: it has an entry, and counts in no number."""

    def mutate(claim: Claim) -> Claim:
        assert claim.series is not None
        assert claim.series.is_ok is not None
        is_ok = np.arange(len(claim.series.is_ok)) % one_in != 0
        return claim_from(claim, RUN.load, replace(claim.series, is_ok=is_ok))

    return mutate


def short(claim: Claim) -> Claim:
    run = simulate(long_enough(load_of(), seconds=30))
    return claim_of(run, has_series=claim.series is not None)


def waves(count: int, osl: int, slots: int = 8) -> Mutation:
    """Few, long requests: so many for each slot."""
    load = load_of("Llama-3.3-70B", count=2, osl=osl, concurrency=slots)
    return lambda _claim: claim_of(simulate(replace(load, requests=slots * count)), has_series=False)


def overloaded(_claim: Claim) -> Claim:
    return prefilling(1.5, 0)


def nothing(claim: Claim) -> Claim:
    said = ClaimedTotals(completed=0, failed=0, total_output_tokens=0, duration_s=claim.said.duration_s)
    return replace(
        claim, said=said, series=None, latency_s={}, server=None, asked=replace(claim.asked, request_count=0)
    )


def iterations(first: float) -> Mutation:
    times = np.array([first, *(8.0 + 0.01 * at for at in range(9))])
    return lambda claim: Claim(
        lineage=claim.lineage, asked=ClaimedConfig(batch=8), series=RequestSeries(iteration_s=times)
    )


def trimmed(by: float) -> Mutation:
    """A report of trimmed rates of which one is this times its totals over its duration."""
    return both(
        saying(has_trimmed_rates=True),
        scaling("said", "request_throughput_per_s", by),
    )


def odd_tpot(claim: Claim) -> Claim:
    """A mean TPOT by request that answers of unequal length explain, and a least one that they do not."""
    mean = claim.latency_s["tpot"]["mean"]
    return both(stating("tpot", 1.2), adding("tpot", min=mean * 1.1, max=mean * 1.4), without("p999", "std"))(claim)


def without_slice(claim: Claim) -> Claim:
    return replace(claim, sliced=ClaimedTotals(completed=(claim.said.completed or 0) - 3))


def _output_of_each(claim: Claim) -> float:
    return (claim.said.total_output_tokens or 0) / (claim.said.completed or 1)


def _all_tokens(claim: Claim) -> int:
    return (claim.said.total_input_tokens or 0) + (claim.said.total_output_tokens or 0)


def summed(claim: Claim, by: float) -> Claim:
    """Only what an offline benchmark says: requests, seconds and the sum of all tokens."""
    said = ClaimedTotals(
        completed=claim.said.completed, duration_s=claim.said.duration_s, total_tokens=round(by * _all_tokens(claim))
    )
    return replace(claim, said=said, latency_s={})


def only_rates(claim: Claim, by: float) -> Claim:
    """Only two rates, as a table has them."""
    output, requests = claim.said.output_throughput_tok_per_s, claim.said.request_throughput_per_s
    said = ClaimedTotals(output_throughput_tok_per_s=by * (output or 0.0), request_throughput_per_s=requests)
    return replace(claim, said=said, latency_s={})


MEDIANS = without("mean", "std")
NO_E2EL: Mutation = lambda claim: replace(  # noqa: E731 - one of many mutations
    claim, latency_s={name: values for name, values in claim.latency_s.items() if name != "e2el"}
)
# A spoiled claim, and what is said of it: the code it is about, and those that go with it.
CASES: tuple[tuple[str, Claim, Mutation, dict[str, str]], ...] = (
    # A failed request did not complete either.
    ("some failed", RAW, failing(40), {"failure_rate": "WARN", "incomplete": "WARN"}),
    ("many failed", RAW, failing(10), {"failure_rate": "FAIL", "incomplete": "FAIL"}),
    ("some never answered", PLAIN, scaling("asked", "request_count", 1.03), {"incomplete": "WARN"}),
    ("many never answered", PLAIN, scaling("asked", "request_count", 1.2), {"incomplete": "FAIL"}),
    ("nothing came", PLAIN, nothing, {"zero_output": "FAIL"}),
    ("some answers without usage", PLAIN, saying(without_usage=1), {"errors_as_success": "WARN"}),
    ("many answers without usage", PLAIN, without_usage, {"errors_as_success": "FAIL"}),
    ("answers that end half-way", RAW, cut_half_way, {"errors_as_success": "WARN", "osl_not_reached": "WARN"}),
    (
        "more goodput than requests",
        PLAIN,
        lambda claim: saying(goodput_per_s=2 * (claim.said.request_throughput_per_s or 0))(claim),
        {"impossible_values": "FAIL"},
    ),
    (
        *("a sum that is not of its parts", PLAIN, lambda claim: saying(total_tokens=_all_tokens(claim) + 1)(claim)),
        {"sum_mismatch": "FAIL"},
    ),
    (
        *("longer requests than asked, by the sum of their tokens", PLAIN, lambda claim: summed(claim, 1.2)),
        {"osl_not_reached": "FAIL"},
    ),
    (
        *("longer answers than asked, by two rates", PLAIN, lambda claim: only_rates(claim, 1.2)),
        {"osl_not_reached": "FAIL"},
    ),
    (
        "a mean that is not of the batches",
        RAW,
        both(iterations(8.0), lambda claim: replace(claim, latency_s={"e2el": {"mean": 9.0}})),
        {"stat_mismatch": "FAIL"},
    ),
    ("a slice is missing", PLAIN, without_slice, {"sum_mismatch": "FAIL"}),
    ("some answers of another length", PLAIN, saying(osl_mismatch_count=40), {"osl_not_reached": "WARN"}),
    ("stopped", PLAIN, saying(is_cancelled=True), {"cancelled": "FAIL"}),
    ("half a minute", RAW, short, {"duration_short": "WARN"}),
    ("a negative time", PLAIN, adding("ttft", min=-0.001), {"impossible_values": "FAIL"}),
    ("a token too many", RAW, lambda claim: _one_more(claim, "total_output_tokens"), {"sum_mismatch": "FAIL"}),
    ("a prompt token too many", RAW, lambda claim: _one_more(claim, "total_input_tokens"), {"sum_mismatch": "FAIL"}),
    ("an entry is missing", RAW, arrays(one_less), {"sum_mismatch": "FAIL"}),
    ("another rate", RAW, scaling("said", "output_throughput_tok_per_s", 1.01), {"derived_mismatch": "FAIL"}),
    ("another request rate", PLAIN, scaling("said", "request_throughput_per_s", 0.99), {"derived_mismatch": "FAIL"}),
    ("a trimmed rate", PLAIN, trimmed(1.03), {"derived_mismatch": "WARN"}),
    ("a trimmed rate far off", PLAIN, trimmed(1.2), {"derived_mismatch": "FAIL"}),
    (
        *("a mean length that its total does not give", PLAIN),
        lambda claim: saying(mean_output_tokens=2 * _output_of_each(claim))(claim),
        {"derived_mismatch": "FAIL"},
    ),
    (
        *("a mean length as printed", PLAIN),
        lambda claim: saying(mean_output_tokens=round(_output_of_each(claim)))(claim),
        {},
    ),
    ("another mean", RAW, stating("ttft", 1.01, "mean"), {"stat_mismatch": "WARN"}),
    ("quite another mean", RAW, stating("ttft", 1.05, "mean"), {"stat_mismatch": "FAIL", "percentile_order": "FAIL"}),
    ("percentiles in disorder", PLAIN, stating("ttft", 0.5, "p95"), {"percentile_order": "FAIL"}),
    ("a median no mean can have", PLAIN, stating("e2el", 1e-3, "p50"), {"percentile_order": "FAIL"}),
    ("a percentile that needs a larger mean", PLAIN, stating("ttft", 1e3, "p99"), {"percentile_order": "FAIL"}),
    ("a late start", RAW, arrays(entry("start_s", -1, 5.0)), {"window_mismatch": "WARN"}),
    ("a very late start", RAW, arrays(entry("start_s", -1, 20.0)), {"window_mismatch": "FAIL"}),
    ("longer than the window", PLAIN, adding("e2el", max=200.0), {"window_mismatch": "FAIL"}),
    ("a low peak", PLAIN, scaling("said", "peak_output_tok_per_s", 0.5), {"peak_below_mean": "WARN"}),
    ("torn requests", RAW, restated(torn), {"e2el_identity": "FAIL"}),
    ("TPOT too long", PLAIN, stating("tpot", 1.15), {"tpot_identity": "FAIL"}),
    ("TPOT a little too long", PLAIN, stating("tpot", 1.06), {"tpot_identity": "WARN"}),
    ("TPOT of unequal answers", VARIED, stating("tpot", 1.6), {"tpot_identity": "WARN"}),
    ("TPOT outside of its range", VARIED, odd_tpot, {"tpot_identity": "FAIL"}),
    ("a median TPOT too long", PLAIN, both(MEDIANS, stating("tpot", 1.6)), {"tpot_identity": "WARN"}),
    ("TPOT in ms", PLAIN, stating("tpot", 1e3), {"unit_suspect": "FAIL"}),
    ("TTFT in ms", PLAIN, stating("ttft", 1e3), {"unit_suspect": "FAIL"}),
    ("median TPOT in ms", PLAIN, both(MEDIANS, stating("tpot", 1e3)), {"unit_suspect": "FAIL"}),
    # So long a latency is also longer than the window, and would put a thousand times as many in flight.
    (
        *("E2EL in ms", PLAIN, stating("e2el", 1e3)),
        {"unit_suspect": "FAIL", "little_excess": "FAIL", "window_mismatch": "FAIL"},
    ),
    # The arrays tell of it too.
    ("arrays in other units", RAW, stating("ttft", 1e3), {"unit_suspect": "FAIL", "stat_mismatch": "FAIL"}),
    ("more in flight than asked", PLAIN, asking(concurrency=7), {"little_excess": "FAIL"}),
    ("by medians more in flight", PLAIN, both(MEDIANS, asking(concurrency=6)), {"little_excess": "WARN"}),
    ("half in flight", RAW, asking(concurrency=14), {"concurrency_not_reached": "WARN"}),
    ("a quarter in flight", RAW, asking(concurrency=32), {"concurrency_not_reached": "FAIL"}),
    # Medians cannot tell a load that never was from a cold start.
    (
        *("by medians half in flight", PLAIN, both(MEDIANS, asking(concurrency=14))),
        {"concurrency_not_reached": "WARN", "cold_start_contamination": "WARN"},
    ),
    (
        *("by medians of parts half in flight", PLAIN, both(MEDIANS, NO_E2EL, asking(concurrency=14))),
        {"concurrency_not_reached": "WARN", "cold_start_contamination": "WARN"},
    ),
    ("a cold start", RAW, cold(30.0), {"cold_start_contamination": "WARN"}),
    ("a very cold start", RAW, cold(120.0), {"cold_start_contamination": "FAIL"}),
    ("a cool iteration", RAW, iterations(10.0), {"cold_start_contamination": "WARN"}),
    ("a cold iteration", RAW, iterations(20.0), {"cold_start_contamination": "FAIL"}),
    ("some events of two tokens", RAW, restated(merged(10)), {"chunk_token_ratio": "WARN"}),
    ("many events of two tokens", RAW, restated(merged(5)), {"chunk_token_ratio": "FAIL"}),
    # The reason beside what it does.
    (
        *("events of two tokens", RAW, restated(merged(2))),
        {"chunk_token_ratio": "FAIL", "chunked_stream": "FAIL"},
    ),
    ("long gaps", PLAIN, stating("itl", 1.3), {"chunk_token_ratio": "WARN"}),
    ("very long gaps", PLAIN, stating("itl", 2.0), {"chunk_token_ratio": "FAIL", "chunked_stream": "FAIL"}),
    ("bursts", RAW, restated(bursting), {"bursty_stream": "WARN"}),
    ("short answers", RAW, scaling("asked", "osl", 1.05), {"osl_not_reached": "WARN"}),
    ("very short answers", RAW, scaling("asked", "osl", 1.5), {"osl_not_reached": "FAIL"}),
    ("long prompts", RAW, scaling("asked", "isl", 0.95), {"isl_mismatch": "WARN"}),
    ("very long prompts", RAW, scaling("asked", "isl", 0.5), {"isl_mismatch": "FAIL"}),
    ("another tokenizer", PLAIN, lambda claim: _usage(claim, 1.05), {"usage_mismatch": "WARN"}),
    ("quite another tokenizer", PLAIN, lambda claim: _usage(claim, 1.5), {"usage_mismatch": "FAIL"}),
    ("a late client", PLAIN, saying(send_delay_p99_s=0.5), {"client_bound": "WARN"}),
    ("a slow sender", OPEN, scaling("asked", "request_rate_per_s", 1.1), {"rate_not_offered": "WARN"}),
    ("a very slow sender", OPEN, scaling("asked", "request_rate_per_s", 1.5), {"rate_not_offered": "FAIL"}),
    ("more than it can", OPEN, overloaded, {"over_saturated": "WARN"}),
    ("more tokens by the server", RAW, scaling("server", "generated_tokens", 1.1), {"client_server_mismatch": "WARN"}),
    ("two clients", RAW, scaling("server", "generated_tokens", 2.0), {"client_server_mismatch": "FAIL"}),
    # Prompts are counted by the server, also to see how long they were.
    (
        *("fewer prompt tokens by the server", RAW, scaling("server", "prompt_tokens", 0.9)),
        {"client_server_mismatch_prompt": "FAIL", "isl_mismatch": "WARN"},
    ),
    (
        *("fewer requests by the server", RAW, scaling("server", "requests", 0.9)),
        {"client_server_mismatch_requests": "FAIL", "isl_mismatch": "FAIL"},
    ),
    ("an answer before it was made", RAW, serving(ttft_mean_s=9.0), {"client_server_latency": "FAIL"}),
    ("another TPOT by the server", RAW, scaling("server", "tpot_mean_s", 1.2), {"client_server_latency": "WARN"}),
    ("a cache", RAW, serving(prefix_queries=1000.0, prefix_hits=50.0), {"prefix_cache_contamination": "WARN"}),
    ("a full cache", RAW, serving(prefix_queries=1000.0, prefix_hits=500.0), {"prefix_cache_contamination": "FAIL"}),
    ("preempted", RAW, serving(preemptions=3.0), {"preempted": "WARN"}),
    ("five waves", PLAIN, waves(5, 1000), {"too_few_prompts": "WARN"}),
    ("one wave", PLAIN, waves(1, 3500), {"too_few_prompts": "FAIL"}),
    ("one request, alone", PLAIN, waves(1, 3500, slots=1), {"too_few_prompts": "WARN"}),
    (
        "a p99 of few",
        ONE_AT_A_TIME,
        lambda claim: adding("ttft", p99=claim.latency_s["ttft"]["p95"])(claim),
        {"tail_unsupported": "WARN"},
    ),
    # The window that the interval is stated without.
    (
        *("an interval of half a minute", PLAIN, both(short, saying(interval_half_width_share=0.01))),
        {"bias_guard": "WARN", "duration_short": "WARN"},
    ),
    ("wrong answers", PLAIN, both(asking(slo_quality=0.8), saying(quality=0.5)), {"quality_below": "FAIL"}),
)


def _one_more(claim: Claim, name: str) -> Claim:
    return replace(claim, said=replace(claim.said, **{name: getattr(claim.said, name) + 1}))


def _usage(claim: Claim, by: float) -> Claim:
    return saying(usage_output_tokens=round((claim.said.total_output_tokens or 0) * by))(claim)


@pytest.mark.parametrize(("claim", "mutate", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_spoiling_a_measurement_makes_its_rule_fire(claim: Claim, mutate: Mutation, expected: dict[str, str]) -> None:
    assert _doubts(claim) == []

    assert _fired(mutate(claim)) == expected


@pytest.mark.parametrize(("slower", "outcome"), [(1.02, "PASS"), (1.2, "WARN"), (1.6, "FAIL")])
def test_repeats_that_differ_are_unstable_together(slower: float, outcome: str) -> None:
    load = long_enough(load_of())
    runs = [replace(load, seed=seed, efficiency=0.6 / by) for seed, by in enumerate((1.0, slower, 1.0))]

    judged = _judged(*(claim_of(simulate(run), has_series=False) for run in runs))

    found = [[each.status for each in one.findings if each.code == "unstable"] for one in judged]
    assert found == [[outcome]] * 3


def test_claims_of_other_configurations_are_no_repeats() -> None:
    others = [asking(tp_size=2)(PLAIN), scaling("said", "total_input_tokens", 2.0)(PLAIN)]

    assert [each.code for each in _judged(PLAIN, *others)[0].findings if each.code == "unstable"] == []


def test_every_rule_is_seen_to_fire() -> None:
    fired = {column for _name, claim, mutate, _expected in CASES for column in _columns(mutate(claim))}

    ours = {rule.column for rule in IDENTITY_RULES if rule.scope != "group"}
    assert fired == ours | NIGHT_COLUMNS


def test_rows_whose_load_is_told_in_words_only_are_no_repeats() -> None:
    lineage = ClaimSource("table.csv", "0" * 64, "", "claims-table", 1)
    claim = Claim(lineage, said=ClaimedTotals(total_throughput_tok_per_s=100.0), label="llama2-70b")
    other = replace(claim, said=ClaimedTotals(total_throughput_tok_per_s=300.0))
    loaded = [replace(each, asked=ClaimedConfig(concurrency=8)) for each in (claim, other)]
    apart = [replace(each, unread={"notes": note}) for each, note in zip(loaded, ("Offline", "Server"), strict=True)]

    assert [repeats([claim, other]), repeats(apart)] == [[{}, {}], [{}, {}]]
    assert all("ev_repeat_variation" in found for found in repeats(loaded))


@pytest.mark.parametrize(("times", "words"), [(8.0, "exactly 8 times"), (0.5, "exactly 1/2 of"), (1.9, None)])
def test_a_rate_that_is_scaled_from_one_instance_is_named_so(times: float, words: str | None) -> None:
    (doubt, *_) = _doubts(scaling("said", "output_throughput_tok_per_s", times)(PLAIN))

    assert doubt.startswith("FAIL derived_mismatch")
    assert ("exactly" in doubt) == (words is not None)
    assert (words or "apart") in doubt


@pytest.mark.parametrize(
    ("requests", "is_fixed", "ratio"), [(40, None, 0.9), (40, True, 0.8), (4000, None, 0.8), (40, False, 1.0)]
)
def test_lengths_that_may_have_been_drawn_are_a_doubt_and_no_failure(
    requests: int, *, is_fixed: bool | None, ratio: float
) -> None:
    asked = ClaimedConfig(osl=100.0, has_fixed_lengths=is_fixed)
    said = ClaimedTotals(completed=requests, total_output_tokens=80 * requests)

    observed = row_evidence(replace(PLAIN, asked=asked, said=said), Subject())[ev.OSL_RATIO]

    assert isinstance(observed, Observed)
    assert observed.value == pytest.approx(ratio)


@pytest.mark.parametrize(("rate_per_s", "variation"), [(None, 0.2), (8.0, 0.0)])
def test_arrivals_at_random_times_are_no_instability(rate_per_s: float | None, variation: float) -> None:
    driven = {"request_rate_per_s": rate_per_s} if rate_per_s else {"concurrency": 8}
    asked = ClaimedConfig(has_fixed_lengths=True, **driven)
    faster = ClaimedTotals(completed=200, output_throughput_tok_per_s=100 * (1 + 2**0.5 / 10))
    slower = replace(faster, output_throughput_tok_per_s=100 * (1 - 2**0.5 / 10))

    found = repeats([replace(PLAIN, asked=asked, said=said, label="m", repeat_of="m") for said in (faster, slower)])

    observed = found[0][ev.REPEAT_VARIATION]
    assert isinstance(observed, Observed)
    assert observed.value == pytest.approx(variation)


@pytest.mark.parametrize(
    ("told", "variation"), [({}, 0.15), ({"total_input_tokens": 1, "total_output_tokens": 1}, 0.2)]
)
def test_repeats_whose_lengths_are_not_told_are_a_doubt_and_no_failure(told: dict[str, int], variation: float) -> None:
    asked, both = ClaimedConfig(concurrency=8, request_count=80), [114.142, 85.858]
    said = [ClaimedTotals(output_throughput_tok_per_s=rate, **told) for rate in both]  # type: ignore[arg-type]  # counts

    found = repeats([replace(PLAIN, asked=asked, said=each, repeat_of="m") for each in said])

    observed = found[0][ev.REPEAT_VARIATION]
    assert isinstance(observed, Observed)
    assert observed.value == pytest.approx(variation, rel=1e-4)


@pytest.mark.parametrize(("fixed", "little"), [(None, 0.983), (True, 1.25)])
def test_requests_counted_by_asked_lengths_allow_for_drawn_ones(*, fixed: bool | None, little: float) -> None:
    asked = ClaimedConfig(concurrency=4, osl=100.0, has_fixed_lengths=fixed)
    said = ClaimedTotals(output_throughput_tok_per_s=500.0123)
    claim = replace(PLAIN, asked=asked, said=said, latency_s={"e2el": {"mean": 1.000123}})

    observed = row_evidence(claim, Subject())[ev.LITTLE_OVER_ASKED]

    assert isinstance(observed, Observed)
    assert observed.value == pytest.approx(little, rel=0.01)
