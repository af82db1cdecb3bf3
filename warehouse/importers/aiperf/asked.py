"""The requested load of an aiperf run: by `models`, `datasets` and `phases` since schema 1.4, by `loadgen` before."""

from bench.audit.claim import ClaimedConfig
from warehouse.importers.parsing.tree import Tree

BY_CLOCK = frozenset({"poisson", "gamma", "constant"})
MEASURED, WARMUP = "profiling", "warmup"


def asked_of(config: Tree, phase: str | None = None) -> ClaimedConfig:
    """The configuration, with the load of the named phase, else of the only measured one; None for missing values."""
    return _by_phases(config, phase) if "phases" in config else _by_loadgen(config)


def phases_of(config: Tree, kind: str) -> list[Tree]:
    """The phases of a kind."""
    return [phase for phase in _phases(config) if phase.text("kind", "name") == kind]


def _phases(config: Tree) -> list[Tree]:
    return config.parts("phases")


def _by_phases(config: Tree, name: str | None) -> ClaimedConfig:
    phases = _phases(config)
    named = [phase for phase in phases if phase.text("name") == name]
    measured = named or [phase for phase in phases if phase.text("kind") == MEASURED]
    load = measured[0] if len(measured) == 1 else config.branch("no single phase", {})
    is_open = None if (how := load.text("type")) is None else how in BY_CLOCK
    warmups = [phase.count("requests") for phase in phases if phase.text("kind") == WARMUP]
    models, datasets = config.part("models").parts("items"), config.parts("datasets")
    data = datasets[0] if len(datasets) == 1 else config.branch("no single dataset", {})
    isl, osl = _length(data.part("prompts"), "isl"), _length(data.part("prompts"), "osl")
    # Later turns, shared prefixes and pictures lengthen prompts.
    is_plain = not any(data.raw(name) for name in ("turns", "prefix_prompts", "images", "audio", "video"))
    return ClaimedConfig(
        model=models[0].text("name") if len(models) == 1 else None,
        isl=isl.amount("mean") if is_plain else None,
        osl=osl.amount("mean"),
        # A deviation of 0 is left out of the file.
        has_fixed_lengths=not any(each.amount("stddev") for each in (isl, osl)) if "mean" in osl else None,
        concurrency=load.count("concurrency"),
        request_rate_per_s=load.positive("rate") if is_open else None,
        is_open_loop=is_open,
        request_count=load.count("requests"),
        warmup_count=sum(count for count in warmups if count is not None) if None not in warmups else None,
    )


def _length(prompts: Tree, name: str) -> Tree:
    """A distribution of lengths; a plain number is its mean."""
    value = prompts.raw(name)
    return prompts.part(name) if isinstance(value, dict) else prompts.branch(name, {"mean": value} if value else {})


def _by_loadgen(config: Tree) -> ClaimedConfig:
    load, prompt = config.part("loadgen"), config.part("input").part("prompt")
    models = config.part("endpoint").raw("model_names")
    rate = load.positive("request_rate") if load.raw("request_rate") else None
    concurrency = load.count("concurrency")
    isl, osl = prompt.part("input_tokens"), prompt.part("output_tokens")
    return ClaimedConfig(
        model=models[0] if isinstance(models, list) and models and isinstance(models[0], str) else None,
        isl=isl.amount("mean"),
        osl=osl.amount("mean"),
        has_fixed_lengths=_has_fixed_lengths(isl, osl),
        concurrency=concurrency,
        request_rate_per_s=rate,
        is_open_loop=None if rate is None and concurrency is None else rate is not None,
        request_count=load.count("request_count"),
        warmup_count=load.count("warmup_request_count"),
    )


def _has_fixed_lengths(isl: Tree, osl: Tree) -> bool | None:
    spans = isl.amount("stddev"), osl.amount("stddev")
    return None if "mean" not in osl or None in spans else spans == (0.0, 0.0)
