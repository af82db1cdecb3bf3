"""The evidence of a run of our own, which the rules of bench/audit/rules/night/ judge.

Evidence is one number each, near zero or one, or inside a range, for every way a measurement can be wrong; None where
an input is missing.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from bench import evidence_columns as ev
from bench.audit.answer_form import answer_form_evidence
from bench.audit.arrivals import delay_evidence, offered_evidence
from bench.audit.cancelled import cancel_evidence
from bench.audit.disaggregated import disaggregated_evidence
from bench.audit.evidence.latency import E2EL_TOLERANCE_S, E2EL_TOLERANCE_SHARE
from bench.audit.images import image_evidence
from bench.audit.kv_offload import kv_offload_evidence
from bench.audit.reconcile import cached_diff, reconciled, server_counts
from bench.audit.repetition import repetition_evidence
from bench.audit.rules import EVIDENCE_COLUMNS, NIGHT_RULES, NOT_CHECKABLE, Evidence, rule
from bench.audit.speculation import speculation_evidence
from bench.audit.start import start_evidence
from bench.client_error.envelope import calibrated_share, clock_error_over_allowed
from bench.engines.by_name import ENGINES
from bench.engines.versions import is_release
from bench.loadgen.report import LoadReport, PlannedTokens
from bench.loadgen.server_view import Scrapes, blind_live, disagreement, live_view, ttft_over_server_s
from bench.metrics import (
    LATENCIES,
    PERCENTILE_MIN_SAMPLES,
    Ints,
    Requests,
    concurrency_achieved,
    percentile_name,
    ratio,
)
from bench.quality.answers import changes
from bench.record import RunRecord
from bench.steady import slope
from bench.suite.attach import AS_FOUND

LAG_TOLERANCE_S = 1e-3
LAG_TOLERANCE_SHARE = 0.02
# A hidden cap costs whole streams; this part of one is left to the hand-over from request to request.
HAND_OVER_STREAMS = 0.05


def evidence(
    record: RunRecord,
    report: LoadReport,
    measured: Mapping[str, float | int | None],
    deltas: Mapping[str, float] | None,
    scrapes: Scrapes | None = None,
) -> Evidence:
    """Every evidence column of one measured run.

    `measured` is the row as it will be stored (in ms and tok/s), so that the published values are judged;
    `deltas` are the server's counters after less before, None where they could not be read; `scrapes` are its metrics
    in between.
    """
    columns: Evidence = dict.fromkeys(EVIDENCE_COLUMNS)
    columns |= _completeness(record, report, measured)
    columns |= _arithmetic(report, measured)
    columns |= _queueing(record, report)
    columns |= _asked_found(record, report)
    columns |= _endpoint(report)
    columns |= server_counts(report, deltas)
    columns |= reconciled(record, report, deltas)
    columns |= speculation_evidence(record, deltas) | kv_offload_evidence(record, deltas)
    columns |= disaggregated_evidence(record, report, deltas)
    columns |= repetition_evidence(record, report)
    columns |= answer_form_evidence(record, report)
    columns |= cancel_evidence(record, report, deltas)
    columns |= image_evidence(record, report, deltas)
    columns[ev.ODD_VECTOR_SHARE] = report.odd_vector_share
    alike = record.adapters_like_base
    columns[ev.ADAPTERS_LIKE_BASE] = None if alike is None else float(len(alike))
    columns |= _steady(record, report)
    columns |= _server_view(record, report, deltas, scrapes)
    columns |= _statistics(record, report, measured)
    columns |= _client(record, report)
    columns |= host_use(record, measured)
    columns |= changes(record)
    columns |= start_evidence(record)
    return with_lacking(record, columns)


def with_lacking(record: RunRecord, columns: Evidence) -> Evidence:
    """The evidence, with how many of the rules that a run of its kind needs lack it."""
    work = record.asked.workload
    kind = {"is_exact": work.prompts.has_exact_length, "has_tokens": not work.is_embedding}
    applies = (one for one in NIGHT_RULES if one.applies(loop_of(record), work.driver, **kind))
    uncounted = ENGINES[record.asked.engine.name].UNCOUNTED
    lacking = [
        one for one in applies if one.is_required and columns[one.column] is None and one.column not in uncounted
    ]
    return {**columns, NOT_CHECKABLE: float(len(lacking))}


def loop_of(record: RunRecord) -> str:
    """The loop of a run, as the rules name it."""
    return rule.loop_of(record.asked.workload.arrivals)


def _completeness(record: RunRecord, report: LoadReport, measured: Mapping[str, float | int | None]) -> Evidence:
    total = len(report.requests)
    good = int((report.requests.is_ok | report.requests.is_cancelled).sum())
    return {
        ev.FAILURE_SHARE: ratio(total - good, total),
        ev.ANSWERED_SHARE: ratio(total, report.planned_count),
        ev.DURATION_OVER_REQUIRED: ratio(measured["duration_s"], record.quality.min_duration_s),
    }


def _arithmetic(report: LoadReport, measured: Mapping[str, float | int | None]) -> Evidence:
    requests = report.requests
    stated = report.output_throughput_tok_per_s or measured["output_throughput_tok_per_s"]
    duration = report.duration_s or measured["duration_s"]
    tokens = float(requests.output_tokens[requests.is_ok].sum())
    product = None if stated is None or duration is None else stated * duration
    residual = np.abs(requests.ttft_s + requests.gap_sum_s - requests.e2el_s)[requests.is_ok]
    allowed = np.maximum(E2EL_TOLERANCE_S, E2EL_TOLERANCE_SHARE * requests.e2el_s[requests.is_ok])
    seen = requests.event_tokens[requests.is_ok]
    # A driver that does not say how many tokens an event has leaves only the number of events.
    events = float((requests.gap_count + 1)[requests.is_ok].sum() if (seen < 0).any() else seen.sum())
    return {
        ev.THROUGHPUT_REL: None if product is None or not tokens else abs(product - tokens) / max(product, tokens),
        # Not `residual > allowed`: that would let a good request without its times pass.
        ev.E2EL_BROKEN_SHARE: float(np.mean(~(residual <= allowed))) if len(residual) else None,
        ev.PERCENTILE_DISORDER: disorder(measured),
        ev.CHUNK_TOKEN_RATIO: ratio(events, tokens),
    }


def disorder(measured: Mapping[str, float | int | None]) -> float:
    """How many percentiles of a row are below a lower one."""
    count = 0
    for metric in LATENCIES:
        values = [measured[f"{metric}_{percentile_name(q)}_ms"] for q in PERCENTILE_MIN_SAMPLES]
        known = [value for value in values if value is not None]
        count += sum(later < earlier for earlier, later in pairwise(known))
    return float(count)


def _queueing(record: RunRecord, report: LoadReport) -> Evidence:
    work, requests = record.asked.workload, report.requests
    good = int(requests.is_ok.sum())
    if work.arrivals == "sessions":
        sessions = report.sessions
        is_full = sessions is not None and len(sessions) > (work.concurrency or 0)
        return {ev.SESSIONS_OPEN_SHARE: ratio(sessions.open_mean, work.concurrency) if sessions and is_full else None}
    if work.arrivals != "closed":
        return offered_evidence(work, report)
    achieved = concurrency_achieved(requests)
    engine = record.asked.engine
    slots = ENGINES[engine.name].slots(engine.flags)
    share = ratio(achieved, work.concurrency)
    # Of what the slots were held for; the rest of it were requests that the plan cancelled.
    of_good = ratio(float(np.nansum(requests.e2el_s)), float(np.nansum(requests.held_s))) or 0.0
    implied = ratio((work.concurrency or 0) * requests.window_s * of_good, good)
    median = float(np.nanmedian(requests.e2el_s)) if good else None
    return {
        ev.LITTLE_OVER_ASKED: share,
        ev.CONCURRENCY_SHARE: share,
        ev.CONCURRENCY_OVER_SLOTS: ratio(work.concurrency, slots),
        ev.IMPLIED_OVER_MEDIAN_E2EL: ratio(implied, median),
    }


def _asked_found(record: RunRecord, report: LoadReport) -> Evidence:
    work, requests = record.asked.workload, report.requests
    good = int(requests.is_ok.sum())
    found = record.server.engine_version if record.server and not record.asked.engine.track else None
    is_asked = record.asked.engine.version != AS_FOUND
    conflict = None if found is None else float(is_asked and not is_release(found, record.asked.engine.version))
    asks = record.endpoint is None or "ignore_eos" in record.endpoint.takes
    planned = report.planned or PlannedTokens(good * work.isl, good * work.osl, cached_tokens=0)
    return {
        # A server without ignore_eos ends answers by itself: their length is observed, not requested.
        ev.OSL_RATIO: _osl_ratio(record, requests, planned) if asks else None,
        ev.ISL_RATIO: ratio(_counted(requests.input_tokens[requests.is_ok]), planned.input_tokens),
        ev.ENGINE_VERSION_CONFLICT: conflict,
    }


def _osl_ratio(record: RunRecord, requests: Requests, planned: PlannedTokens) -> float | None:
    """Tokens of the answers over those requested; an answer that must have a form ends by itself, at most there."""
    counted = _counted(requests.output_tokens[requests.is_ok])
    work = record.asked.workload
    if work.answers is not None and counted is not None:
        return max(1.0, float(requests.output_tokens.max()) / work.osl)
    return ratio(counted, planned.output_tokens)


def _endpoint(report: LoadReport) -> Evidence:
    """What a server did with requests that it did not answer itself."""
    total = len(report.requests)
    return {
        ev.RATE_LIMITED_SHARE: ratio(report.requests.outcome.count("rate_limited"), total),
        ev.CACHE_HIT_SHARE: None if report.cache_hits is None else ratio(report.cache_hits, total),
    }


def _counted(tokens: Ints) -> float | None:
    return None if (tokens < 0).any() else float(tokens.sum())


def _steady(record: RunRecord, report: LoadReport) -> Evidence:
    steady = report.steady
    found = delay_evidence(report)
    if loop_of(record) in rule.LOOPS:
        delay_s = report.dispatch_delay_p99_s
        found[ev.REPLAY_LATE_P99_MS] = None if delay_s is None else delay_s * 1e3
    if steady is None:
        # A client that looks for the window and finds none never had so many requests in flight.
        return found | ({ev.STEADY_LIVE_SHARE: 0.0} if report.tells_steady else {})
    line, asked = slope(steady.part_tokens), record.asked.workload.concurrency or 0
    return found | {
        ev.STEADY_LIVE_SHARE: ratio(min(steady.live_mean + HAND_OVER_STREAMS, asked), asked),
        ev.STEADY_DRIFT_SHARE: None if line is None else line.beyond_noise,
    }


def _server_view(
    record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None, scrapes: Scrapes | None
) -> Evidence:
    """The server's gauges and its own times of each request, against the client's; None if it has none."""
    apart = disagreement(report.steady, live_view(scrapes, report.steady), blind_live(report.requests, deltas or {}))
    return {
        ev.SCRAPES_FAILED_SHARE: None if scrapes is None else scrapes.failed_share,
        ev.LIVE_DISAGREEMENT_SHARE: ratio(apart, record.asked.workload.concurrency),
        ev.CACHED_TOKENS_DIFF: cached_diff(report, deltas),
        **_server_times(report),
    }


def _server_times(report: LoadReport) -> Evidence:
    times, requests = report.server_times, report.requests
    if times is None:
        return {}
    over_s = ttft_over_server_s(requests, times)
    over_s = over_s[~np.isnan(over_s)]
    tpot = requests.tpot_s / np.where(times.mean_itl_s > 0, times.mean_itl_s, np.nan)
    tpot = tpot[~np.isnan(tpot)]
    return {
        ev.TTFT_BELOW_SERVER_SHARE: float(np.mean(over_s < 0)) if len(over_s) else None,
        ev.TPOT_OVER_SERVER: float(np.median(tpot)) if len(tpot) else None,
    }


def _statistics(record: RunRecord, report: LoadReport, measured: Mapping[str, float | int | None]) -> Evidence:
    work, requests = record.asked.workload, report.requests
    good = int(requests.is_ok.sum())
    given = [
        q
        for metric in LATENCIES
        for q, least in PERCENTILE_MIN_SAMPLES.items()
        if measured[f"{metric}_{percentile_name(q)}_ms"] is not None and good < least
    ]
    return {
        ev.REQUESTS_OVER_REQUIRED: ratio(len(requests), (work.concurrency or 0) * record.quality.min_requests_per_slot),
        ev.UNSUPPORTED_PERCENTILES: float(len(given)),
    }


def _client(record: RunRecord, report: LoadReport) -> Evidence:
    return {
        ev.CLIENT_LAG_OVER_ALLOWED: _client_lag(report),
        ev.CLIENT_CLOCK_ERROR_OVER_ALLOWED: clock_error_over_allowed(report),
        ev.CLIENT_CORE_SHARE: report.core_share,
        ev.CLIENT_MERGED_LATE_SHARE: report.merged_late_share,
        ev.CLIENT_CALIBRATED_SHARE: calibrated_share(record, report),
    }


def host_use(record: RunRecord, row: Mapping[str, float | int | None]) -> Evidence:
    """What other processes took, and how fast the cores were; None where it was not measured, as in older records."""
    use, busy = record.host_use, record.busy
    if use is None:
        return {}
    return {
        ev.OTHER_CPU_OVER_ALLOWED: ratio(use.other_cpu_share, record.quality.max_other_cpu_share),
        ev.STEAL_OVER_ALLOWED: None if busy is None else ratio(busy.steal_share, record.quality.max_other_cpu_share),
        ev.OTHER_GPU_PROCESSES: None if use.other_gpu_processes is None else float(len(use.other_gpu_processes)),
        ev.CORE_TIME_OVER_BEST: ratio(1.0, row.get("core_speed_share")),
    }


def _client_lag(report: LoadReport) -> float | None:
    if report.kernel_stamp_share == 1.0:
        return 0.0  # every token has the kernel's own time: ours is in no number
    if report.lag_p99_s is None:
        return None
    return report.lag_p99_s / max(LAG_TOLERANCE_S, LAG_TOLERANCE_SHARE * report.requests.ok_gap_median_s)
