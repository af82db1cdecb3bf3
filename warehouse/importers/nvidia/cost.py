"""The cost analysis of an NVIDIA-format report: USD per million tokens, by kind of token."""

import re
from dataclasses import replace
from typing import Any

from bench.audit.claim import ClaimedTotals
from warehouse.importers.parsing.tree import Tree

COST_REL = 0.02  # the tolerance of cost_identity
_KEY = re.compile(r"cost_per_(?P<per>1m|1k|million|thousand)_(?:(?P<which>input|output|total)_)?tokens(?:_usd)?")
_PER_MILLION = {"1m": 1.0, "million": 1.0, "1k": 1e3, "thousand": 1e3}


def cost_of(cost: Tree, output_tok_per_s: float | None, usd_per_hour: float | None) -> ClaimedTotals:
    """Every stated cost; one that does not state its kind of token is kept separately with a remark."""
    said = ClaimedTotals(output_throughput_tok_per_s=output_tok_per_s)
    for name in cost.names():
        found = _KEY.fullmatch(name)
        value = cost.positive(name, scale=_PER_MILLION[found["per"]]) if found else None
        if found is None or value is None:
            continue
        which = found["which"] or "unstated"
        stated: dict[str, Any] = {f"usd_per_mtok_{which}": value}
        said = replace(said, **stated)
        if which == "unstated":
            cost.remark(
                "cost_denominator_unstated", f"{name} = {value:g} {_fitting(value, output_tok_per_s, usd_per_hour)}"
            )
    return said


def _fitting(value: float, output_tok_per_s: float | None, usd_per_hour: float | None) -> str:
    if output_tok_per_s is None or usd_per_hour is None:
        return "does not state which tokens it is for"
    of_output = usd_per_hour / (output_tok_per_s * 3600) * 1e6
    fits = (
        "which it is of the stated" if abs(of_output / value - 1) < COST_REL else f"it would be {of_output:g} of those"
    )
    return f"does not state which tokens it is for; {fits} {output_tok_per_s:g} tok/s"
