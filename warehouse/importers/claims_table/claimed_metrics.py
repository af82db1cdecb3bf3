"""Map a metric of a claims table to our fields by name and unit."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

_GIB = 1e9 / 2**30
# Not a token rate: spread, ratio, change against another rate, energy.
_NO_RATE = re.compile(r"std|variance|ratio|gain|_pct|per_mw|expected_|saturation|users?_max")
_RATES = (  # by name, the first that is found; the names of one system and those of one GPU follow
    (re.compile(r"input|prefill|prompt"), "input_throughput_tok_per_s", None),
    (re.compile(r"total"), "total_throughput_tok_per_s", "total_per_gpu_tok_per_s"),
    (re.compile(r"output|gen|decode|mlperf"), "output_throughput_tok_per_s", "output_per_gpu_tok_per_s"),
    (re.compile(r"single_(?:user|stream)|interactivity"), "per_user_tok_per_s", None),
    (re.compile(r"throughput|speed|tok"), "unstated_throughput_tok_per_s", None),
)
_LATENCY = re.compile(
    r"(?:(?P<statistic>mean|avg|median|std|min|max|p\d+(?:\.\d+)?)_)?"
    r"(?P<metric>ttft|tpot|itl|e2el|e2e_latency|latency)(?:_(?P<after>mean|avg|median|p\d+(?:\.\d+)?))?(?:_(?P<unit>ms|s))?"
)
_METRICS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl"}
_SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}
_PLAIN = {
    "elapsed_time": ("said", "duration_s"),
    "duration": ("said", "duration_s"),
    "train_tflops_per_gpu": ("said", "train_tflops_per_gpu"),
    "hourly_cost": ("asked", "usd_per_hour"),
    "cost_hourly": ("asked", "usd_per_hour"),
    "usd_per_hour": ("asked", "usd_per_hour"),
}


@dataclass(frozen=True)
class Slot:
    """The target of a number: part of the claim, field (`e2el.mean` in `latency`), and factor.

    `remark` is a code for an ambiguity of the name; with scale None the unit is unknown and the number is ignored.
    """

    part: Literal["said", "latency", "asked"]
    field: str
    scale: float | None = 1.0
    remark: str | None = None


@lru_cache(maxsize=4096)
def slot_of(metric: str, unit: str) -> Slot | None:
    """The target of this metric; None if none of our fields matches."""
    name, unit = metric.strip().lower(), _unit(unit)
    if name.startswith(("qualitative", "spec_", "sysinfo_")):
        return None
    return _latency(name, unit) or _plain(name, unit) or _cost(name) or _weights(name, unit) or _rate(name, unit)


def _unit(text: str) -> str:
    unit = text.strip().lower().replace(" ", "").replace("tokens", "tok").replace("token", "tok")
    return unit.replace("persecond", "/s").replace("/sec", "/s").replace("/second", "/s")


def _latency(name: str, unit: str) -> Slot | None:
    found = _LATENCY.fullmatch(name)
    if found is None:
        return None
    statistic = found["statistic"] or found["after"] or "mean"
    field = f"{_METRICS.get(found['metric'], 'e2el')}.{'mean' if statistic == 'avg' else statistic.replace('.', '')}"
    suffix = found["unit"]
    is_clear = unit in _SECONDS if suffix is None else unit in ("", suffix) or _SECONDS.get(unit) == _SECONDS[suffix]
    scale = _SECONDS[suffix or unit] if is_clear else None
    return Slot("latency", field, scale, None if is_clear else "unit_unknown")


def _plain(name: str, unit: str) -> Slot | None:
    if name.startswith("train_") and unit.startswith("tok/s"):
        return Slot("said", "train_tok_per_s_per_gpu")
    part, field = _PLAIN.get(name, (None, ""))
    if part == "said":
        return Slot("said", field, _SECONDS.get(unit, None if field == "duration_s" else 1.0))
    return Slot("asked", field) if part else None


def _cost(name: str) -> Slot | None:
    if not re.search(r"per_(?:1?m|million|mtok)", name) or not re.search(r"cost|usd|price", name):
        return None
    which = next((word for word in ("input", "output", "total") if word in name), None)
    return Slot("said", f"usd_per_mtok_{which or 'unstated'}", remark=None if which else "cost_denominator_unstated")


def _weights(name: str, unit: str) -> Slot | None:
    if not (name.startswith("memory") and "weights" in name):
        return None
    scale = {"gb": _GIB, "gib": 1.0}.get(unit)
    return Slot("asked", "weights_gib", scale, None if scale else "unit_unknown")


def _rate(name: str, unit: str) -> Slot | None:
    if unit in ("req/s", "requests/s", "queries/s") and not _NO_RATE.search(name):
        return Slot("said", "request_throughput_per_s")
    if not unit.startswith("tok/s") or unit.endswith("/mw") or _NO_RATE.search(name):
        return None
    if unit.endswith("/user"):
        return Slot("said", "per_user_tok_per_s")
    for words, system, single in _RATES:
        if words.search(name):
            field = single if unit.endswith("/gpu") or "per_gpu" in name else system
            ambiguous = "tokens_ambiguous" if field == "unstated_throughput_tok_per_s" else None
            return None if field is None else Slot("said", field, remark=ambiguous)
    return None
