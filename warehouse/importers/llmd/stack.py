"""The load and the stack of an llm-d report, and fields present in both native and standardized form."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bench.audit.claim import ClaimedConfig, Pair
from warehouse.importers.parsing.tree import Tree

_IMAGE = re.compile(r".+/.+:(?P<tag>[\w.+-]+)")
# Engine flags and their names in the standardized form.
FLAGS = {"--tensor-parallel-size": "tp", "--pipeline-parallel-size": "pp", "--data-parallel-size": "dp"}


@dataclass(frozen=True)
class EngineComponent:
    """One component of the stack that is an inference engine."""

    said: Tree
    native: Tree
    label: str

    @property
    def args(self) -> Tree:
        """The flags it was started with."""
        return self.native.part("args")

    @property
    def may_go_on(self) -> bool:
        """Whether it accepts more than its configured context length."""
        return self.native.part("envars").flag("VLLM_ALLOW_LONG_MAX_MODEL_LEN") is True

    @property
    def parallelism(self) -> Tree:
        """How the model is split over GPUs."""
        return self.said.part("accelerator").part("parallelism")

    @property
    def gpus(self) -> int | None:
        """GPUs of all replicas."""
        count = self.said.part("accelerator").count("count")
        return None if count is None else count * (self.said.count("replicas") or 1)


def asked_of(report: Tree) -> ClaimedConfig:
    """The configuration of the first engine, with the GPUs of all engines."""
    load = report.part("scenario").part("load").part("standardized")
    engines = _engines(report)
    # Later turns include earlier ones and wait for them, whatever length and rate are requested.
    has_turns = load.part("multi_turn").flag("enabled") is True
    rate = load.positive("rate_qps") if "rate_qps" in load and not has_turns else None
    isl, osl = load.part("input_seq_len"), load.part("output_seq_len")
    spans = (isl.text("distribution"), osl.text("distribution"))
    asked = ClaimedConfig(
        isl=None if has_turns else isl.amount("value"),
        osl=osl.amount("value"),
        has_fixed_lengths=None if None in spans else spans == ("fixed", "fixed"),
        concurrency=load.count("concurrency"),
        request_rate_per_s=rate,
        is_open_loop=rate is not None if rate is not None or load.count("concurrency") is not None else None,
    )
    return _with_stack(asked, engines) if engines else asked


def _with_stack(asked: ClaimedConfig, engines: list[EngineComponent]) -> ClaimedConfig:
    first = engines[0]
    gpus = [engine.gpus for engine in engines]
    version = first.said.text("tool_version")
    image = _IMAGE.fullmatch(version or "")
    return ClaimedConfig(
        **{
            **vars(asked),
            "model": first.said.part("model").text("name"),
            # A count of 0 means a server on a CPU.
            "gpu": None if first.gpus == 0 else first.said.part("accelerator").text("model"),
            "gpu_count": (sum(count for count in gpus if count is not None) or None) if None not in gpus else None,
            "tp_size": first.parallelism.count("tp"),
            "pp_size": first.parallelism.count("pp"),
            "dp_size": first.parallelism.count("dp"),
            "ep_size": first.parallelism.count("ep"),
            "engine": first.said.text("tool"),
            "engine_version": None if image else version,
            "image": version if image else None,
            "max_model_len": None if first.may_go_on else first.args.count("--max-model-len"),
        }
    )


def pairs_of(report: Tree) -> tuple[Pair, ...]:
    """Fields present in both native and standardized form, as claimed and observed pairs."""
    return (*_load_pairs(report), *(pair for engine in _engines(report) for pair in _flag_pairs(engine)))


def _flag_pairs(engine: EngineComponent) -> Iterator[Pair]:
    for flag, name in FLAGS.items():
        native, standardized = engine.args.number(flag), engine.parallelism.number(name)
        if native is not None and standardized is not None:
            where = f"{engine.label} native {flag} / standardized {name}"
            yield Pair("flag", f"{native:g}", f"{standardized:g}", where)


def _load_pairs(report: Tree) -> Iterator[Pair]:
    load = report.part("scenario").part("load")
    config, standardized = load.part("native").part("config"), load.part("standardized")
    native = config.part("server").text("model_name")
    for engine in _engines(report)[:1]:
        served = engine.said.part("model").text("name")
        if native is not None and served is not None:
            yield Pair("label", native, served, "load native server.model_name / stack model.name")
    stage, rate = standardized.count("stage"), standardized.number("rate_qps")
    stages = config.part("load").parts("stages")
    if stage is not None and rate is not None and stage < len(stages):
        planned = stages[stage].number("rate")
        if planned is not None:
            where = f"load native stages[{stage}].rate / standardized rate_qps"
            yield Pair("flag", f"{planned:g}", f"{rate:g}", where)


def _engines(report: Tree) -> list[EngineComponent]:
    scenario = report.part("scenario")
    return [
        EngineComponent(each.part("standardized"), each.part("native"), each.part("metadata").text("label") or "stack")
        for each in scenario.parts("stack")
        if each.part("standardized").text("kind") == "inference_engine"
    ]
