"""InferenceX's aggregate rows: latencies in seconds, throughputs of one GPU."""

import json
from collections.abc import Sequence
from typing import Any

from catalog.read import find_gpu
from warehouse.exporters.exporter import Exporter
from warehouse.exporters.measurement import Measurement, known

# The keys of GPUs in InferenceX's app, which skips rows of others (SemiAnalysisAI/InferenceX-app, HW_REGISTRY).
HARDWARE = frozenset({"h100", "h200", "b200", "b300", "gb200", "gb300", "mi300x", "mi325x", "mi355x"})


def row_of(one: Measurement) -> dict[str, Any]:
    """One aggregate row, of the third version of the schema. `std_intvty` is omitted: it has no meaning."""
    sizes = one.parallel
    latencies = {
        f"{_statistic(statistic)}_{metric}": value / 1e3
        for metric in ("ttft", "tpot", "itl", "e2el")
        for statistic, value in one.latencies_ms(metric).items()
    }
    return known(
        {
            "hw": hardware_key(one.gpu),
            "conc": one["concurrency_asked"],
            "image": one["image_digest"],
            "model": one["model"],
            "framework": one["engine"],
            "precision": one["precision"],
            "disagg": False,
            "is_multinode": False,
            "isl": one["isl"],
            "osl": one["osl"],
            "tp": sizes["tp"],
            "pp": sizes["pp"],
            "ep": one["ep_size"] or 1,
            "spec_decoding": one["spec_method"],
            "tput_per_gpu": _per_gpu(one, one.total_tok_per_s),
            "output_tput_per_gpu": _per_gpu(one, one["output_throughput_tok_per_s"]),
            "input_tput_per_gpu": _per_gpu(one, one.input_tok_per_s),
            **latencies,
            **{f"{name}_intvty": 1 / latencies[f"{name}_tpot"] for name in ("mean", "median", "p90", "p99")
               if latencies.get(f"{name}_tpot")},
        }
    )  # fmt: skip


def hardware_key(gpu: str | None) -> str | None:
    """The key of a GPU in InferenceX's app; None for a GPU that it does not know."""
    known_gpu = find_gpu(gpu) if gpu else None
    key = None if known_gpu is None else known_gpu.gpu.lower().removesuffix("-sxm")
    return key if key in HARDWARE else None


def lacking(one: Measurement) -> str | None:
    """The reason why the format cannot represent this measurement; None if it can."""
    reasons = {
        "the format needs throughput per GPU, and this machine has no GPU or several models": (
            not one["gpus"] or one.gpu is None
        ),
        f"InferenceX has no key for {one.gpu}; its keys are {', '.join(sorted(HARDWARE))}": hardware_key(one.gpu)
        is None,
        "the format supports closed loops only": one["concurrency_asked"] is None,
        "the format needs the method of speculation, and it is unknown": (
            one["is_speculative"] and one["spec_method"] is None
        ),
        "the format needs the GPUs of the prefill server and of the decode server, and only their sum is known": (
            one["kv_connector"] is not None
        ),
        "the format has no field for data parallel": one.parallel["dp"] != 1,
    }
    return next((reason for reason, is_lacking in reasons.items() if is_lacking), None)


def files(measurements: Sequence[Measurement]) -> dict[str, str]:
    """One list of rows."""
    return {"agg.json": json.dumps([row_of(one) for one in measurements], indent=2) + "\n"}


def _statistic(name: str) -> str:
    return {"p50": "median", "p999": "p99.9"}.get(name, name)


def _per_gpu(one: Measurement, rate: float | None) -> float | None:
    return rate / one.gpu_count if rate is not None else None


EXPORTER = Exporter("inferencex", files, lacking)
