"""The headings of columns in words, with their units; a reader finds the column's own name by pointing at one."""

import re

# What a name ends with, and the unit that this is; the first that fits counts.
_UNITS = (
    ("usd_per_mtok_output", "USD per million output tokens"),
    ("_tok_per_s", "tok/s"),
    ("_bytes_per_s", "bytes/s"),
    ("_per_s_asked", "1/s"),
    ("_per_s", "1/s"),
    ("_per_hour", "per hour"),
    ("_ms", "ms"),
    ("_min", "min"),
    ("_s", "s"),
    ("_wh", "Wh"),
    ("_w", "W"),
    ("_j", "J"),
    ("_pct", "%"),
    ("_share", "share"),
    ("_bytes", "bytes"),
)
_WHOLE = {
    "usd": "cost (USD)",
    "usd_measuring": "cost of measuring (USD)",
    "usd_per_accepted": "cost per accepted run (USD)",
    "usd_per_mtok_output": "price (USD per million output tokens)",
    "usd_per_hour": "price (USD per hour)",
    "isl": "input length (tokens)",
    "osl": "output length (tokens)",
    "concurrency_asked": "requests in flight, planned",
    "concurrency_achieved": "requests in flight, reached",
    "request_rate_per_s_asked": "requests sent, planned (1/s)",
    "request_throughput_per_s": "requests completed (1/s)",
    "output_throughput_tok_per_s": "output throughput (tok/s)",
    "joules_per_output_token": "energy per output token (J)",
    "kwh_per_mtok_output": "energy (kWh per million output tokens)",
    "ci_lo": "95 % interval from",
    "ci_hi": "95 % interval to",
    "effect_pct": "difference (%)",
    "mde_pct": "smallest visible difference (%)",
    "min_effect_pct": "smallest difference that counts (%)",
    "other_cpu_share": "CPU time of other processes (share)",
    "cpu_pressure_share": "time a process waited for a core (share)",
    "memory_pressure_share": "time a process waited for memory (share)",
    "steal_share": "CPU time taken by the hypervisor (share)",
    "core_speed_share": "speed of the cores (share of the night's fastest run)",
    "core_speed_lowest_share": "lowest speed of the cores (share of the night's fastest run)",
    "core_work_ms": "CPU time of a fixed piece of work (ms)",
    "isl_osl": "input and output length (tokens)",
}
_WORDS = {
    "ttft": "TTFT",
    "tpot": "TPOT",
    "itl": "ITL",
    "e2el": "end-to-end latency",
    "osl": "output length",
    "isl": "input length",
    "kv": "KV",
    "cpu": "CPU",
    "gpu": "GPU",
    "gpus": "GPUs",
    "usd": "USD",
    "slo": "SLO",
    "id": "id",
}
_IS_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


def heading(name: str) -> str:
    """The words of a column; a text of another form stays as it is."""
    if name in _WHOLE:
        return _WHOLE[name]
    if not _IS_NAME.fullmatch(name):
        return name
    ending, unit = next((pair for pair in _UNITS if name.endswith(pair[0])), ("", ""))
    said = " ".join(_WORDS.get(word, word) for word in name.removesuffix(ending).split("_"))
    return f"{said} ({unit})" if unit else said
