"""A run folder becomes rows; pure, and the only place where seconds become milliseconds."""

import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import bootstrap, metrics
from bench.audit import measurement as audit
from bench.audit.own_claim import claim_of
from bench.engines import vllm
from bench.errors import UnreadableResultError
from bench.loadgen import drivers
from bench.loadgen.report import LoadReport
from bench.loadgen.server_view import Scrapes, ServerTimes, blind_live, live_view, ttft_over_server_s
from bench.metrics import P99_MIN_SAMPLES, PERCENTILE_ESTIMATOR, PERCENTILE_MIN_SAMPLES, Requests, percentile_name
from bench.quality.answers import fingerprint, quality_id
from bench.record import Answers, LeaseReport, NightEnd, NightRecord, PlannedRun, RunRecord, StageCost
from bench.steady import slope
from bench.suite.quality import Quality
from bench.suite.scenario import Scenario
from warehouse.rows.evidence import RunClaim, ask
from warehouse.rows.run_folder import RunFiles, RunId
from warehouse.schema.columns import COLUMNS, Table, arrow_schema

Row = dict[str, Any]
MS, NS = 1e3, 1e-9
TOKENS_PER_MTOK, SECONDS_PER_HOUR = 1e6, 3600.0


@dataclass(frozen=True)
class RunRows:
    """What one run folder becomes; a verdict is not in it yet. No tables where there is nothing of their kind."""

    measurement: Row
    requests: pa.Table | None = None
    telemetry: pa.Table | None = None
    server_samples: pa.Table | None = None
    asked: RunClaim | None = None  # what the run is asked beside what stands in its row; None where it was not measured


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turn what parsers raise over foreign bytes into UnreadableResultError."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, pa.ArrowException) as error:
        first = str(error).split("\n", maxsplit=1)[0]
        raise UnreadableResultError(f"{what} cannot be read: {type(error).__name__}: {first}") from error


def run_rows(place: RunId, files: RunFiles) -> RunRows:
    """The rows of one run; nothing is measured in the row of a run that failed.

    Raises UnreadableResultError naming the file that is not what it claims to be.
    """
    record = read_record(place, files.record)
    row = _blank(place) | _asked(record.asked, record.quality) | _found(record) | _told(record)
    telemetry = None if files.telemetry is None else _telemetry_table(place, files.telemetry)
    if record.outcome != "measured":
        return RunRows(row, telemetry=telemetry, server_samples=_server_samples(place, files, None))
    report = read_report(record, files)
    deltas = _counter_deltas(files)
    samples = _server_samples(place, files, report.origin_s)
    with _reading("the driver's report"):
        scrapes = _scrapes(samples)
        row |= _measured(report, deltas, row["usd_per_hour"])
        row |= _answers(record)
        row |= _intervals(report, row)
        row |= _steady(report)
        row |= _server_view(report, deltas, scrapes)
        row |= audit.evidence(record, report, row, deltas, scrapes)
        asked = ask(claim_of(record, report, row, hashlib.sha256(files.record).hexdigest()))
        return RunRows(row, _requests_table(place, report), telemetry, samples, asked)


def read_record(place: RunId, text: bytes) -> RunRecord:
    """The record of the run that stands at this place, and no other."""
    with _reading("record.json"):
        record = RunRecord.model_validate_json(text)
    found = RunId(record.night, record.scenario_id, record.repeat)
    if found != place:
        raise UnreadableResultError(f"record.json is of the run {found.run_id}, not of this folder")
    return record


def read_night(text: bytes) -> NightRecord:
    """The night as planned."""
    with _reading("night.json"):
        return NightRecord.model_validate_json(text)


def read_end(text: bytes) -> NightEnd:
    """Why a night ended early."""
    with _reading("end.json"):
        return NightEnd.model_validate_json(text)


@dataclass(frozen=True)
class LeaseRows:
    """One rental of a night as rows: itself, each try at it, and each of its stages."""

    lease: Row
    attempts: list[Row]
    stages: list[Row]


def lease_rows(night: str, text: bytes) -> LeaseRows:
    """What a night's folder says of one rental."""
    with _reading("the lease"):
        report = LeaseReport.model_validate_json(text)
    ids = {"night": night, "lease_id": report.lease_id}
    own = report.model_dump(exclude={"attempts", "stages"})
    return LeaseRows(
        lease={**ids, **own, "attempt_count": len(report.attempts) or None},
        attempts=[{**ids, "cloud": report.cloud, **attempt.model_dump()} for attempt in report.attempts],
        stages=[_stage_row(ids, stage) for stage in report.stages],
    )


