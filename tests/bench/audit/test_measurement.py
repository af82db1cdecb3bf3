import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import evidence_columns as ev
from bench.audit.measurement import evidence, loop_of
from bench.audit.rules import NIGHT_RULES, NOT_CHECKABLE, Evidence, Rule, Status, judge, verdict
from bench.engines import prometheus, sglang
from bench.engines.by_name import ENGINES
from bench.host_use import Busy
from bench.loadgen.embeddings import without_tokens
from bench.loadgen.report import PlannedTokens
from bench.loadgen.sessions import Sessions
from bench.quality.answers import agreed_share, fall
from bench.quality.lm_eval import EarlierScore, fall_se
from bench.record import Accuracy, Answers, CalibratedLoad, Calibration
from bench.server_facts import ServerFacts, StartPhases
from bench.steady import PARTS
from bench.suite.prompts import Prompts
from bench.suite.quality import Quality
from bench.suite.workload import Workload
from bench.wording import PlainNumber
from tests.bench.builders import (
    ANSWERS,
    CALIBRATION,
    CLOSED,
    HOST_USE,
    OPEN,
    STARTED_AT,
    Measured,
    closed_loop,
    healthy,
    looks,
    open_loop,
)

# Columns that say of a run that it has a kind of workload with rules of its own.
KINDS = {
    *("adapters", "answer_form", "cancelled", "client_hosts", "core_speed_share", "images_sent", "is_speculative"),
    *("embedding_dimensions", "kv_offload_backend", "kv_connector", "repeated_e2el_p50_ms", "start_other_s"),
}
RULE = {rule.code: rule for rule in NIGHT_RULES}
Mutation = Callable[[Measured], Measured]


def _starting(*flags: str) -> Mutation:
    """The same run of an engine that was started with these flags, too."""

    def mutate(run: Measured) -> Measured:
        asked = run.record.asked
        engine = asked.engine.model_copy(update={"flags": (*asked.engine.flags, *flags)})
        return replace(run, record=run.record.model_copy(update={"asked": asked.model_copy(update={"engine": engine})}))

    return mutate


with_room = _starting("--max-num-seqs", "1024")
STEADY = with_room(healthy(closed_loop(CLOSED, [1.0] * 40), CLOSED))
POISSON = healthy(open_loop(OPEN, [1.0] * 40, [0.5] * 40), OPEN)


def _opening(mean: float) -> "Mutation":
    """The same run, with so many sessions open."""
    length, count = 10.0, 36
    begin_s = np.floor(np.arange(count) / mean) * length  # side by side, one after another
    sessions = Sessions(
        begin_s, begin_s + length, np.full(count, length), np.ones(count), np.ones(count, bool), np.ones(count, bool)
    )
    return lambda run: replace(run, report=replace(run.report, sessions=sessions))


_TRACE = OPEN.model_copy(update={"arrivals": "trace", "request_rate_per_s": None, "trace": "a.csv"})
REPLAY = healthy(open_loop(_TRACE, [1.0] * 40, [0.5] * 40), _TRACE)
_TALKS = CLOSED.model_copy(update={"arrivals": "sessions", "prompts": Prompts(kind="multi-turn", turns=2, pause_s=1.0)})
SESSIONS = _opening(4.0)(with_room(healthy(closed_loop(_TALKS, [1.0] * 40), _TALKS)))


def _evidence(run: Measured) -> Evidence:
    return evidence(run.record, run.report, run.row, run.deltas, run.scrapes) | _beside_earlier(run)


def _beside_earlier(run: Measured) -> Evidence:
    """What the load step adds: the answers beside those of an earlier, healthy night."""
    asked = run.record.accuracy
    if asked is None or asked.after is None:
        return {}
    means = (asked.before.logprob_mean, asked.after.logprob_mean)
    return {
        "ev_logprob_fall": fall(means, [-2.0]),
        "ev_lm_eval_fall_se": fall_se(
            run.row.get("score") or 0.6, 0.03, [EarlierScore(0.6, 0.03)], is_higher_better=True
        ),
        "ev_lm_eval_over_floor": (run.row.get("score") or 0.6) / 0.3,
        "ev_greedy_agreed_earlier_share": agreed_share(asked.before.greedy, ANSWERS.greedy),
    }


def _beside(**used: object) -> Mutation:
    """The same run, beside other processes on its host."""
    return lambda run: replace(run, record=run.record.model_copy(update={"host_use": HOST_USE.model_copy(update=used)}))


def _on_slow_cores(share: float) -> Mutation:
    """The same run, with cores at this share of their best speed."""
    return lambda run: replace(run, stored=run.stored | {"core_speed_share": share})


def _robbed(steal_share: float) -> Mutation:
    """The same run on a host of whose time a hypervisor took this share."""
    busy = Busy(load_average_before=0.1, load_average_after=0.1, steal_share=steal_share)
    return lambda run: replace(run, record=run.record.model_copy(update={"busy": busy}))


def _answering(*, before: Answers = ANSWERS, after: Answers = ANSWERS) -> Mutation:
    """The same run of a server with other answers before and after its load."""
    asked = Accuracy(passage="1", before=before, after=after)
    return lambda run: replace(run, record=run.record.model_copy(update={"accuracy": asked}))


def _likely(mean: float) -> Answers:
    return ANSWERS.model_copy(update={"logprob_mean": mean})


OTHER_WORDS = ANSWERS.model_copy(update={"greedy": (tuple(range(16)), tuple(range(1, 17)))})


def _statuses(run: Measured) -> dict[str, Status]:
    columns = _evidence(run)
    loop, driver = loop_of(run.record), run.record.asked.workload.driver
    work = run.record.asked.workload
    kind = {"is_exact": work.prompts.has_exact_length, "has_tokens": not work.is_embedding}
    rules = [rule for rule in NIGHT_RULES if rule.applies(loop, driver, **kind)]
    others = {rule.column for rule in rules if rule.only_where in KINDS and columns[rule.column] is None}
    return {rule.code: judge(rule, columns[rule.column]) for rule in rules if rule.column not in others}


