"""Small files on which one rule of physics, provenance, money or coherence speaks, and good ones beside them.

`python -m tests.data.twins_of_physics` writes them anew: `audit/<code>[-which].<ending>`, `good/...`, with what a file
does not say in a `.context.toml` beside it.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.data.formats.claims_table.make import COLUMNS
from tests.data.formats.vllm_serve.make import plain, short_run

Files = dict[str, str]
PLAIN = {
    "source": "a report",
    "source_date": "2026-02-03",
    "system": "one host",
    "gpu": "AMD Instinct MI300X 192GB",
    "gpu_count": "1",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "precision": "BF16",
    "framework": "vLLM",
    "framework_version": "0.11.0",
    "tp": "1",
    "isl": "1000",
    "osl": "500",
    "concurrency_or_batch": "16",
    "num_prompts": "320",
}
RATE = ("output_throughput", "2196.0", "tok/s")
Number = tuple[str, str, str]


def table(*groups: tuple[Mapping[str, str], Iterable[Number]]) -> str:
    """A claims table: for each configuration, as it differs from the plain one, its numbers."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for changes, numbers in groups:
        for metric, value, unit in numbers:
            writer.writerow({**PLAIN, **changes, "metric": metric, "value": value, "unit": unit})
    return out.getvalue()


def level(concurrency: int, rate: float, e2el_s: float | None = None) -> tuple[Mapping[str, str], list[Number]]:
    """One level of a sweep, with the latency that Little's law makes of its rate."""
    latency = e2el_s or concurrency * 500 / rate
    load = {"concurrency_or_batch": str(concurrency), "num_prompts": str(20 * concurrency)}
    return load, [
        ("output_throughput", f"{rate:.1f}", "tok/s"),
        ("mean_ttft_ms", "150", "ms"),
        ("mean_e2e_latency_ms", f"{1e3 * latency:.1f}", "ms"),
        ("mean_tpot_ms", f"{(1e3 * latency - 150) / 499:.4f}", "ms"),
    ]


def night(day: int) -> tuple[Mapping[str, str], list[Number]]:
    """The same measurement on another day, a hundred-thousandth faster each time: no machine is so quiet."""
    return {"source_date": f"2026-09-{day:02}"}, [("output_throughput", f"{2196.37 + 0.02 * day:.2f}", "tok/s")]


def physics() -> Files:
    """More than a GPU can do, hold or know."""
    lone = {"concurrency_or_batch": "1", "num_prompts": "20"}
    large = {"model": "meta-llama/Llama-3.3-70B-Instruct", "concurrency_or_batch": "", "num_prompts": ""}
    alone = {"isl": "", "osl": "", "concurrency_or_batch": "", "num_prompts": ""}
    return {
        "roofline_bandwidth.csv": table((lone, [("output_throughput", "500", "tok/s")])),
        "roofline_compute.csv": table((alone, [("total_token_throughput", "120000", "tok/s")])),
        "roofline_prefill.csv": table(({}, [RATE, ("mean_ttft_ms", "5", "ms")])),
        "far_below_roofline.csv": table(({}, [("output_throughput", "40", "tok/s")])),
        "memory_fit.csv": table(({**large, "gpu": "NVIDIA H100 SXM"}, [("output_throughput", "20", "tok/s")])),
        "precision_conflict.csv": table(({**alone, "precision": "FP8"}, [("memory_model_weights", "16.1", "GB")])),
        "unit_suspect.csv": table(({**alone, "isl": "4096"}, [("train_tflops_per_gpu", "12000", "TFLOP/s/GPU")])),
    }  # fmt: skip


def money() -> Files:
    """What tokens cost: 2.59 USD an hour over 2,196 tok/s are 0.3276 USD a million."""

    def cost(usd: str, metric: str = "cost_per_1M_output_tokens") -> str:
        return table(({}, [RATE, ("hourly_cost", "2.59", "USD/h"), (metric, usd, "USD")]))

    return {
        "cost_identity.csv": cost("0.45"),
        "cost_unit.csv": cost("327.6"),
        "cost_denominator_unstated.csv": table(({}, [RATE, ("cost_per_1M_tokens", "0.3276", "USD")])),
        "cost_denominator_fits.csv": cost("0.3276", "cost_per_1M_tokens"),
        "metric_ambiguous.csv": table(({}, [("TTFT", "150", "ms")])),
        "tokens_ambiguous.csv": table(({}, [("throughput", "6600", "tok/s")])),
        "unit_misuse.csv": table(({}, [RATE, ("mean_tpot_ms", "7.0", "ms"), ("interactivity", "9.3", "tok/s/user")])),
    }