def _stage_row(ids: Row, stage: StageCost) -> Row:
    lasted = None if stage.ended_at is None else (stage.ended_at - stage.started_at).total_seconds()
    run_id = None if stage.run is None else f"{ids['night']}/{stage.run}"
    return {**ids, **stage.model_dump(exclude={"run"}), "run_id": run_id, "duration_s": lasted}


def read_report(record: RunRecord, files: RunFiles) -> LoadReport:
    """The load driver's own report."""
    names = drivers.report_files(record.asked)
    # A run without one token event has an empty events.bin, which is no file to speak of.
    missing = [name for name in names if name not in files.load and not (name == "events.bin" and files.load)]
    if missing:
        raise UnreadableResultError(f"load/{missing[0]} is missing")
    with _reading("the driver's report in load/"):
        return drivers.read_report(record.asked, [files.load.get(name, b"") for name in names])


def _counter_deltas(files: RunFiles) -> dict[str, float] | None:
    if files.metrics_before is None or files.metrics_after is None:
        return None
    with _reading("metrics-before.txt or metrics-after.txt"):
        before, after = (vllm.counters(text.decode()) for text in (files.metrics_before, files.metrics_after))
    # A text without counters is a server that gave none: nothing to check against.
    return vllm.counter_deltas(before, after) or None


def not_run_row(night: NightRecord, run: PlannedRun, end: NightEnd | None) -> Row:
    """The row of a planned run that has no folder, and why, where the night said why it ended."""
    why = end or NightEnd(stage=None, reason="the night was stopped, or is still running")
    return _planned_row(night, run) | {"outcome": "not-run", "stage": why.stage, "reason": f"not come to: {why.reason}"}


def unreadable_row(place: RunId, planned: tuple[NightRecord, PlannedRun] | None, reason: str) -> Row:
    """The row of a run whose folder cannot be believed: failed at the load, nothing measured."""
    known = _blank(place) if planned is None else _planned_row(*planned)
    return known | {"outcome": "failed", "stage": "load", "reason": reason}


def place_of(night: NightRecord, run: PlannedRun) -> RunId:
    """Where a planned run's folder stands."""
    return RunId(night.night, run.scenario.scenario_id, run.repeat)


def _planned_row(night: NightRecord, run: PlannedRun) -> Row:
    labels = {"suite": night.suite.name, "order": run.order, "server_id": run.scenario.server_id}
    return _blank(place_of(night, run)) | _asked(run.scenario, night.suite.quality) | labels


def _blank(place: RunId) -> Row:
    row: Row = dict.fromkeys(column.name for column in COLUMNS["measurements"])
    return row | _ids(place)


def _ids(place: RunId) -> Row:
    return {
        "night": place.night,
        "run_id": place.run_id,
        "scenario_id": place.scenario_id,
        "repeat": place.repeat,
    }


def _asked(scenario: Scenario, quality: Quality) -> Row:
    work, engine = scenario.workload, scenario.engine
    return {
        "scenario": scenario.name,
        "model": scenario.model.name,
        "model_source": scenario.model.source,
        "precision": scenario.model.precision,
        "engine": engine.name,
        "engine_version_asked": engine.version,
        "engine_flags": list(engine.flags),
        "max_model_len": engine.max_model_len,
        "prompts": work.prompts.kind,
        "prompt_form": work.prompts.form,
        "isl": work.isl,
        "osl": work.osl,
        "concurrency_asked": work.concurrency,
        "request_rate_per_s_asked": work.request_rate_per_s,
        "arrivals": work.arrivals,
        "burstiness_asked": work.burstiness,
        "driver": work.driver,
        "request_count": work.request_count,
        "warmup_count": work.warmup_count,
        "min_duration_s": quality.min_duration_s,
        "min_requests_per_slot": quality.min_requests_per_slot,
        "lm_eval_tasks": None if quality.lm_eval is None else list(quality.lm_eval.tasks),
    }


def _told(record: RunRecord) -> Row:
    """What the record says of the run itself."""
    return {
        "suite": record.suite,
        "server_id": record.server_id,
        "order": record.order,
        "outcome": record.outcome,
        "stage": record.stage,
        "reason": record.reason,
        "started_at": _utc(record.started_at),
        "ended_at": _utc(record.ended_at),
        "usd_per_hour": record.lease.usd_per_hour if record.lease else None,
        "method_version": record.lineage.method_version,
        "record_version": record.record_version,
        "nightbench_version": record.lineage.nightbench_version,
        "git_commit": record.lineage.git_commit,
        **_calibration(record),
    }


