"""Writes a file for each way in which a measurement contradicts itself, each spoiled from one simulated run.

`python -m tests.data.audit.make` writes them anew; the same seed writes the same bytes.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.audit.claim import Claim, RequestSeries
from tests.bench.simulate import Load, claim_of, load_of, simulate

HERE = Path(__file__).parent
Result = dict[str, Any]


def result_of(claim: Claim, *arrays: str) -> Result:
    """A claim as `vllm bench serve` writes it, with these of its arrays."""
    said, asked = claim.said, claim.asked
    found: Result = {
        "date": "20261121-030000",
        "endpoint_type": "openai",
        "backend": "vllm",
        "label": None,
        "model_id": "synthetic/model",
        "tokenizer_id": "synthetic/model",
        "num_prompts": asked.request_count,
        "request_rate": asked.request_rate_per_s or "inf",
        "burstiness": 1.0,
        "max_concurrency": asked.concurrency,
        "duration": said.duration_s,
        "completed": said.completed,
        "failed": said.failed,
        "total_input_tokens": said.total_input_tokens,
        "total_output_tokens": said.total_output_tokens,
        "request_throughput": said.request_throughput_per_s,
        "output_throughput": said.output_throughput_tok_per_s,
        "total_token_throughput": said.total_throughput_tok_per_s,
        "max_output_tokens_per_s": said.peak_output_tok_per_s,
    }
    for metric, values in claim.latency_s.items():
        found |= {f"{name}_{metric}_ms": value * 1e3 for name, value in values.items()}
    assert claim.series is not None
    return found | {name: _array(claim.series, name) for name in arrays}


def _array(series: RequestSeries, name: str) -> list[Any]:
    if name == "itls":
        assert series.gap_s is not None
        assert series.gap_at is not None
        return [part.round(7).tolist() for part in np.split(series.gap_s, series.gap_at[1:-1])]
    of = {
        "input_lens": series.input_tokens,
        "output_lens": series.output_tokens,
        "ttfts": series.ttft_s,
        "latencies": series.e2el_s,
        "start_times": series.start_s,
    }[name]
    assert of is not None
    return list(of.tolist()) if of.dtype == np.int64 else list(of.round(6).tolist())


def _ran(load: Load) -> Claim:
    return claim_of(simulate(load))


LONG = load_of("Llama-3.3-70B", count=2, osl=200, requests=400)
RUN = _ran(LONG)
# Few and short answers by a slow engine: their gaps are a small file.
SLOW = _ran(replace(LONG, osl=8, requests=96, efficiency=0.01))
_RATE = 1.5 / replace(LONG, isl=4096).prefill_s
PILED = _ran(replace(LONG, isl=4096, osl=16, concurrency=None, rate_per_s=_RATE, requests=round(90 * _RATE)))


def changed(result: Mapping[str, Any], **values: Any) -> Result:
    return {**result, **values}


def scaled(result: Mapping[str, Any], by: float, *names: str) -> Result:
    return changed(result, **{name: result[name] * by for name in names})


def _of_metric(result: Mapping[str, Any], metric: str) -> tuple[str, ...]:
    return tuple(name for name in result if name.endswith(f"_{metric}_ms"))


def _merged(result: Mapping[str, Any], every: int) -> Result:
    """Every so many-th event comes together with the one before it."""
    itls = [
        [sum(pair) for pair in (gaps[at : at + every] for at in range(0, len(gaps), every))] for gaps in result["itls"]
    ]
    return _with_gaps(result, itls)


def _bursting(result: Mapping[str, Any]) -> Result:
    """Of two gaps the first holds the time of both but 10 us."""
    itls = [
        [gap for at in range(0, len(gaps) - 1, 2) for gap in (gaps[at] + gaps[at + 1] - 1e-5, 1e-5)]
        + gaps[len(gaps) - len(gaps) % 2 :]
        for gaps in result["itls"]
    ]
    return _with_gaps(result, itls)


def _with_gaps(result: Mapping[str, Any], itls: list[list[float]]) -> Result:
    gaps = np.concatenate([np.array(each) for each in itls]) * 1e3
    found = {name: value for name, value in result.items() if not name.endswith("_itl_ms")}
    stated = {"mean": gaps.mean(), "median": np.median(gaps), "std": gaps.std()}
    return found | {"itls": itls} | {f"{name}_itl_ms": float(value) for name, value in stated.items()}


def _torn(result: Mapping[str, Any]) -> Result:
    itls = [[gap * 1.1 for gap in gaps] if at % 8 == 0 else gaps for at, gaps in enumerate(result["itls"])]
    return _with_gaps(result, itls)


def _medians(result: Mapping[str, Any]) -> Result:
    return {name: value for name, value in result.items() if not name.startswith(("mean_", "std_"))}


def _cold(result: Mapping[str, Any], seconds: float) -> Result:
    """The first wave waits so long, and all else begins later."""
    duration = result["duration"] + seconds
    rates = {
        "request_throughput": result["completed"] / duration,
        "output_throughput": result["total_output_tokens"] / duration,
        "total_token_throughput": (result["total_input_tokens"] + result["total_output_tokens"]) / duration,
    }
    more = 1e3 * seconds * result["max_concurrency"] / result["completed"]
    longer = {name: result[name] + more for name in ("mean_ttft_ms", "mean_e2el_ms")}
    spoiled = {**result, **rates, **longer, "duration": duration}
    return {name: value for name, value in spoiled.items() if not name.startswith("std_")}


def _failing(result: Mapping[str, Any], count: int) -> Result:
    """So many of the requests failed, and the others were as they are."""
    share = 1 - count / result["completed"]
    totals = {name: round(result[name] * share) for name in ("completed", "total_input_tokens", "total_output_tokens")}
    found = scaled(result, share, "request_throughput", "output_throughput", "total_token_throughput")
    return {**found, **totals, "failed": count}


def twins() -> dict[str, Result]:
    """Every file by its stem."""
    run, slow = result_of(RUN), result_of(SLOW, "output_lens", "ttfts", "latencies", "itls")
    timed = result_of(RUN, "ttfts", "latencies", "start_times")
    few = result_of(_ran(replace(LONG, osl=1500, requests=40)))
    brief = result_of(_ran(replace(LONG, osl=40, requests=96)))
    piled = result_of(PILED, "ttfts", "latencies", "start_times")
    nothing: Result = {name: 0 for name in run if name.endswith(("_throughput", "_ms", "_per_s"))}
    none: Result = {"completed": 0, "failed": 400, "total_input_tokens": 0, "total_output_tokens": 0}
    return {
        "failure_rate": _failing(run, 30),
        "failure_rate-some": _failing(run, 8),
        "incomplete": changed(run, num_prompts=500),
        "zero_output": run | nothing | none,
        "duration_short": brief,
        "impossible_values": changed(run, min_ttft_ms=-1.0),
        "sum_mismatch": changed(result_of(RUN, "output_lens"), output_lens=[200] * 399 + [180]),
        "derived_mismatch": scaled(run, 1.05, "output_throughput"),
        "stat_mismatch": scaled(result_of(RUN, "ttfts"), 1.04, "mean_ttft_ms"),
        "percentile_order": scaled(run, 0.5, "p99_e2el_ms"),
        "window_mismatch": changed(timed, start_times=[at * 0.8 for at in timed["start_times"]]),
        "peak_below_mean": scaled(run, 0.4, "max_output_tokens_per_s"),
        "e2el_identity": _torn(slow),
        "tpot_identity": scaled(run, 1.6, *_of_metric(run, "tpot")),
        "unit_suspect": scaled(run, 0.001, *_of_metric(run, "tpot")),
        "unit_suspect-ttft": scaled(run, 1000, *_of_metric(run, "ttft")),
        "little_excess": changed(run, max_concurrency=7),
        "little_excess-medians": changed(_medians(run), max_concurrency=6),
        "concurrency_not_reached": changed(run, max_concurrency=32),
        "cold_start_contamination": _cold(run, 400.0),
        "chunk_token_ratio": _merged(slow, 2),
        "chunk_token_ratio-means": scaled(run, 1.3, *_of_metric(run, "itl")),
        "chunked_stream": scaled(run, 2.0, *_of_metric(run, "itl")),
        "bursty_stream": _bursting(slow),
        "rate_not_offered": changed(piled, request_rate=piled["request_rate"] * 1.4),
        "over_saturated": piled,
        "too_few_prompts": few,
        "tail_unsupported": changed(brief | {"num_prompts": 96}, p99_ttft_ms=brief["p95_ttft_ms"] * 1.01),
    }


def repeats() -> list[Result]:
    """Three repeats, one of them on a machine that was busy."""
    loads = [replace(LONG, seed=seed, efficiency=share) for seed, share in enumerate((0.6, 0.6, 0.4))]
    return [result_of(_ran(load)) for load in loads]


if __name__ == "__main__":
    for stem, result in twins().items():
        (HERE / f"{stem}.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
    (HERE / "unstable.jsonl").write_text("".join(json.dumps(each) + "\n" for each in repeats()), encoding="utf-8")
