"""Aggregate rows of InferenceX (`agg_*.json`), and rows of perf-eval with date, device and nightly build.

Latencies are in seconds without a suffix; throughputs are per GPU, and `tput_per_gpu` counts input and output tokens.
"""

from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedTotals, Device
from warehouse.importers.format import Format
from warehouse.importers.inferencex.asked import read_asked
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields
from warehouse.importers.parsing.latencies import read_latencies

_ALWAYS = frozenset({"conc", "tput_per_gpu", "isl", "osl"})


def _recognises(document: Document) -> bool:
    return document.first_object.keys() >= _ALWAYS


def _read(document: Document, this: Format) -> Iterator[Claim]:
    for place, values in document.objects:
        yield _claim(Fields(values, f"{document.name} {place}".rstrip()), document, this, place)


def _claim(fields: Fields, document: Document, this: Format, place: str) -> Claim:
    asked = read_asked(fields)
    latency_s = read_latencies(fields, unsuffixed_s=1.0, has_gaps=asked.osl != 1)
    if fields.number("std_intvty"):
        fields.remark("meaningless_metric", "std_intvty is the reciprocal of a standard deviation and has no meaning")
    said, device = _said(fields, asked.gpu_count), _device(fields)
    return Claim(
        lineage=this.lineage(document, place, "InferenceX"),
        asked=asked,
        said=said,
        latency_s=latency_s,
        device=device,
        label=f"{asked.model} on {asked.gpu_count} x {asked.gpu}, concurrency {asked.concurrency}",
        remarks=tuple(fields.remarks),
        unread=fields.unread(),
        required=this.required,
    )


def _said(fields: Fields, gpu_count: int | None) -> ClaimedTotals:
    # Interactivity is the reciprocal of TPOT; its other statistics follow from those of TPOT.
    input_per_gpu = fields.positive("input_tput_per_gpu")
    return ClaimedTotals(
        total_per_gpu_tok_per_s=fields.positive("tput_per_gpu"),
        output_per_gpu_tok_per_s=fields.positive("output_tput_per_gpu"),
        input_throughput_tok_per_s=input_per_gpu * gpu_count if input_per_gpu and gpu_count else None,
        per_user_tok_per_s=fields.number("median_intvty"),
    )


def _device(fields: Fields) -> Device | None:
    """Power and energy of the GPUs; None without telemetry, empty values if it is invalid."""
    if "power_valid" not in fields and "avg_power_w" not in fields:
        return None
    if fields.flag("power_valid") is False:
        return Device(was_asked=True)
    return Device(
        was_asked=True,
        power_mean_w=fields.positive("avg_power_w"),
        energy_j=fields.positive("total_gpu_energy_j"),
        energy_scope="gpus",
        joules_per_output_token=fields.positive("joules_per_output_token"),
        joules_per_total_token=fields.positive("joules_per_total_token"),
    )


FORMAT = Format("inferencex-agg", 1, _recognises, _read, frozenset({"failed_not_zero", "percentile_order"}))