def _calibration(record: RunRecord) -> Row:
    if record.calibration is None:
        return {"calibration_id": None, "not_calibrated": "this night was measured before nights were calibrated"}
    return {"calibration_id": record.calibration.calibration_id, "not_calibrated": record.calibration.reason}


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise UnreadableResultError(f"record.json has a time without a zone: {moment.isoformat()}")
    return moment


def _found(record: RunRecord) -> Row:
    row: Row = {}
    if record.host:
        row |= record.host.model_dump(include={"kernel", "cpu_model", "cpu_count", "gpu_driver"})
        row |= {"host": record.host.hostname, "gpus": list(record.host.gpus)}
    if record.server:
        row |= record.server.model_dump(include={"engine_build", "kv_cache_tokens", "cold_start_s", "image_digest"})
        row |= {"engine_version_found": record.server.engine_version}
    if record.weights:
        row |= {"model_revision": record.weights.revision, "model_sha256": record.weights.sha256}
    if record.load:
        row |= {"driver_version": record.load.driver_version}
    if record.busy:
        row |= record.busy.model_dump()
    return row


def _measured(report: LoadReport, deltas: Mapping[str, float] | None, usd_per_hour: float | None) -> Row:
    requests = report.requests
    good = requests.is_ok
    window_s = requests.window_s
    throughput = metrics.output_throughput_tok_per_s(requests)
    return {
        "completed": int(good.sum()),
        "failed": int((~good).sum()),
        "duration_s": None if np.isnan(window_s) else window_s,
        "total_input_tokens": _total(requests.input_tokens[good]),
        "total_output_tokens": _total(requests.output_tokens[good]),
        "request_throughput_per_s": metrics.request_throughput_per_s(requests),
        "output_throughput_tok_per_s": throughput,
        "concurrency_achieved": metrics.concurrency_achieved(requests),
        "tokens_per_event": metrics.tokens_per_event(requests),
        **_latencies(requests),
        **_counted_by_server(deltas),
        "client_lag_p99_ms": _ms(report.lag_p99_s),
        "kernel_stamp_share": report.kernel_stamp_share,
        "usd_per_mtok_output": usd_per_mtok_output(usd_per_hour, throughput),
    }


def _answers(record: RunRecord) -> Row:
    """What the server answered to the fixed questions; judging/answer_history.py compares it with earlier nights."""
    asked = record.accuracy
    if asked is None:
        never = "this run was measured before servers were asked the fixed questions"
        return dict.fromkeys(("quality_not_checked", "quality_not_compared", "greedy_not_compared"), never)
    before, after = asked.before, asked.after or Answers()
    return {
        "quality_id": quality_id(record),
        "logprob_passage": asked.passage,
        "logprob_token_count": before.logprob_tokens,
        "logprob_mean_before": before.logprob_mean,
        "logprob_mean_after": after.logprob_mean,
        "greedy_fingerprint_before": fingerprint(before.greedy),
        "greedy_fingerprint_after": fingerprint(after.greedy),
        "greedy_tokens": [token for tokens in before.greedy for token in tokens] or None,
        "quality_not_checked": before.lacking or after.lacking,
        **dict.fromkeys(("quality_not_compared", "greedy_not_compared"), "no earlier night was looked at"),
    }


def usd_per_mtok_output(usd_per_hour: float | None, output_throughput_tok_per_s: float | None) -> float | None:
    """The price of a million output tokens while the machine makes them at this rate."""
    if usd_per_hour is None or not output_throughput_tok_per_s:
        return None
    return usd_per_hour / SECONDS_PER_HOUR / output_throughput_tok_per_s * TOKENS_PER_MTOK


def _total(tokens: metrics.Ints) -> int | None:
    """The sum; None where one of them was not counted."""
    return None if (tokens < 0).any() or not len(tokens) else int(tokens.sum())


def _counted_by_server(deltas: Mapping[str, float] | None) -> Row:
    moved = {
        "server_generation_tokens": "generation_tokens_total",
        "server_prompt_tokens": "prompt_tokens_total",
        "server_preemptions": "num_preemptions_total",
        "server_prefix_cache_queries": "prefix_cache_queries_total",
        "server_prefix_cache_hits": "prefix_cache_hits_total",
        **{f"server_finished_{why}": f"request_success_total.{why}" for why in vllm.FINISH_REASONS},
    }
    return {column: _moved(deltas, name) for column, name in moved.items()}