def provenance() -> Files:
    """One thing said in two ways, a number of another day, a number that nobody measured."""
    named = {"model": "amd/Llama-3.1-8B-Instruct-FP8-KV", "precision": "BF16"}
    copied = [{"source_date": "2025-04-15"}, {"source_date": "2025-09-30"}]
    return {
        "label_conflict.csv": table((named, [RATE])),
        "label_conflict-gpus.csv": table(({"tp": "8"}, [("output_throughput", "12000", "tok/s")])),
        "context_conflict.csv": table(({}, [RATE])),
        "context_conflict.context.toml": 'gpu = "H200"\n',
        "not_measured.csv": table(({"notes": "interpolated between two points"}, [RATE])),
        "stale_copy.csv": table(*((each, [("output_throughput", "2196.37", "tok/s")]) for each in copied)),
    }


def groups() -> Files:
    """Levels, GPUs and precisions that do not go together."""
    sweep = [level(1, 165.0), level(8, 1200.0), level(16, 2196.0), level(32, 3700.0)]
    two = ({"tp": "2", "gpu_count": "2"}, [("output_throughput", "5200.0", "tok/s")])
    loaded = {"concurrency_or_batch": "128", "num_prompts": "2560"}
    fleet = ({"gpu_count": "8", **loaded}, [("output_throughput", "17570.96", "tok/s")])
    narrow = ({"precision": "FP8"}, [("output_throughput", "5000.0", "tok/s")])
    return {
        "concurrency_not_reached-capped.csv": table(*sweep, level(64, 3705.0, 32 * 500 / 3705.0)),
        "scaling_conflict.csv": table(sweep[0], level(2, 400.0)),
        "scaled_up.csv": table(({}, [("output_throughput", "2196.37", "tok/s")]), fleet),
        "too_quiet.csv": table(*(night(day) for day in range(1, 13))),
        "tp_scaling.csv": table(({}, [RATE]), two),
        "precision_speedup.csv": table(({}, [RATE]), narrow),
    }


def served(seed: int, **metadata: Any) -> str:
    """A result of `vllm bench serve` with metadata."""
    return json.dumps({**plain(short_run(seed)), **metadata}, indent=1)


def serving() -> Files:
    """Results of `vllm bench serve` with metadata that disagrees with them."""
    mode = {"engine_mode": "V1", "observed_engine_mode": "V0"}
    versions = {"engine_version": "0.11.0", "observed_engine_version": "0.9.2"}
    return {
        "ctx_exceeds_max_len.json": served(31, max_model_len=128),
        "engine_mode_conflict.json": served(32, **mode),
        "engine_version_conflict.json": served(33, **versions),
        "arch_conflict.json": served(34, gfx="gfx942", observed_gfx="gfx90a"),
        "flag_conflict.json": served(35, max_num_seqs=256, observed_max_num_seqs=1024),
        "timestamp_conflict-20250101-000000.json": served(36),
        "kv_capacity.json": served(37),
        "kv_capacity.context.toml": "kv_cache_tokens = 100\n",
        "revision_unpinned.json": served(38),
        "revision_unpinned.context.toml": 'image = "vllm/vllm-openai:v0.11.0"\n',
    }


def failures() -> Files:
    """A failure that is blamed on what was not its cause."""
    return {
        "status_cause.csv": table(({"notes": "status=exceeds the context length; nothing ran"},
                                   [("output_throughput", "N/A", "tok/s")])),
        "status_cause.context.toml": "max_model_len = 8192\n",
    }  # fmt: skip


def good() -> Files:
    """Files of which nothing is to be said."""
    priced = [RATE, ("hourly_cost", "2.59", "USD/h"), ("cost_per_1M_output_tokens", "0.328", "USD")]
    two = ({"tp": "2", "gpu_count": "2"}, [("output_throughput", "3900.0", "tok/s")])
    narrow = ({"precision": "FP8"}, [("output_throughput", "3600.0", "tok/s")])
    return {
        "physics-sweep.csv": table(*(level(*each) for each in ((1, 165.0), (8, 1200.0), (16, 2196.0), (32, 3700.0)))),
        "physics-configurations.csv": table(({}, priced), two, narrow),
        "physics-metadata.json": served(39, engine_mode="V1", observed_engine_mode="V1", max_model_len=4096),
    }


def files() -> dict[str, Files]:
    """Every file by folder and name."""
    bad = physics() | money() | provenance() | groups() | serving() | failures()
    return {"audit": bad, "good": good()}


if __name__ == "__main__":
    for folder, texts in files().items():
        for name, text in texts.items():
            Path(__file__).with_name(folder).joinpath(name).write_text(text)