def _verdict(statuses: Mapping[str, Status]) -> str:
    return verdict({RULE[code].column: status for code, status in statuses.items()})


def _asking(**changes: object) -> Mutation:
    """The same run, had its suite asked for another load."""

    def mutate(run: Measured) -> Measured:
        asked = run.record.asked
        work = Workload.model_validate(asked.workload.model_dump() | changes)
        return replace(run, record=run.record.model_copy(update={"asked": asked.model_copy(update={"workload": work})}))

    return mutate


def _demanding(**changes: float) -> Mutation:
    """The same run, had its suite demanded another quality."""

    def mutate(run: Measured) -> Measured:
        quality = Quality.model_validate(run.record.quality.model_dump() | changes)
        return replace(run, record=run.record.model_copy(update={"quality": quality}))

    return mutate


def _storing(**columns: float) -> Mutation:
    return lambda run: replace(run, stored=dict(columns))


def _on_engine(run: Measured, name: str) -> Measured:
    asked = run.record.asked
    engine = asked.engine.model_copy(update={"name": name})
    return replace(run, record=run.record.model_copy(update={"asked": asked.model_copy(update={"engine": engine})}))


def _serving(version: str | None) -> Mutation:
    def mutate(run: Measured) -> Measured:
        server = run.record.server
        assert isinstance(server, ServerFacts)
        found = server.model_copy(update={"engine_version": version})
        return replace(run, record=run.record.model_copy(update={"server": found}))

    return mutate


def _failing(count: int) -> Mutation:
    def mutate(run: Measured) -> Measured:
        is_ok = run.report.requests.is_ok.copy()
        is_ok[:count] = False
        return run.with_requests(is_ok=is_ok)

    return mutate


def _limiting(count: int) -> Mutation:
    def mutate(run: Measured) -> Measured:
        rest = run.report.requests.outcome[count:]
        return run.with_requests(outcome=("rate_limited",) * count + rest)

    return mutate


def _starting_cold(wait_s: float) -> Mutation:
    """The first request of each slot waited this much longer for its first token."""

    def mutate(run: Measured) -> Measured:
        send_s = run.report.requests.send_s.copy()
        send_s[: CLOSED.concurrency] -= wait_s
        return run.with_requests(send_s=send_s)

    return mutate


def _with_lag(lag_s: float | None) -> Mutation:
    return lambda run: replace(run, report=replace(run.report, lag_p99_s=lag_s))


def _calibrated_for(streams: int, stream_tok_per_s: float) -> Mutation:
    """The same run, had its client been calibrated for this load only."""
    load = CalibratedLoad(streams=streams, stream_tok_per_s=stream_tok_per_s, workers=1)

    def mutate(run: Measured) -> Measured:
        calibration = CALIBRATION.model_copy(update={"loads": (load,)})
        return replace(run, record=run.record.model_copy(update={"calibration": calibration}))

    return mutate


def _halving_gaps(count: int) -> Mutation:
    """In this many requests the gaps are half of what passed between the first token and the last."""

    def mutate(run: Measured) -> Measured:
        gap_s = run.report.requests.gap_s.copy()
        gap_s[: run.report.requests.gap_at[count]] /= 2
        return run.with_requests(gap_s=gap_s)

    return mutate


def _overlapping(share: float) -> Mutation:
    """All requests but the very first left this share of their latency too early."""

    def mutate(run: Measured) -> Measured:
        requests = run.report.requests
        early = np.where(requests.send_s > requests.send_s.min(), requests.e2el_s * share, 0.0)
        return run.with_requests(send_s=requests.send_s - early)

    return mutate


def _sending_slower(factor: float) -> Mutation:
    return lambda run: run.with_requests(send_s=run.report.requests.send_s * factor)


def _planning(count: int) -> Mutation:
    return lambda run: replace(run, report=replace(run.report, planned_count=count))


def _reporting(**changes: object) -> Mutation:
    """The same run, had its driver reported something else."""
    return lambda run: replace(run, report=replace(run.report, **changes))  # type: ignore[arg-type]


def _holding(live: float) -> Mutation:
    """So many requests were live in the steady window, and the server saw as many."""

    def mutate(run: Measured) -> Measured:
        assert run.report.steady is not None
        steady = replace(run.report.steady, live_mean=live)
        return replace(run, report=replace(run.report, steady=steady), scrapes=looks(steady))

    return mutate


def _seeing(live: float) -> Mutation:
    """The server saw so many requests in the steady window."""
    return lambda run: replace(run, scrapes=looks(run.report.steady, live))


def _slowing(share: float) -> Mutation:
    """Throughput falls by this share of its mean over the steady window."""

    def mutate(run: Measured) -> Measured:
        assert run.report.steady is not None
        parts = 100 * (1 - share * np.linspace(-0.5, 0.5, PARTS))
        return replace(run, report=replace(run.report, steady=replace(run.report.steady, part_tokens=parts)))

    return mutate


def _not_answering(count: int) -> Mutation:
    def mutate(run: Measured) -> Measured:
        assert run.scrapes is not None
        took_s, live = run.scrapes.took_s.copy(), run.scrapes.live.copy()
        took_s[:count], live[:count] = np.nan, np.nan
        return replace(run, scrapes=replace(run.scrapes, took_s=took_s, live=live))

    return mutate


def _timing(**factors: float) -> Mutation:
    """The server's own times of each request are so many times what they were."""

    def mutate(run: Measured) -> Measured:
        times = run.report.server_times
        assert times is not None
        changed = {name: getattr(times, name) * factor for name, factor in factors.items()}
        return replace(run, report=replace(run.report, server_times=replace(times, **changed)))

    return mutate


def _counting_more(tokens: int) -> Mutation:
    return lambda run: run.with_requests(output_tokens=run.report.requests.output_tokens + tokens)


def _aborting(count: int) -> Mutation:
    return lambda run: run.with_deltas(**{"request_success_total.abort": float(count)})


def _merging_events(run: Measured) -> Measured:
    """Two tokens in each stream event, of a driver that does not say so: half the gaps, each twice as long."""
    requests = run.report.requests
    unsaid = np.full(len(requests), -1, dtype=np.int64)
    return run.with_requests(
        gap_s=requests.gap_s[::2] * 2,
        gap_at=requests.gap_at // 2,
        gap_tokens=requests.gap_tokens[::2] * -1,
        event_tokens=unsaid,
    )


