"""Tables of what the arithmetic allows: the rooflines of each GPU, model and precision, and which models fit which."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from bench.catalog.rows import CatalogModel
from bench.cost.replica import replica_of
from bench.physics import GIB, Group, checkpoint_bytes, decode_flops, least_flops, least_step_s, needed_gib, room_gib
from bench.suite.machine import Machine
from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from catalog.read import find_gpu, find_model, machine_size, read_catalog
from warehouse.suite_report.measured import Measured, NightValues, Value
from warehouse.suite_report.published import beside_row

RATE = "output_throughput_tok_per_s"
PRECISIONS = ("bf16", "fp8", "int4")


def roofline_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each GPU, model and precision: its ceilings in tok/s, and the best that was measured of them.

    The ceiling of a single stream reads every active weight once a token, without any KV cache. Those of prefill and of
    decode multiply every active weight once a token at the dense peak. A share is left out where the night ran on
    another GPU, model or precision, which `terms` names.
    """
    del suite, table
    seen: dict[tuple[str, str, str, str], list[Scenario]] = {}
    for scenario in scenarios:
        key = (_gpu_of(scenario.machine), scenario.model.name, scenario.model.precision, scenario.engine.name)
        seen.setdefault(key, []).append(scenario)
    for (gpu, model, precision, engine), of_it in seen.items():
        row: dict[str, Any] = {"gpu": gpu, "model": model, "precision": precision, "engine": engine}
        ceilings = _ceilings(of_it[0])
        yield row | ceilings | _best(of_it, ceilings, values)


def _gpu_of(machine: Machine) -> str:
    """The GPU of a kind of machine by the catalogue, else as the suite names it."""
    size = machine_size(None, machine.kind)
    return size.gpu if size else str(machine.gpu)


def _ceilings(first: Scenario) -> dict[str, Any]:
    known = replica_of(first.model, first.engine, first.machine, machine_size(None, first.machine.kind), read_catalog())
    if known is None:
        return dict.fromkeys(("gpus", "single_stream_tok_per_s", "prefill_tok_per_s", "decode_tok_per_s"))
    model, group = known
    return {
        "gpus": group.count,
        "single_stream_tok_per_s": 1 / least_step_s(model, group, 1, 0),
        "prefill_tok_per_s": group.flops_per_s / least_flops(model),
        "decode_tok_per_s": group.flops_per_s / decode_flops(model, 0),
    }


def _best(scenarios: Sequence[Scenario], ceilings: dict[str, Any], values: NightValues) -> dict[str, Any]:
    """The highest throughput of one stream and of all scenarios, each with its share of the ceiling."""
    alone = [one for one in scenarios if one.workload.in_flight == 1]
    row: dict[str, Any] = {}
    terms: list[str] = []
    for name, of_it, ceiling in (
        ("single_stream", alone, ceilings["single_stream_tok_per_s"]),
        ("best", list(scenarios), ceilings["decode_tok_per_s"]),
    ):
        found = [(value, one) for one in of_it if (value := values.of(one.name).value(RATE).mean) is not None]
        best, scenario = max(found, key=lambda pair: pair[0]) if found else (None, None)
        terms = terms or (list(_other_terms(scenario, values.of(scenario.name))) if scenario else [])
        share = best / ceiling if best is not None and ceiling and not terms else None
        row |= {f"measured_{name}_tok_per_s": best, f"measured_{name}_share": share}
    lacking = "the catalogue lacks the model or the GPU" if ceilings["gpus"] is None else "nothing was measured"
    known = any(row[name] is not None for name in row if name.endswith("_share"))
    return row | {"terms": "; ".join(terms) or ("equal" if known else lacking)}


def _other_terms(scenario: Scenario, measured: Measured) -> Iterator[str]:
    """What the night ran on where that differs from the scenario."""
    gpus = measured.fact("gpus") or []
    here = find_gpu(gpus[0]) if gpus else None
    asked = find_gpu(_gpu_of(scenario.machine))
    if asked != here:
        yield f"GPU: {asked.gpu if asked else None} requested, {here.gpu if here else 'none'} here"
    model, ours = _model(scenario.model.source), _model(str(measured.fact("model_source")))
    if model != ours:
        yield f"model: {model} requested, {ours} here"


def _model(source: str) -> str:
    name = source.removeprefix("hf:").partition("@")[0]
    known = find_model(name)
    return name if known is None else known.model


def memory_fit_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each machine, model and precision: the weights, the KV cache of one request, and the room.

    `gpus_needed` is the least number of these GPUs whose memory holds them, each with the engine's usual 90 %. The
    request is as long as the table says, or else as the longest scenario. A row's name for `figures`, whose memory is
    that of the weights, is `model/precision/GPU`, such as `Llama-3.1-70B/bf16/MI300X`.
    """
    del values
    context = table.context_tokens or max((one.workload.context_tokens for one in scenarios), default=0)
    names = dict.fromkeys((*(_model(model.source) for model in suite.models), *table.models))
    models = [known for name in names if (known := find_model(name)) is not None]
    for machine in (*suite.machines, *(Machine(kind=name, gpu=name) for name in table.machines)):
        size = machine_size(None, machine.kind)
        gpu = find_gpu(_gpu_of(machine))
        if gpu is None:
            continue
        count = size.gpu_count if size else machine.gpu_count or 1
        groups = [Group(gpu, count, precision) for precision in PRECISIONS]
        for model, group in product(models, groups):
            name, fit = f"{model.model}/{group.precision}/{gpu.gpu}", _fit(model, group, context)
            beside = beside_row(table, name, suite.report.sources, Value(fit["weights_gib"]))
            yield {"machine": machine.name or machine.kind, "gpu": gpu.gpu, "gpus": count} | fit | beside


def _fit(model: CatalogModel, group: Group, context: int) -> dict[str, Any]:
    weights = checkpoint_bytes(model, group.precision) / GIB
    needed, one = needed_gib(model, group, 1, context), room_gib(Group(group.gpu, 1, group.precision))
    return {
        "model": model.model,
        "precision": group.precision,
        "weights_gib": weights,
        "kv_cache_gib": needed - weights,
        "needed_gib": needed,
        "room_gib": room_gib(group),
        "fits": needed <= room_gib(group),
        "gpus_needed": -int(-needed // one),
    }