def _moved(deltas: Mapping[str, float] | None, name: str) -> int | None:
    return None if deltas is None or name not in deltas else int(deltas[name])


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * MS


def _latencies(requests: Requests) -> Row:
    samples = int(requests.is_ok.sum())
    row: Row = {"percentile_estimator": PERCENTILE_ESTIMATOR}
    for metric, times in requests.latencies_s.items():
        row[f"{metric}_mean_ms"] = _ms(metrics.mean_s(times))
        row[f"{metric}_sample_count"] = int((~np.isnan(times)).sum())
        for q in PERCENTILE_MIN_SAMPLES:
            row[f"{metric}_{percentile_name(q)}_ms"] = _ms(metrics.percentile_s(times, q, samples))
    return row


def _intervals(report: LoadReport, row: Row) -> Row:
    """How far chance could have moved the tail and the throughput; NULL where the number itself is."""
    requests = report.requests
    good = np.flatnonzero(requests.is_ok)
    ends: dict[str, bootstrap.Interval | None] = dict.fromkeys(("ttft_p99", "itl_p99"))
    if len(good) >= P99_MIN_SAMPLES:
        of_gap = np.repeat(np.arange(len(good)), requests.gap_count[good])
        of_token = np.repeat(of_gap, requests.ok_gap_tokens) if len(requests.itl_s) else of_gap[:0]
        ends["ttft_p99"] = bootstrap.tail_interval(requests.ttft_s[good] * MS, np.arange(len(good)), 99)
        ends["itl_p99"] = bootstrap.tail_interval(requests.itl_s * MS, of_token, 99)
    found: Row = {f"{name}_{end}_ms": _end(ends[name], end) for name in ends for end in ("low", "high")}
    # In a closed loop throughput is tokens over the time requests took; an open one's is what was offered.
    shares = None
    if row["arrivals"] == "closed" and row["output_throughput_tok_per_s"] is not None:
        shares = bootstrap.ratio_interval(requests.output_tokens[good].astype(np.float64), requests.e2el_s[good])
    for end in ("low", "high"):
        share = _end(shares, end)
        known = None if share is None else share * row["output_throughput_tok_per_s"]
        found[f"output_throughput_{end}_tok_per_s"] = known
    return found


def _end(interval: bootstrap.Interval | None, end: str) -> float | None:
    return None if interval is None else interval[("low", "high").index(end)]


def _steady(report: LoadReport) -> Row:
    steady, windows = report.steady, report.windows or ()
    line = None if steady is None else slope(steady.part_tokens)
    return {
        "steady_begin_s": None if steady is None else steady.begin_s,
        "steady_duration_s": None if steady is None else steady.duration_s,
        "steady_output_throughput_tok_per_s": None if steady is None else steady.output_throughput_tok_per_s,
        "steady_slope_share": None if line is None else line.share,
        "steady_slope_se_share": None if line is None else line.standard_error,
        "live_mean": None if steady is None else steady.live_mean,
        **{f"{part}_count": None if steady is None else windows.count(part) for part in ("ramp", "steady", "drain")},
    }


def _server_view(report: LoadReport, deltas: Mapping[str, float] | None, scrapes: Scrapes | None) -> Row:
    view = live_view(scrapes, report.steady)
    over_s = None if report.server_times is None else ttft_over_server_s(report.requests, report.server_times)
    return {
        "server_live_mean": None if view is None else view.mean,
        "server_live_se": None if view is None else view.standard_error,
        "server_live_sample_count": None if view is None else view.count,
        "server_blind_live": blind_live(report.requests, deltas or {}),
        "scrape_took_p50_ms": _ms(None if scrapes is None else scrapes.took_p50_s),
        "ttft_over_server_p50_ms": _ms(None if over_s is None else metrics.percentile_s(over_s, 50, len(over_s))),
        "dispatch_delay_p99_ms": _ms(report.dispatch_delay_p99_s),
        "slot_refill_p99_ms": _ms(report.slot_refill_p99_s),
    }


def _scrapes(samples: pa.Table | None) -> Scrapes | None:
    if samples is None:
        return None
    at_s, took_ms, running, waiting = (
        np.asarray(samples[name].to_numpy(), dtype=np.float64)
        for name in ("at_s", "took_ms", "requests_running", "requests_waiting")
    )
    return Scrapes(at_s, took_ms / MS, running + waiting)


