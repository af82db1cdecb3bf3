"""Tables of machines: what each was as found, what the catalogue has of it, and what a suite needs of its memory."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.catalog.rows import Gpu, MachineKind
from bench.cost.memory import Fit, fits_of
from bench.cost.replica import replica_of
from bench.plan import plan_runs
from bench.suite.machine import Machine
from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from catalog.read import find_gpu, machine_size, read_catalog
from warehouse.lake.query import ask
from warehouse.suite_report.measured import NightValues, Value
from warehouse.suite_report.published import beside_row
from warehouse.suite_report.shown_terms import stated_of

# Each item of a setup, with the columns of the measurements that it is read from.
SETUP = {
    "GPU": ("gpus",),
    "GPUs used": ("gpu_count",),
    "machine": ("machine_kind",),
    "processor": ("cpu_model",),
    "logical processors": ("cpu_count",),
    "NUMA balancing": ("numa_balancing",),
    "BIOS": ("bios_version",),
    "kernel": ("kernel",),
    "GPU driver": ("gpu_driver",),
    "ROCm": ("rocm_version",),
    "CUDA": ("cuda_version",),
    "power cap of a GPU, W": ("gpu_power_cap_w",),
    "engine": ("engine", "engine_version_found"),
    "image": ("image", "image_digest"),
    "torch": ("torch_version",),
    "attention": ("attention_backend",),
    "flags": ("engine_flags_found",),
    "environment": ("engine_environment",),
    "model": ("model_source",),
    "precision": ("precision",),
    "context, tokens": ("max_model_len",),
}
_LEASES = "SELECT machine, first(cloud) AS cloud, first(region) AS region FROM leases WHERE night = ? GROUP BY 1"
UNMEASURED = ("failed", "not-run")  # verdicts of runs that found nothing
PRICE = "price, USD/h"
KV_CACHE = "KV cache"
COMPONENTS = ("weights", KV_CACHE, "used", "room", "available", "headroom")


def setup_rows(
    _suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each part of hardware and software, with what each machine of the night had; models apart, listed."""
    leases = {row["machine"]: row for row in ask(values.data, _LEASES, (values.night,)).dicts()}
    machines = list(dict.fromkeys(one.machine.name for one in scenarios))
    of_machine = {name: [values.of(one.name) for one in scenarios if one.machine.name == name] for name in machines}
    for item, column in (("provider", "cloud"), ("region", "region")):
        found = {name or "found": leases.get(name, {}).get(column) for name in machines}
        yield {"item": item, **found, **stated_of(table, item)}
    for item, columns in SETUP.items():
        found = {}
        for name in machines:
            ran = [one for one in of_machine[name] if one.verdict not in UNMEASURED]
            texts = (" ".join(_text(one.fact(column)) for column in columns) for one in ran)
            found[name or "found"] = "; ".join(dict.fromkeys(text.strip() for text in texts if text.strip())) or None
        yield {"item": item, **found, **stated_of(table, item)}


def _text(value: Any) -> str:
    if isinstance(value, list):
        same = dict.fromkeys(map(str, value))
        return f"{len(value)} x {value[0]}" if len(value) > 1 and len(same) == 1 else " ".join(same)
    return "" if value is None else str(value)


def specification_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each item and GPU by the catalogue, dense peaks, and the ratio of the first two GPUs.

    A row's name for `figures` is `item/GPU`, such as `memory, GB/MI300X`, or `item/ratio`.
    """
    del scenarios
    machines = (*suite.machines, *(Machine(kind=name, gpu=name) for name in table.machines))
    sizes = [(machine, _size(machine)) for machine in machines]
    found = {gpu.gpu: _items(gpu, size) for machine, size in sizes if (gpu := _gpu_of(machine, size)) is not None}
    names = list(found)
    for item in (one for one in _items_of(found) if not (values.is_miniature and one == PRICE)):
        cells = {name: items[item] for name, items in found.items()}
        if len(names) > 1:
            first, second = cells[names[0]], cells[names[1]]
            cells["ratio"] = first / second if first and second else None
        for name, value in cells.items():
            row = {"item": item, "gpu": f"{names[0]} over {names[1]}" if name == "ratio" else name, "value": value}
            yield row | beside_row(table, f"{item}/{name}", suite.report.sources, Value(value))


def _items_of(found: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """The items, the same of every GPU; none of no GPU."""
    return list(next(iter(found.values()), {}))


def _size(machine: Machine) -> MachineKind | None:
    return machine_size(None, machine.kind)


def _gpu_of(machine: Machine, size: MachineKind | None) -> Gpu | None:
    """The GPU of a machine by the catalogue; of one that no cloud has, by the suite."""
    return find_gpu(size.gpu if size else str(machine.gpu))


def _items(gpu: Gpu, size: MachineKind | None) -> dict[str, float | None]:
    hourly = None if size is None or size.usd_per_hour is None else size.usd_per_hour / size.gpu_count
    return {
        "memory, GB": gpu.mem_gb_spec,
        "memory bandwidth, TB/s": gpu.bw_tb_s,
        "compute units": _units(gpu),
        "FP16, TFLOPS": gpu.fp16_tflops,
        "FP32, TFLOPS": gpu.fp32_tflops,
        "FP8, TFLOPS": gpu.fp8_tflops,
        "INT8, TOPS": gpu.int8_tops,
        "board power, W": gpu.tdp_w,
        PRICE: hourly,
    }


def _units(gpu: Gpu) -> float | None:
    """The compute units or multiprocessors of a GPU, which its peak is derived from; None where that does not say."""
    found = re.match(r"(\d+) (?:CU|SM)", gpu.derivation_fp16 or "")
    return None if found is None else float(found[1])


def memory_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """Memory of each model by component: weights and KV cache of the largest load, what there is, what is left.

    By the catalogue; the KV cache that the engine made is as found. A row's name for `figures` is its component, or
    `model/component` in a suite of several models.
    """
    size = _size(suite.machine)
    fits = fits_of(suite, plan_runs(suite, suite.seed), size, read_catalog())
    for model in suite.models:
        of_it = [one for one in scenarios if one.model.name == model.name]
        fit = fits.get(model.name)
        parts = _parts(suite.with_model(model), size, fit)
        tokens = next((t for one in of_it if (t := values.of(one.name).fact("kv_cache_tokens")) is not None), None)
        for component, gib in parts.items():
            row = {"model": model.name, "component": component, "gib": gib}
            row["fits"] = None if fit is None else fit.fits
            row["kv_cache_tokens_found"] = tokens if component == KV_CACHE else None
            name = component if len(suite.models) == 1 else f"{model.name}/{component}"
            yield row | beside_row(table, name, suite.report.sources, Value(gib))


def _parts(suite: Suite, size: MachineKind | None, fit: Fit | None) -> dict[str, float | None]:
    """GiB of each component for the model of a suite; None where the catalogue lacks the model or the machine."""
    known = replica_of(suite.model, suite.engine, suite.machine, size, read_catalog())
    if known is None or fit is None:
        return dict.fromkeys(COMPONENTS)
    _model, group = known
    needed, total = fit.needed_gib, group.gpu.mem_gib_device * group.count
    gib = (fit.weights_gib, needed - fit.weights_gib, needed, fit.room_gib, total, total - needed)
    return dict(zip(COMPONENTS, gib, strict=True))
