"""Latency statistics as flat keys: `p99_ttft_ms`, `median_tpot`, `mean_e2el_s`."""

import re
from collections.abc import Mapping

from bench.audit.claim import Metric
from warehouse.importers.parsing.fields import Fields

_KEY = re.compile(
    r"(?P<statistic>mean|median|std|min|max|p\d+(?:\.\d+)?)_(?P<metric>ttft|tpot|itl|e2el|e2e_latency)(?P<unit>_ms|_s)?"
)
_METRICS: Mapping[str, Metric] = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2el", "e2e_latency": "e2el"}
_SECONDS = {"_ms": 1e-3, "_s": 1.0}


def read_latencies(
    fields: Fields, *, unsuffixed_s: float | None = None, has_gaps: bool = True
) -> dict[Metric, dict[str, float]]:
    """Every latency statistic of these fields, in seconds; the unit is the suffix of the key.

    A key without a suffix has the unit `unsuffixed_s`; if that is None, the value is ignored with a remark. Without
    gaps (every answer is one token) a TPOT or ITL of 0 means that there is none; otherwise 0 is a failure.
    """
    found: dict[Metric, dict[str, float]] = {}
    for name in fields.names():
        key = _KEY.fullmatch(name)
        if key is None:
            continue
        value = _seconds(fields, name, key, unsuffixed_s)
        metric = _METRICS[key["metric"]]
        if value == 0 and not may_be_zero(metric, key["statistic"]):
            if has_gaps or metric in ("ttft", "e2el"):
                fields.remark("failed_not_zero", f"{name} is 0 but must be positive")
            value = None
        if value is not None:
            found.setdefault(metric, {})[key["statistic"].replace(".", "")] = value
    return found


def _seconds(fields: Fields, name: str, key: re.Match[str], unsuffixed_s: float | None) -> float | None:
    scale = _SECONDS.get(key["unit"] or "", unsuffixed_s)
    value = fields.number(name)
    if value is not None and scale is None:
        fields.remark("unit_unknown", f"{name} = {value:g} has no unit in its name; ignored")
    return None if value is None or scale is None else value * scale


def may_be_zero(metric: str, statistic: str) -> bool:
    """Whether 0 is a value of this statistic of a latency; "" is one that is not stated.

    Several tokens can arrive in one network read: a single gap can be 0, a mean cannot.
    """
    return statistic == "std" or (metric == "itl" and statistic not in ("mean", ""))
