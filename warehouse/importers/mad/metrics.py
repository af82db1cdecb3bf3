"""Map MAD's metric names to our fields; the unit comes from the name's suffix, else from the unit column."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from bench.audit.claim import ClaimedTotals, Metric
from warehouse.importers.parsing.tree import Tree
from warehouse.importers.parsing.units import REQUEST_RATE, TIME, TOKEN_RATE

_RATES = {
    "throughput_tot": "total_throughput_tok_per_s",
    "total_throughput": "total_throughput_tok_per_s",
    "total_token_throughput": "total_throughput_tok_per_s",
    "throughput_gen": "output_throughput_tok_per_s",
    "output_throughput": "output_throughput_tok_per_s",
    "output_token_throughput": "output_throughput_tok_per_s",
    "output_tokens_per_second": "output_throughput_tok_per_s",
    "total_tokens_per_second": "total_throughput_tok_per_s",
    "request_throughput": "request_throughput_per_s",
    "requests_per_second": "request_throughput_per_s",
    "req_per_sec": "request_throughput_per_s",
    "tokens_per_second": "unstated_throughput_tok_per_s",
    "tokens_per_sec": "unstated_throughput_tok_per_s",
    "tokens/s": "unstated_throughput_tok_per_s",
    "tok/s": "unstated_throughput_tok_per_s",
    "throughput": "unstated_throughput_tok_per_s",
    "tflops/gpu": "train_tflops_per_gpu",
    "tflops": "train_tflops_per_gpu",
    "tokens/s/gpu": "train_tok_per_s_per_gpu",
    "tokens_per_second_per_gpu": "train_tok_per_s_per_gpu",
}
_SAYS_ITS_UNIT = frozenset({"tokens_per_second", "tokens_per_sec", "tokens/s", "tok/s", "requests_per_second"})
_SAYS_ITS_UNIT |= {
    "output_tokens_per_second",
    "total_tokens_per_second",
    "req_per_sec",
    "tflops/gpu",
    "tflops",
    "tokens/s/gpu",
    "tokens_per_second_per_gpu",
}
_LATENCY = re.compile(
    r"(?:(?P<statistic>mean|median|std|min|max|p\d{2,3})_)?(?P<metric>ttft|tpot|itl|e2el|latency)(?:_(?P<unit>ms|s))?"
)


@dataclass(frozen=True)
class Reading:
    """The metrics of one run read so far."""

    said: ClaimedTotals = field(default_factory=ClaimedTotals)
    latency_s: Mapping[Metric, Mapping[str, float]] = field(default_factory=dict)

    def with_metric(self, row: Tree, name: str, unit: str, value: float) -> Self:
        """The reading with one more metric; an unknown unit or meaning is a remark on the row."""
        name, unit = name.strip().lower(), unit.strip().lower()
        as_latency = _LATENCY.fullmatch(name)
        if as_latency is not None:
            return self._with_latency(row, as_latency, unit, value)
        rate = _RATES.get(name)
        if rate is None or not (unit in TOKEN_RATE | REQUEST_RATE or (not unit and name in _SAYS_ITS_UNIT)):
            row.remark(
                "unit_unknown",
                f"{value:g} of {name or 'no metric'!r} in {unit or 'no unit'!r} left out: unknown unit or meaning",
            )
            return self
        if rate == "unstated_throughput_tok_per_s":
            row.remark("tokens_ambiguous", f"{name!r} does not state which tokens it counts")
        return replace(self, said=replace(self.said, **_named(rate, value)))

    def failed_with(self, cause: str) -> Self:
        """The reading as a failed run, with the file's error message."""
        return replace(self, said=replace(self.said, stated_cause=cause))

    def _with_latency(self, row: Tree, name: re.Match[str], unit: str, value: float) -> Self:
        scale = TIME.get(name["unit"] or unit)
        if scale is None:
            row.remark("unit_unknown", f"{name[0]} = {value:g} has no unit; ignored")
            return self
        metric: Metric = "e2el" if name["metric"] == "latency" else _METRICS[name["metric"]]
        known = dict(self.latency_s.get(metric, {}))
        known["median" if name["statistic"] == "p50" else name["statistic"] or "mean"] = value * scale
        return replace(self, latency_s={**self.latency_s, metric: known})


def _named(name: str, value: float) -> dict[str, Any]:
    return {name: value}


_METRICS: dict[str, Metric] = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2el"}
