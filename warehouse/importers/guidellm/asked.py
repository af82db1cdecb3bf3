"""The configuration of a guidellm benchmark; its location depends on the guidellm version."""

import json
from typing import Any

from bench.audit.claim import ClaimedConfig
from warehouse.importers.parsing.tree import Tree

OPEN = frozenset({"constant", "poisson", "async"})


def asked_of(report: Tree, one: Tree) -> ClaimedConfig:
    """The benchmark's configuration; None for missing values."""
    strategy = _strategy(one)
    how = strategy.text("type_")
    is_open = None if how is None else how in OPEN
    data = _data(report, one)
    is_plain = not data.raw("prefix_buckets") and (data.count("turns") or 1) == 1
    return ClaimedConfig(
        model=_model(one),
        # Later turns and shared prefixes lengthen prompts, and turns wait for each other at any rate.
        isl=_mean_length(data, "prompt_tokens") if is_plain else None,
        osl=_mean_length(data, "output_tokens"),
        has_fixed_lengths=_has_fixed_lengths(data) if is_plain else None,
        concurrency=1
        if how == "synchronous"
        else strategy.count("streams", "max_concurrency")
        if not is_open
        else None,
        request_rate_per_s=strategy.positive("rate") if is_open and is_plain else None,
        is_open_loop=is_open,
        request_count=_request_count(one),
    )


def _strategy(one: Tree) -> Tree:
    of_config = one.part("config").part("strategy")
    return of_config if "type_" in of_config else one.part("args").part("strategy")


def _model(one: Tree) -> str | None:
    return (
        one.part("config").part("backend").text("model")
        or one.part("worker").text("backend_model")
        or one.part("benchmarker").part("backend").text("model")
    )


def _request_count(one: Tree) -> int | None:
    """The requested number of requests, if only that number ends the benchmark."""
    constraints = one.part("config").part("constraints")
    if set(constraints.names()) != {"max_requests"}:
        return None
    limit = constraints.part("max_requests")
    args = limit.part("args")
    of_each = args.raw("count")
    if not isinstance(of_each, list):
        return args.count("count", "max_num")
    # One for each benchmark of the report, and the place of this one.
    at = limit.count("current_index")
    of_this = dict(enumerate(of_each)).get(0 if at is None else at)
    return args.branch("count", {"count": of_this}).count("count")


def _has_fixed_lengths(data: Tree) -> bool | None:
    if "output_tokens" not in data:
        return None
    spans = ("stdev", "min", "max")
    return not any(data.raw(f"{side}_tokens_{name}") for side in ("prompt", "output") for name in spans)


def _mean_length(data: Tree, name: str) -> float | None:
    """The mean of the lengths that are drawn; None where a limit cuts off one side of a normal distribution.

    Without a deviation guidellm draws evenly between the limits; a limit that is left out is the stated length.
    """
    stated, low, high = (data.positive(each) for each in (name, f"{name}_min", f"{name}_max"))
    if stated is None or (low is None and high is None):
        return stated
    middle = ((stated if low is None else low) + (stated if high is None else high)) / 2
    is_normal = bool(data.positive(f"{name}_stdev"))
    return middle if not is_normal or (middle == stated and None not in (low, high)) else None


def _data(report: Tree, one: Tree) -> Tree:
    """The description of synthetic prompts; empty for other prompts."""
    of_spec = report.part("config").part("spec").raw("data")
    written = [of_spec, report.part("args").raw("data"), one.part("request_loader").raw("data")]
    found = next((described for each in written if (described := _described(each))), {})
    return one.branch("data", found)


def _described(value: Any) -> dict[str, Any]:
    """An object, the first of a list of them, or text: JSON or `prompt_tokens=128,output_tokens=256`."""
    if isinstance(value, list):
        return _described(value[0]) if value else {}
    if isinstance(value, dict):
        return value
    if not isinstance(value, str) or "prompt_tokens" not in value:
        return {}
    if not value.lstrip().startswith("{"):
        return dict(pair.split("=", 1) for pair in value.split(",") if "=" in pair)
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