def _requests_table(place: RunId, report: LoadReport) -> pa.Table:
    requests = report.requests
    count = len(requests)
    good = requests.is_ok
    # Gaps of failed requests are left out, as they are of every latency.
    offsets = pa.array(np.concatenate(([0], np.cumsum(np.where(good, requests.gap_count, 0)))).astype(np.int32))
    gaps_ms = pa.array((requests.ok_gap_s * MS).astype(np.float32))
    tokens = pa.array(requests.ok_gap_tokens.astype(np.int32))
    is_unknown = ~good | bool((requests.gap_tokens < 0).any())
    columns = _id_arrays(place, count) | {
        "request_index": pa.array(requests.index),
        "outcome": pa.array(requests.outcome, pa.string()),
        "error": pa.array(requests.error, pa.string()),
        "intended_s": pa.array(requests.intended_s, from_pandas=True),
        "send_s": pa.array(requests.send_s, from_pandas=True),
        "ttft_ms": pa.array(requests.ttft_s * MS, from_pandas=True),
        "tpot_ms": pa.array(requests.tpot_s * MS, from_pandas=True),
        "e2el_ms": pa.array(requests.e2el_s * MS, from_pandas=True),
        "input_tokens": _counts(requests.input_tokens),
        "output_tokens": _counts(requests.output_tokens),
        "itl_ms": pa.ListArray.from_arrays(offsets, gaps_ms, mask=pa.array(~good)),
        "itl_tokens": pa.ListArray.from_arrays(offsets, tokens, mask=pa.array(is_unknown)),
    }
    return _in_schema("requests", columns | _told_of_requests(report))


def _told_of_requests(report: LoadReport) -> dict[str, pa.Array]:
    """What only some drivers and servers tell of each request; NULL where they do not."""
    count = len(report.requests)
    unsaid = np.full(count, np.nan)
    times = report.server_times or ServerTimes(unsaid, unsaid, unsaid, unsaid)
    said = {
        "ttft": times.ttft_s,
        "queue": times.queue_s,
        "generation": times.generation_s,
        "mean_itl": times.mean_itl_s,
    }
    cached = np.full(count, -1) if report.request_cached_tokens is None else report.request_cached_tokens
    return {
        "window": pa.array(report.windows or [None] * count, pa.string()),
        "cached_tokens": _counts(cached),
        **{f"server_{name}_ms": pa.array(values * MS, from_pandas=True) for name, values in said.items()},
    }


def _counts(counts: metrics.Ints) -> pa.Array:
    return pa.array(counts, mask=counts < 0)


def _telemetry_table(place: RunId, content: bytes) -> pa.Table:
    with _reading("telemetry.parquet"):
        return _sampled_table("telemetry", place, pq.read_table(io.BytesIO(content)), {})


def _server_samples(place: RunId, files: RunFiles, origin_s: float | None) -> pa.Table | None:
    """What the server said during the load, on the client's clock; None of a run from before this was asked."""
    if files.server_samples is None:
        return None
    with _reading("server-samples.parquet"):
        found = pq.read_table(io.BytesIO(files.server_samples))
        asked_s, answered_s = (
            np.asarray(found[name].cast(pa.float64()).to_numpy() * NS, dtype=np.float64)
            for name in ("asked_ns", "answered_ns")
        )
        at_s = (asked_s + answered_s) / 2 - (np.nan if origin_s is None else origin_s)
        placed = {
            "at_s": pa.array(at_s, from_pandas=True),
            "took_ms": pa.array((answered_s - asked_s) * MS, from_pandas=True),
        }
        return _sampled_table("server_samples", place, found, placed)


def _sampled_table(table: Table, place: RunId, found: pa.Table, made: dict[str, pa.Array]) -> pa.Table:
    """A file of samples as rows of a table; a column that the file lacks is NULL."""
    schema = arrow_schema(table)
    columns = {name: found[name].cast(schema.field(name).type) for name in schema.names if name in found.column_names}
    absent = {name: pa.nulls(len(found), schema.field(name).type) for name in schema.names if name not in columns}
    return _in_schema(table, absent | columns | made | _id_arrays(place, len(found)))


def _id_arrays(place: RunId, count: int) -> dict[str, pa.Array]:
    ids = _ids(place)
    return {name: pa.repeat(ids[name], count) for name in ("run_id", "scenario_id", "repeat")}


def _in_schema(table: Table, columns: Mapping[str, Any]) -> pa.Table:
    schema = arrow_schema(table)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