def _moving(name: str, factor: float, more: float = 0.0) -> Mutation:
    return lambda run: run.with_deltas(**{name: (run.deltas or {})[name] * factor + more})


def _drafting(accepted: float, drafts: float = 100.0) -> Mutation:
    """The same run, whose server's counters show these drafts of three tokens."""
    moved = {"drafts": drafts, "draft_tokens": 3 * drafts, "accepted_tokens": accepted}
    return lambda run: run.with_deltas(**{f"spec_decode_num_{name}_total": count for name, count in moved.items()})


def _speculating(run: Measured) -> Measured:
    """The same run of an engine that drafts three tokens of written prompts, half of which are accepted."""
    asked = _starting("--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}')(run)
    return _drafting(150.0)(_asking(prompts={"kind": "written", "form": "text"})(asked))


def _repeating(factor: float, *, of_first: float | None = None) -> Mutation:
    """Every second prompt is the same: its gaps are so many times as long, and its wait for the first token."""

    def mutate(run: Measured) -> Measured:
        requests = run.report.requests
        is_same = requests.index % 2 == 0
        ttft_s = requests.ttft_s * np.where(is_same, of_first or factor, 1.0)
        first_s = requests.send_s + ttft_s
        last_s = first_s + (requests.e2el_s - requests.ttft_s) * np.where(is_same, factor, 1.0)
        repeated = run.with_requests(first_token_s=first_s, last_token_s=last_s)
        return _asking(prompts={"kind": "repeated", "form": "text"})(repeated)

    return mutate


def _demanding_form(share: float) -> Mutation:
    """The same run, whose answers must be JSON, and of which this share is."""
    form = {"json_schema": '{"type": "object"}', "valid_share_min": 0.9}
    return lambda run: _reporting(valid_share=share)(_asking(answers=form)(run))


def _cancelling(count: int, computed: float) -> Mutation:
    """The same run, whose first requests the client cancelled half-way; the server computed this share of the rest."""

    def mutate(run: Measured) -> Measured:
        requests, osl = run.report.requests, run.record.asked.workload.osl
        is_ok, output, tokens = requests.is_ok.copy(), requests.output_tokens.copy(), requests.event_tokens.copy()
        is_ok[:count], output[:count], tokens[:count] = False, -1, osl // 2
        outcome = ("cancelled_as_planned",) * count + requests.outcome[count:]
        changed = run.with_requests(is_ok=is_ok, output_tokens=output, event_tokens=tokens, outcome=outcome)
        computed_tokens = (run.deltas or {})["generation_tokens_total"] - count * (osl // 2) * (1 - computed)
        finished = (run.deltas or {})["request_success_total.length"] - count
        moved = {"generation_tokens_total": computed_tokens, "request_success_total.length": finished}
        asked = _asking(cancel={"share": 0.25, "after_s": [0.1, 0.2]})(changed)
        return asked.with_deltas(**moved)

    return mutate


def _reading_images(read: float, found: float = 0.0) -> Mutation:
    """The same run with two images a request, 84 with its warm-up, of which the server read and found so many."""
    prompts = {"kind": "images", "form": "chat", "width": 64, "height": 64, "images": 2}

    def mutate(run: Measured) -> Measured:
        return _asking(prompts=prompts)(run).with_deltas(mm_cache_queries_total=read, mm_cache_hits_total=found)

    return mutate


def _offloading(looked_up: float) -> Mutation:
    """The same run with a tier behind the KV cache, in which the server looked up so many tokens."""

    def mutate(run: Measured) -> Measured:
        asked = _starting("--kv-offloading-size", "64")(run)
        return asked.with_deltas(external_prefix_cache_queries_total=looked_up)

    return mutate


def _splitting(*, passed: float = 1.0, received: float = 1.0) -> Mutation:
    """The same run on two servers: shares of the prompt tokens that passed the prefill server, and of the blocks."""

    def mutate(run: Measured) -> Measured:
        server = run.record.server
        assert server is not None
        started = server.model_copy(update={"argv": (*server.argv, "--block-size", "16")})
        prompt = (run.deltas or {})["prompt_tokens_total"]
        blocks = 112 / 128  # without that of the last token
        split = replace(run, record=run.record.model_copy(update={"server": started}))
        return split.with_deltas(
            router_requests_total=40.0,
            prefill_prompt_tokens_total=passed * prompt,
            external_prefix_cache_hits_total=received * blocks * prompt,
        )

    return mutate


def _embedding(odd_share: float) -> Mutation:
    """The same run of embeddings, of which this share is odd."""

    def mutate(run: Measured) -> Measured:
        asked = _asking(task="embed", osl=1)(run)
        report = replace(run.report, requests=without_tokens(run.report.requests), dimensions=64)
        return replace(asked, report=replace(report, odd_vector_share=odd_share))

    return mutate


def _holding_adapters(*alike: str) -> Mutation:
    """The same run on two adapters, of which these answer as the base model."""

    def mutate(run: Measured) -> Measured:
        asked = _asking(adapters=["a", "b"])(run)
        return replace(asked, record=asked.record.model_copy(update={"adapters_like_base": alike}))

    return mutate


def _starting_for(weights_s: float) -> Mutation:
    """A server whose own log has so long a phase of its start, which took 12.5 s by our clock."""
    start = StartPhases(started_at=STARTED_AT, weights_s=weights_s)

    def mutate(run: Measured) -> Measured:
        assert isinstance(run.record.server, ServerFacts)
        server = run.record.server.model_copy(update={"start": start})
        return replace(run, record=run.record.model_copy(update={"server": server}))

    return mutate


SPECULATING = _speculating(STEADY)
STARTED = _starting_for(12.0)(STEADY)
ADAPTED = _holding_adapters()(STEADY)
CANCELLING = _cancelling(10, 0.0)(STEADY)
FORMED = _demanding_form(0.95)(STEADY)
PICTURED = _reading_images(84.0)(STEADY)
EMBEDDED = _embedding(0.0)(STEADY)
OFFLOADING = _offloading(64.0)(STEADY)
SPLIT = _splitting()(STEADY)
REPEATING = _repeating(1.0)(STEADY)
SHARED = _reporting(client_hosts=2, clock_error_s=1e-6)(STEADY)
WARNS: list[tuple[str, Measured, Mutation]] = [
    ("failure_rate", STEADY, _failing(2)),
    ("incomplete", STEADY, _planning(41)),
    ("duration_short", STEADY, _demanding(min_duration_s=20.0)),
    ("e2el_identity", STEADY, _halving_gaps(1)),
    ("little_excess", STEADY, _overlapping(0.05)),
    ("concurrency_not_reached", STEADY, _asking(concurrency=6)),
    ("concurrency_over_slots", STEADY, _starting("--max-num-seqs", "2")),
    ("cold_start_contamination", STEADY, _starting_cold(3.0)),
    ("rate_not_offered", POISSON, _sending_slower(1.1)),
    ("osl_not_reached", STEADY, _asking(osl=68)),
    ("isl_mismatch", STEADY, _asking(isl=132)),
    ("chunk_token_ratio", STEADY, _counting_more(2)),
    ("client_server_mismatch", STEADY, _moving("generation_tokens_total", 1.10)),
    ("client_server_mismatch_prompt", STEADY, _moving("prompt_tokens_total", 0.96)),
    ("client_server_mismatch_requests", STEADY, _moving("request_success_total.length", 1.10)),
    ("server_errors", STEADY, _aborting(1)),
    ("rate_limited", STEADY, _limiting(1)),
    ("prefix_cache_contamination", STEADY, _moving("prefix_cache_hits_total", 1.0, more=300.0)),
    ("live_not_held", STEADY, _holding(3.85)),
    ("steady_drift", STEADY, _slowing(0.2)),
    ("dispatch_late", POISSON, _reporting(dispatch_delay_p99_s=0.02)),
    ("late_replay", REPLAY, _reporting(dispatch_delay_p99_s=0.02)),
    ("sessions_not_held", SESSIONS, _opening(3.0)),
    ("live_disagreement", STEADY, _seeing(4.1)),
    ("server_unwatched", STEADY, _not_answering(2)),
    ("tpot_disagreement", STEADY, _timing(mean_itl_s=1.2)),
    ("cached_tokens_drift", STEADY, _reporting(cached_tokens=16)),
    ("preempted", STEADY, _moving("num_preemptions_total", 1.0, more=1.0)),
    ("too_few_prompts", STEADY, _demanding(min_requests_per_slot=20.0)),
    ("client_bound", STEADY, _with_lag(0.1)),
    ("client_bound_core", STEADY, _reporting(core_share=0.71)),
    ("client_bound_merged", STEADY, _reporting(merged_late_share=0.006)),
    ("client_clocks_apart", SHARED, _reporting(clock_error_s=0.5)),
    ("client_bound_envelope", STEADY, _calibrated_for(3, 1000.0)),
    ("busy_host", STEADY, _beside(other_cpu_share=0.06)),
    ("stolen_cpu", STEADY, _robbed(0.06)),
    ("slow_core", _on_slow_cores(1.0)(STEADY), _on_slow_cores(0.9)),
    ("busy_host_gpu", STEADY, _beside(other_gpu_processes=("miner (pid 7)",))),
    ("numerics_changed", STEADY, _answering(after=_likely(-2.02))),
    ("numerics_changed_greedy", STEADY, _answering(after=OTHER_WORDS)),
    ("numerics_changed_since", STEADY, _answering(before=OTHER_WORDS, after=OTHER_WORDS)),
    ("quality_below", STEADY, _answering(before=_likely(-2.02), after=_likely(-2.02))),
    ("quality_below_tasks", STEADY, _storing(score=0.5)),
    ("kv_offload_idle", OFFLOADING, _offloading(0.0)),
    ("prefill_bypassed", SPLIT, lambda _run: _splitting(passed=0.995)(STEADY)),
    ("kv_computed_again", SPLIT, lambda _run: _splitting(received=0.95)(STEADY)),
    ("speculation_idle", SPECULATING, _drafting(0.0, drafts=0.0)),
    ("cached_outputs", REPEATING, _repeating(0.8)),
    ("cancel_ignored", CANCELLING, lambda _run: _cancelling(10, 0.4)(STEADY)),
    ("cached_prompts", REPEATING, _repeating(1.0, of_first=0.5)),
]
FAILS: list[tuple[str, Measured, Mutation]] = [
    ("failure_rate", STEADY, _failing(3)),
    ("incomplete", STEADY, _planning(50)),
    ("duration_short", STEADY, _demanding(min_duration_s=1000.0)),
    ("derived_mismatch", STEADY, _storing(output_throughput_tok_per_s=250.0)),
    ("e2el_identity", STEADY, _halving_gaps(40)),
    ("percentile_order", STEADY, _storing(ttft_p50_ms=9.0, ttft_p90_ms=8.0)),
    ("little_excess", STEADY, _asking(concurrency=3)),
    ("concurrency_not_reached", STEADY, _asking(concurrency=9)),
    ("cold_start_contamination", STEADY, _starting_cold(30.0)),
    ("rate_not_offered", POISSON, _sending_slower(2.0)),
    ("late_replay", REPLAY, _reporting(dispatch_delay_p99_s=0.2)),
    ("sessions_not_held", SESSIONS, _opening(1.0)),
    ("osl_not_reached", STEADY, _asking(osl=128)),
    ("isl_mismatch", STEADY, _asking(isl=256)),
    ("engine_version_conflict", STEADY, _serving("0.31.0")),
    ("chunk_token_ratio", STEADY, _merging_events),
    ("client_server_mismatch", STEADY, _moving("generation_tokens_total", 2.0)),
    ("client_server_mismatch_prompt", STEADY, _moving("prompt_tokens_total", 0.5)),
    ("client_server_mismatch_requests", STEADY, _moving("request_success_total.length", 2.0)),
    ("live_not_held", STEADY, _holding(2.0)),
    ("live_disagreement", STEADY, _seeing(1.0)),
    ("ttft_below_server", STEADY, _timing(ttft_s=1.1)),
    ("tpot_disagreement", STEADY, _timing(mean_itl_s=2.0)),
    ("token_count_drift", STEADY, _moving("generation_tokens_total", 1.0, more=1.0)),
    ("prompt_count_drift", STEADY, _moving("prompt_tokens_total", 1.0, more=-1.0)),
    ("request_count_drift", STEADY, _moving("request_success_total.length", 1.0, more=1.0)),
    ("rate_limited", STEADY, _limiting(3)),
    ("cached_answers", STEADY, _reporting(cache_hits=1)),
    ("server_restarted", STEADY, _moving("prompt_tokens_total", -1.0)),
    ("prefix_cache_contamination", STEADY, _moving("prefix_cache_hits_total", 1.0, more=3000.0)),
    ("too_few_prompts", STEADY, _demanding(min_requests_per_slot=60.0)),
    ("tail_unsupported", STEADY, _storing(ttft_p99_ms=1.0)),
    ("numerics_changed", STEADY, _answering(after=_likely(-2.06))),
    ("quality_below", STEADY, _answering(before=_likely(-2.06), after=_likely(-2.06))),
    ("quality_below_tasks", STEADY, _storing(score=0.4)),
    ("quality_below_floor", STEADY, _storing(score=0.29)),
    ("speculation_on_random_prompts", SPECULATING, _asking(prompts={"kind": "random"})),
    ("acceptance_impossible", SPECULATING, _drafting(301.0)),
    ("cached_outputs", REPEATING, _repeating(0.5)),
    ("adapter_missing", ADAPTED, _holding_adapters("b")),
    ("cancel_ignored", CANCELLING, lambda _run: _cancelling(10, 1.0)(STEADY)),
    ("answers_invalid", FORMED, _demanding_form(0.89)),
    ("images_not_read", PICTURED, _reading_images(82.0)),
    ("images_cached", PICTURED, _reading_images(84.0, 1.0)),
    ("embeddings_unusable", EMBEDDED, _embedding(0.1)),
    ("prefill_bypassed", SPLIT, lambda _run: _splitting(passed=0.5)(STEADY)),
    ("kv_computed_again", SPLIT, lambda _run: _splitting(received=0.5)(STEADY)),
    ("start_longer_than_measured", STARTED, _starting_for(15.0)),
]
SPOILT = {code: run for code, run, _ in [*WARNS, *FAILS]}


@given(
    slots=st.integers(1, 12),
    requests_per_slot=st.integers(10, 40),
    isl=st.integers(1, 4096),
    osl=st.integers(1, 64),
    pace_s=st.floats(0.05, 20.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_healthy_closed_run_passes_every_rule(
    slots: int, requests_per_slot: int, isl: int, osl: int, pace_s: float, seed: int
) -> None:
    work = Workload(isl=isl, osl=osl, concurrency=slots, request_count=slots * requests_per_slot, warmup_count=seed % 5)
    service_s = pace_s * np.random.default_rng(seed).uniform(0.97, 1.03, work.request_count)

    statuses = _statuses(with_room(healthy(closed_loop(work, service_s.tolist()), work)))

    # A one-token answer has no time between tokens that two clocks could differ about.
    open_questions = {"tpot_disagreement": "NOT-CHECKABLE"} if osl == 1 else {}
    assert {code: status for code, status in statuses.items() if status != "PASS"} == open_questions


@given(
    rate=st.floats(0.1, 50.0), count=st.integers(2, 300), pace_s=st.floats(0.05, 20.0), seed=st.integers(0, 2**32 - 1)
)
def test_a_healthy_open_run_passes_every_rule(rate: float, count: int, pace_s: float, seed: int) -> None:
    work = Workload(isl=128, osl=16, request_count=count, request_rate_per_s=rate, arrivals="poisson")
    draw = np.random.default_rng(seed)
    service_s = pace_s * draw.uniform(0.5, 2.0, count)

    statuses = _statuses(healthy(open_loop(work, service_s.tolist(), draw.exponential(1 / rate, count).tolist()), work))

    assert {code: status for code, status in statuses.items() if status != "PASS"} == {}


def test_a_run_whose_host_was_not_watched_is_not_judged_by_it() -> None:
    run = replace(STEADY, record=STEADY.record.model_copy(update={"host_use": None}))

    statuses = _statuses(run)

    assert (statuses["busy_host"], statuses["busy_host_gpu"]) == ("NOT-CHECKABLE", "NOT-CHECKABLE")
    assert _verdict(statuses) == "accepted"


# Windows of 5 s of the measured busy host of docs/reference/rule-sources.md: what others took, and tokens per second.
@pytest.mark.parametrize(
    ("share", "tok_per_s", "status"),
    [(0.021, 368, "PASS"), (0.082, 358, "WARN"), (0.186, 342, "WARN"), (0.261, 299, "WARN"), (0.655, 100, "WARN")],
)
def test_a_measured_loss_of_speed_is_doubted_and_never_rejected(share: float, tok_per_s: int, status: Status) -> None:
    is_slow = tok_per_s < 0.92 * 393  # what the line through all windows gives a host without others

    assert _statuses(_beside(other_cpu_share=share)(STEADY))["busy_host"] == status
    assert is_slow == (status == "WARN")


def test_a_suite_may_allow_other_processes_more() -> None:
    beside = _beside(other_cpu_share=0.5)(STEADY)

    assert _statuses(_demanding(max_other_cpu_share=0.5)(beside))["busy_host"] == "PASS"


@pytest.mark.parametrize(("code", "run", "mutate"), WARNS, ids=[code for code, *_ in WARNS])
def test_each_rule_that_can_warn_is_seen_to_warn(code: str, run: Measured, mutate: Mutation) -> None:
    assert _statuses(mutate(run))[code] == "WARN"


@pytest.mark.parametrize(("code", "run", "mutate"), FAILS, ids=[code for code, *_ in FAILS])
def test_each_rule_that_can_fail_is_seen_to_fail(code: str, run: Measured, mutate: Mutation) -> None:
    assert _statuses(mutate(run))[code] == "FAIL"


@pytest.mark.parametrize(("code", "run"), list(SPOILT.items()), ids=list(SPOILT))
def test_each_rule_passes_before_its_run_is_spoilt(code: str, run: Measured) -> None:
    assert _statuses(run)[code] == "PASS"


def test_times_that_the_server_contradicts_are_withdrawn_and_reject_no_run() -> None:
    statuses = _statuses(_timing(mean_itl_s=2.0)(STEADY))

    assert statuses["tpot_disagreement"] == "FAIL"
    assert _verdict(statuses) != "rejected"
    assert RULE["tpot_disagreement"].withdraws == ("ttft", "tpot", "itl")


def test_every_rule_that_can_warn_is_among_those_seen_to_warn() -> None:
    assert {code for code, *_ in WARNS} == {rule.code for rule in NIGHT_RULES if rule.tolerated != rule.passing}


def test_every_rule_that_can_fail_is_among_those_seen_to_fail() -> None:
    assert {code for code, *_ in FAILS} == {rule.code for rule in NIGHT_RULES if rule.tolerated is not None}


@pytest.mark.parametrize("rule", [rule for rule in NIGHT_RULES if rule.tolerated], ids=lambda rule: rule.code)
def test_what_a_rule_passes_it_also_tolerates(rule: Rule) -> None:
    low, high = rule.tolerated or (None, None)
    pass_low, pass_high = rule.passing

    assert low is None or (pass_low is not None and low <= pass_low)
    assert high is None or (pass_high is not None and high >= pass_high)


@pytest.mark.parametrize("rule", NIGHT_RULES, ids=lambda rule: rule.code)
def test_the_sentence_of_a_rule_takes_its_value(rule: Rule) -> None:
    assert rule.sentence.format(value=PlainNumber(0.5))


@pytest.mark.parametrize(
    "names", [[rule.code for rule in NIGHT_RULES], [rule.column for rule in NIGHT_RULES]], ids=["code", "column"]
)
def test_no_two_rules_share_a_code_or_a_column(names: list[str]) -> None:
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("rule", NIGHT_RULES, ids=lambda rule: rule.code)
def test_the_bounds_of_passing_pass(rule: Rule) -> None:
    assert {judge(rule, bound) for bound in rule.passing if bound is not None} == {"PASS"}


@pytest.mark.parametrize("rule", [rule for rule in NIGHT_RULES if rule.tolerated], ids=lambda rule: rule.code)
def test_the_bounds_of_what_is_tolerated_do_not_fail(rule: Rule) -> None:
    assert "FAIL" not in {judge(rule, bound) for bound in rule.tolerated or () if bound is not None}


@pytest.mark.parametrize("rule", [rule for rule in NIGHT_RULES if rule.tolerated], ids=lambda rule: rule.code)
def test_just_outside_of_what_is_tolerated_fails(rule: Rule) -> None:
    low, high = rule.tolerated or (None, None)
    outside = [] if low is None else [math.nextafter(low, -math.inf)]
    outside += [] if high is None else [math.nextafter(high, math.inf)]

    assert {judge(rule, value) for value in outside} == {"FAIL"}


@pytest.mark.parametrize(
    ("value", "status"),
    [(0.95, "WARN"), (0.98, "PASS"), (1.02, "PASS"), (1.03, "WARN"), (1.15, "WARN"), (1.16, "FAIL"), (0.94, "FAIL")],
)
def test_the_server_may_count_a_little_more_than_the_client(value: float, status: str) -> None:
    assert judge(RULE["client_server_mismatch"], value) == status


@pytest.mark.parametrize("rule", [rule for rule in NIGHT_RULES if rule.tolerated is None], ids=lambda rule: rule.code)
def test_a_rule_that_tolerates_everything_only_warns(rule: Rule) -> None:
    assert {judge(rule, value) for value in (-1e12, 1e12)} - {"PASS"} == {"WARN"}


@pytest.mark.parametrize("value", [None, math.nan])
@pytest.mark.parametrize("rule", NIGHT_RULES, ids=lambda rule: rule.code)
def test_a_missing_value_is_not_checkable(rule: Rule, value: float | None) -> None:
    assert judge(rule, value) == "NOT-CHECKABLE"


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({"incomplete": "PASS", "preempted": "PASS"}, "accepted"),
        ({"incomplete": "PASS", "preempted": "WARN"}, "suspect"),
        ({"incomplete": "PASS", "preempted": "NOT-CHECKABLE"}, "suspect"),
        ({"incomplete": "FAIL", "preempted": "WARN"}, "rejected"),
        ({"incomplete": "FAIL", "preempted": "NOT-CHECKABLE"}, "rejected"),
        ({"incomplete": "FAIL", "preempted": "PASS"}, "rejected"),
        ({}, "suspect"),
    ],
    ids=["all-pass", "a-warning", "not-checkable", "fail-and-warning", "fail-and-not-checkable", "a-fail", "no-rules"],
)
def test_the_worst_status_decides_the_verdict(statuses: Mapping[str, Status], expected: str) -> None:
    assert _verdict(statuses) == expected


def test_a_healthy_run_is_accepted() -> None:
    assert _verdict(_statuses(STEADY)) == "accepted"


def test_a_run_without_server_counters_is_suspect() -> None:
    assert _verdict(_statuses(replace(STEADY, deltas=None))) == "suspect"


@pytest.mark.parametrize("deltas", [None, {}], ids=["unread", "empty"])
def test_without_server_counters_nothing_about_the_server_is_known(deltas: dict[str, float] | None) -> None:
    statuses = _statuses(replace(STEADY, deltas=deltas))

    assert {statuses[rule.code] for rule in NIGHT_RULES if rule.family == "client-server" and rule.is_required} == {
        "NOT-CHECKABLE"
    }


@pytest.mark.parametrize("code", ["client_server_mismatch_requests", "server_errors"])
def test_a_server_that_does_not_count_its_requests_cannot_be_asked_about_them(code: str) -> None:
    deltas = {name: moved for name, moved in (STEADY.deltas or {}).items() if "request_success" not in name}

    assert _statuses(replace(STEADY, deltas=deltas))[code] == "NOT-CHECKABLE"


def test_every_required_rule_without_an_input_is_counted() -> None:
    found = _evidence(replace(STEADY, deltas=None))[NOT_CHECKABLE]

    assert found == sum(rule.family == "client-server" and rule.is_required for rule in NIGHT_RULES)


def test_what_an_engine_does_not_count_is_not_required_of_it() -> None:
    counted = ("generation_tokens_total", "prompt_tokens_total")
    deltas = STEADY.deltas or {}
    tokens_only = replace(STEADY, deltas={name: deltas[name] for name in counted})

    lacking = {name: _evidence(_on_engine(tokens_only, name))[NOT_CHECKABLE] for name in ENGINES}

    assert lacking == {"vllm": 5, "sglang": 1, "endpoint": 5, "llama.cpp": 0}
    assert _statuses(_on_engine(tokens_only, "llama.cpp"))["server_errors"] == "NOT-CHECKABLE"
    assert _evidence(_on_engine(replace(STEADY, deltas=None), "llama.cpp"))[NOT_CHECKABLE] != 0


def test_a_run_on_sglang_lacks_no_input_and_what_newer_releases_count_is_judged() -> None:
    metrics = (Path(__file__).parents[2] / "data" / "sglang" / "metrics.txt").read_text()
    counted = prometheus.deltas({}, sglang.counters(metrics)).keys() & (STEADY.deltas or {}).keys()
    documented = {name: moved for name, moved in (STEADY.deltas or {}).items() if name in counted}
    run = _on_engine(replace(STEADY, deltas=documented), "sglang")
    newer = {"sglang:num_aborted_requests_total": 3.0, "sglang:num_retracted_requests_total": 2.0}
    more = sglang.counters("".join(f"{name} {value}\n" for name, value in newer.items()))

    assert _evidence(run)[NOT_CHECKABLE] == 0
    assert _statuses(run)["server_errors"] == "NOT-CHECKABLE"
    assert _statuses(run.with_deltas(**more))["server_errors"] == "WARN"
    assert _statuses(run.with_deltas(**more))["preempted"] == "WARN"
    assert _statuses(run)["client_server_mismatch_requests"] == "NOT-CHECKABLE"


@pytest.mark.parametrize("engine", ["sglang", "llama.cpp"])
def test_hits_of_an_engine_that_does_not_count_its_lookups_are_a_share_of_the_prompts(engine: str) -> None:
    deltas = {name: moved for name, moved in (STEADY.deltas or {}).items() if "prefix_cache" not in name}
    hits = 0.5 * deltas["prompt_tokens_total"]
    run = _on_engine(replace(STEADY, deltas=deltas | {"prefix_cache_hits_total": hits}), engine)

    assert _evidence(run)[ev.PREFIX_HIT_SHARE] == 0.5
    assert _statuses(run)["prefix_cache_contamination"] == "FAIL"


def test_a_healthy_run_lacks_no_input() -> None:
    assert _evidence(STEADY)[NOT_CHECKABLE] == 0


def test_a_server_that_does_not_say_its_version_cannot_be_checked() -> None:
    assert _statuses(_serving(None)(STEADY))["engine_version_conflict"] == "NOT-CHECKABLE"


def test_a_build_of_the_asked_version_is_no_conflict() -> None:
    assert _statuses(_serving("0.32.0+cpu")(STEADY))["engine_version_conflict"] == "PASS"


def test_prompts_whose_tokens_nobody_counted_cannot_be_checked() -> None:
    uncounted = np.full(len(STEADY.report.requests), -1, dtype=np.int64)

    assert _statuses(STEADY.with_requests(input_tokens=uncounted))["isl_mismatch"] == "NOT-CHECKABLE"


def test_a_good_request_without_its_times_breaks_the_identity_of_its_latency() -> None:
    lost = np.full(len(STEADY.report.requests), np.nan)

    assert _statuses(STEADY.with_requests(first_token_s=lost))["e2el_identity"] == "FAIL"


def test_a_client_that_was_not_calibrated_cannot_be_checked_and_is_not_accepted() -> None:
    bare = replace(STEADY, record=STEADY.record.model_copy(update={"calibration": Calibration(reason="no compiler")}))

    assert _statuses(bare)["client_bound_envelope"] == "NOT-CHECKABLE"
    assert _verdict(_statuses(bare)) == "suspect"


@pytest.mark.parametrize("code", ["client_bound_core", "client_bound_merged"])
def test_a_meter_that_did_not_say_how_busy_or_late_it_was_cannot_be_checked(code: str) -> None:
    old = _reporting(core_share=None, merged_late_share=None)(STEADY)

    assert _statuses(old)[code] == "NOT-CHECKABLE"


def test_a_client_whose_lag_nobody_measured_cannot_be_checked() -> None:
    assert _statuses(_with_lag(None)(STEADY))["client_bound"] == "NOT-CHECKABLE"


def test_a_cache_that_was_asked_nothing_had_no_hits() -> None:
    unasked = STEADY.with_deltas(prefix_cache_queries_total=0.0)

    assert _statuses(unasked)["prefix_cache_contamination"] == "PASS"


def test_a_run_in_which_everything_failed_is_rejected() -> None:
    assert _verdict(_statuses(_failing(40)(STEADY))) == "rejected"


def test_the_rules_of_a_closed_loop_say_nothing_of_an_open_one() -> None:
    assert "little_excess" not in _statuses(POISSON)


def test_the_rules_of_an_open_loop_say_nothing_of_a_closed_one() -> None:
    assert "rate_not_offered" not in _statuses(STEADY)


def test_a_late_client_is_in_no_number_where_the_kernel_stamped_every_token() -> None:
    late = _with_lag(0.1)(STEADY)
    stamped = replace(late, report=replace(late.report, kernel_stamp_share=1.0))

    assert _statuses(stamped)["client_bound"] == "PASS"


@pytest.mark.parametrize("code", ["token_count_drift", "prompt_count_drift", "request_count_drift"])
def test_what_only_the_meter_counts_is_asked_of_the_meter_only(code: str) -> None:
    assert code not in _statuses(_asking(driver="vllm-bench")(STEADY))


@pytest.mark.parametrize("code", ["client_bound", "client_bound_core", "client_bound_merged", "client_bound_envelope"])
def test_what_only_the_meter_says_is_asked_of_the_meter_only(code: str) -> None:
    assert code not in _statuses(_asking(driver="vllm-bench")(STEADY))


def test_a_poisson_schedule_that_strays_from_its_mean_rate_was_still_offered() -> None:
    slow = healthy(open_loop(OPEN, [1.0] * 40, [0.7] * 40), OPEN)

    assert _statuses(slow)["rate_not_offered"] == "PASS"


DRIFTS = ["token_count_drift", "prompt_count_drift", "request_count_drift"]


def _drifts(run: Measured) -> list[Status]:
    statuses = _statuses(run)
    return [statuses[code] for code in DRIFTS]


def _losing(run: Measured, count: int) -> Measured:
    """The client never heard of the answers to the first requests: no token, no usage."""
    counts = [tokens.copy() for tokens in (run.report.requests.input_tokens, run.report.requests.output_tokens)]
    for tokens in counts:
        tokens[:count] = -1
    return _failing(count)(run.with_requests(input_tokens=counts[0], output_tokens=counts[1]))


def _served(run: Measured, fewer: int, tokens_each: int) -> Measured:
    """The server counted this many requests as not finished, and this many tokens for each of them."""
    moved = run.deltas or {}
    return run.with_deltas(
        **{
            "request_success_total.length": moved["request_success_total.length"] - fewer,
            "generation_tokens_total": moved["generation_tokens_total"] - fewer * (CLOSED.osl - tokens_each),
        }
    )


@pytest.mark.parametrize(("fewer", "tokens_each"), [(0, 64), (2, 64), (2, 17), (2, 0)])
def test_what_the_server_did_for_requests_that_failed_may_be_anything_up_to_all(fewer: int, tokens_each: int) -> None:
    assert _drifts(_served(_losing(STEADY, 2), fewer, tokens_each)) == ["PASS"] * 3


@pytest.mark.parametrize(("fewer", "tokens_each"), [(3, 0), (2, -1), (-1, 0), (1, 129)])
def test_failed_requests_excuse_no_more_than_their_own(fewer: int, tokens_each: int) -> None:
    assert "FAIL" in _drifts(_served(_losing(STEADY, 2), fewer, tokens_each))


def test_a_warm_up_that_failed_is_accounted_for_as_well() -> None:
    lost = replace(STEADY.report, warmup_failed_count=1, warmup_output_tokens=64, warmup_input_tokens=128)

    assert _drifts(replace(STEADY, report=lost)) == ["PASS"] * 3


def test_a_report_that_does_not_tell_of_its_warm_up_cannot_be_reconciled() -> None:
    silent = replace(STEADY.report, warmup_failed_count=None)

    assert _drifts(replace(STEADY, report=silent)) == ["NOT-CHECKABLE"] * 3


def _planned(run: Measured, **planned: float | None) -> Measured:
    """The same run, had its driver said what it planned."""
    usual = PlannedTokens(input_tokens=40 * 128, output_tokens=40 * 64, cached_tokens=0)
    return replace(run, report=replace(run.report, planned=replace(usual, **planned)))


def test_lengths_are_held_against_what_the_driver_planned() -> None:
    columns = _evidence(_planned(STEADY, input_tokens=40 * 64, output_tokens=40 * 32))

    assert (columns["ev_isl_ratio"], columns["ev_osl_ratio"]) == (2.0, 2.0)


def test_text_is_not_accused_of_a_length_that_nobody_could_plan() -> None:
    chat = _asking(prompts={"form": "chat"})(_planned(STEADY, input_tokens=None, cached_tokens=None))

    assert _evidence(chat)["ev_isl_ratio"] is None
    assert not {"isl_mismatch", "prefix_cache_contamination"} & set(_statuses(chat))
    assert _evidence(chat)[NOT_CHECKABLE] == 0
    assert _verdict(_statuses(chat)) == "accepted"


def test_hits_that_were_planned_are_no_contamination() -> None:
    shared = _planned(STEADY, cached_tokens=1000).with_deltas(prefix_cache_hits_total=1000.0)

    assert _evidence(shared)["ev_prefix_hit_share"] == 0.0


def test_planned_hits_that_did_not_come_are_a_doubt() -> None:
    assert _statuses(_planned(STEADY, cached_tokens=1000))["prefix_cache_contamination"] == "FAIL"


@pytest.mark.parametrize(("live", "status"), [(4.0, "PASS"), (3.92, "PASS"), (3.9, "WARN"), (3.0, "FAIL")])
def test_a_hand_over_costs_a_part_of_a_stream_and_a_cap_a_whole_one(live: float, status: Status) -> None:
    assert _statuses(_holding(live)(STEADY))["live_not_held"] == status


def test_a_closed_loop_of_one_may_pause_a_little_between_its_requests() -> None:
    work = Workload(isl=8, osl=8, request_count=10, concurrency=1)
    single = healthy(closed_loop(work, [1.0] * 10), work)

    found = [_statuses(_holding(live)(single))["live_not_held"] for live in (0.95, 0.93, 0.8)]

    assert found == ["PASS", "WARN", "FAIL"]


@pytest.mark.parametrize(("requests_per_s", "allowed_s"), [(1000.0, 0.001), (4.0, 0.0025)])
def test_a_delay_is_allowed_1_ms_or_1_percent_of_the_time_between_two_requests(
    requests_per_s: float, allowed_s: float
) -> None:
    work = POISSON.record.asked.workload
    spread = open_loop(work, [0.1] * 101, [1 / requests_per_s] * 101)

    found = [
        _statuses(_reporting(dispatch_delay_p99_s=share * allowed_s)(healthy(spread, work)))["dispatch_late"]
        for share in (0.98, 1.02)
    ]

    assert found == ["PASS", "WARN"]
