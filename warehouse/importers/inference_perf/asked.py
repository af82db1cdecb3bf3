"""The requested load of a stage of inference-perf: by its load summary, and by the run's configuration beside it."""

from bench.audit.claim import ClaimedConfig
from warehouse.importers.parsing.tree import Tree

DRAWN = frozenset({"random", "synthetic"})  # data with requested lengths; others have their own


def asked_of(load: Tree, config: Tree, stage: int | None) -> ClaimedConfig:
    """The load of a stage. A closed loop also writes a rate: that of a schedule which it does not keep."""
    concurrency = load.count("concurrency", "concurrency_level")
    concurrency = concurrency or _stage(config, stage).count("concurrency_level")
    rate = None if concurrency is not None else load.amount("requested_rate") or None
    isl, osl = _length(config, "input"), _length(config, "output")
    return ClaimedConfig(
        model=config.part("server").text("model_name"),
        isl=isl.positive("mean"),
        osl=osl.positive("mean"),
        has_fixed_lengths=_is_fixed(isl) and _is_fixed(osl) if "mean" in osl else None,
        request_rate_per_s=rate,
        is_open_loop=None if rate is None and concurrency is None else rate is not None,
        concurrency=concurrency,
        request_count=load.count("count"),
    )


def _stage(config: Tree, stage: int | None) -> Tree:
    stages = config.part("load").parts("stages")
    return stages[stage] if stage is not None and stage < len(stages) else config.branch("no stage", {})


def _length(config: Tree, side: str) -> Tree:
    data = config.part("data")
    return data.part(f"{side}_distribution") if data.text("type") in DRAWN else data.branch("its own lengths", {})


def _is_fixed(length: Tree) -> bool:
    low, high = length.amount("min"), length.amount("max")
    return length.amount("std_dev") == 0 or (low is not None and low == high)


def counts_by_server(config: Tree) -> bool | None:
    """Whether the rates count output tokens by the server's usage; None where the configuration is unknown."""
    return config.part("report").part("request_lifecycle").flag("use_server_output_tokens")
