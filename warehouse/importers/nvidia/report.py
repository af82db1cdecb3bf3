"""The NVIDIA-format report: its CSV with `33.1 output tokens/sec` in a cell, and its JSON of versions 1 and 2."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals
from warehouse.importers.format import Format
from warehouse.importers.nvidia.cost import cost_of
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import IN_DOUBT, number_in
from warehouse.importers.parsing.printed import engine_of, printed_precision, version_in
from warehouse.importers.parsing.printed_units import unit_of
from warehouse.importers.parsing.tree import Tree

HEADER = frozenset({"Model", "PP", "TP", "Input Length", "Output Length", "Throughput", "GPU"})
LISTS = ("benchmarks", "concurrency_benchmarks", "throughput_degradation")
_COUNTED = re.compile(r"(?P<count>\d{1,4})\s*[x\u00d7]\s*(?P<gpu>.+)", re.IGNORECASE)
_THROUGHPUT = re.compile(r"(?P<number>[-+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?)\s*(?P<unit>[a-zA-Z].*)?")
_COUNTING = re.compile(r"[()]|\b(?:output|generated|total)\b", re.IGNORECASE)  # words of a unit that say which tokens


def recognises(document: Document) -> bool:
    """Whether it is such a CSV, or JSON with metadata and one of the lists of either version."""
    if set(document.header()) >= HEADER:
        return True
    return document.has_keys("metadata") and any(_is_list_of_lengths(document, name) for name in LISTS)


def _is_list_of_lengths(document: Document, name: str) -> bool:
    rows = document.json.get(name)
    first = rows[0] if isinstance(rows, list) and rows else None
    return isinstance(first, dict) and any(key in first for key in ("input_length", "input_len", "output_tokens"))


def read(document: Document, form: Format) -> Iterator[Claim]:
    """One claim per row of the CSV or the JSON lists, and one for the cost of version 2."""
    if not document.is_json_object:
        yield from _read_csv(document, form)
        return
    report = Tree(document.json, document.name)
    about = _about(report.part("metadata"))
    yield from (
        _claim(document, form, f"{name}[{at}]", row, about)
        for name in LISTS
        for at, row in enumerate(report.parts(name))
    )
    cost = report.part("cost_analysis")
    if cost.names():
        yield _cost_claim(document, form, cost, about)


def _about(metadata: Tree) -> ClaimedConfig:
    gpu, count = _gpus(metadata.text("gpu"))
    framework = metadata.text("framework")
    return ClaimedConfig(
        model=metadata.text("model"),
        precision=printed_precision(metadata.text("precision")),
        gpu=gpu,
        gpu_count=count,
        engine=engine_of(framework),
        engine_version=version_in(framework),
        usd_per_hour=metadata.positive("hourly_cost_usd"),
    )


def _claim(document: Document, form: Format, place: str, row: Tree, about: ClaimedConfig) -> Claim:
    isl, osl = row.positive("input_length", "input_len"), row.positive("output_length", "output_len", "output_tokens")
    latency = row.positive("avg_latency_sec")
    said = ClaimedTotals(
        completed=row.count("successful_requests"),
        failed=row.count("failed_requests"),
        duration_s=row.positive("wall_time_sec", "time_sec"),
        total_output_tokens=row.count("total_tokens", "actual_tokens"),
        output_throughput_tok_per_s=row.positive("throughput_tokens_per_sec", "throughput_tok_s"),
        stated_cause=row.text("error"),
    )
    asked = _asked(row, about, isl, osl, said)
    return Claim(
        lineage=form.lineage(document, place),
        asked=asked,
        said=said,
        latency_s={"e2el": {"mean": latency}} if latency is not None else {},
        remarks=row.all_remarks(),
        outcome=_outcome(said),
        label=_named(row.text("scenario"), asked),
        unread=row.all_unread(),
        required=form.required,
    )


def _asked(row: Tree, about: ClaimedConfig, isl: float | None, osl: float | None, said: ClaimedTotals) -> ClaimedConfig:
    tp, pp = row.count("tp"), row.count("pp")
    own = ClaimedConfig(
        isl=isl,
        osl=osl,
        tp_size=tp,
        pp_size=pp,
        gpu_count=tp * pp if tp and pp and about.gpu_count is None else None,
        concurrency=row.count("concurrency"),
        request_count=None if said.completed is None or said.failed is None else said.completed + said.failed,
    )
    return own.filled_from(about)


def _cost_claim(document: Document, form: Format, cost: Tree, about: ClaimedConfig) -> Claim:
    per_hour = cost.positive("hourly_cost_usd")
    own = Claim(
        lineage=form.lineage(document, "cost_analysis"),
        asked=ClaimedConfig(usd_per_hour=per_hour),
        said=cost_of(cost, cost.positive("throughput_tok_s", "throughput_tokens_per_sec"), per_hour),
        remarks=cost.all_remarks(),
        label="cost analysis",
        unread=cost.all_unread(),
    )
    return own.with_context(about)


def _read_csv(document: Document, form: Format) -> Iterator[Claim]:
    for at, cells in enumerate(document.table, start=1):
        place = f"row {at}"
        row = Tree(cells, f"{document.name} {place}")
        framework = row.text("Framework")
        gpu, count = _gpus(row.text("GPU"))
        tp, pp = row.count("TP"), row.count("PP")
        asked = ClaimedConfig(
            model=row.text("Model"),
            precision=printed_precision(row.text("Precision")),
            gpu=gpu,
            gpu_count=count or (tp * pp if tp and pp else None),
            tp_size=tp,
            pp_size=pp,
            engine=engine_of(framework),
            engine_version=version_in(framework),
            isl=row.positive("Input Length"),
            osl=row.positive("Output Length"),
            concurrency=row.count("Concurrency"),
        )
        said = replace(_throughput(row), stated_cause=row.text("Reason"))
        yield Claim(
            lineage=form.lineage(document, place),
            asked=asked,
            said=said,
            remarks=row.all_remarks(),
            outcome=_outcome(said),
            label=_named(row.text("Scenario"), asked),
            unread=row.all_unread(),
            required=form.required,
        )


def _outcome(said: ClaimedTotals) -> Literal["measured", "failed"]:
    """A row without a throughput whose reason is stated failed; our own exports have such rows."""
    has_rate = said.output_throughput_tok_per_s or said.total_throughput_tok_per_s or said.unstated_throughput_tok_per_s
    return "failed" if said.stated_cause is not None and not has_rate else "measured"


def _throughput(row: Tree) -> ClaimedTotals:
    """The number in the cell and the tokens it counts; 0 is a failed run."""
    text = row.text("Throughput")
    found = _THROUGHPUT.fullmatch(text or "")
    if found is None:
        if text is not None:
            row.remark("unreadable_value", f"Throughput = {text!r:.60} is not one number and its unit; ignored")
        return ClaimedTotals()
    try:
        value, unit = number_in(found["number"]), (found["unit"] or "").lower()
    except ValueError:
        row.remark("unreadable_value", f"Throughput = {text!r:.60} is not a number: {IN_DOUBT}; ignored")
        return ClaimedTotals()
    if value <= 0:
        row.remark("failed_not_zero", f"Throughput is {text}")
        return ClaimedTotals()
    return _counted(row, value, unit)


def _counted(row: Tree, value: float, unit: str) -> ClaimedTotals:
    known = unit_of(_COUNTING.sub("", unit))
    if known is None or known.dimension not in ("tok/s", "tok/s/gpu"):
        row.remark("unit_unknown", f"Throughput has the unit {unit!r}; ignored")
        return ClaimedTotals()
    value, is_of_gpu = value * known.factor, known.dimension == "tok/s/gpu"
    if "output" in unit or "generated" in unit:
        if is_of_gpu:
            return ClaimedTotals(output_per_gpu_tok_per_s=value)
        return ClaimedTotals(output_throughput_tok_per_s=value)
    if "total" in unit:
        if is_of_gpu:
            return ClaimedTotals(total_per_gpu_tok_per_s=value)
        return ClaimedTotals(total_throughput_tok_per_s=value)
    row.remark("tokens_ambiguous", f"Throughput in {unit!r} does not state which tokens it counts")
    return ClaimedTotals() if is_of_gpu else ClaimedTotals(unstated_throughput_tok_per_s=value)


def _gpus(text: str | None) -> tuple[str | None, int | None]:
    """Name and number of `8x MI300X`."""
    found = _COUNTED.fullmatch(text or "")
    return (text, None) if found is None else (found["gpu"], int(found["count"]))


def _named(scenario: str | None, asked: ClaimedConfig) -> str:
    """The scenario, where the file has one, and the load."""
    return " ".join(filter(None, (scenario, _label(asked))))


def _label(asked: ClaimedConfig) -> str:
    at = "" if asked.concurrency is None else f" at {asked.concurrency}"
    return f"{asked.isl:g}/{asked.osl:g}{at}" if asked.isl is not None and asked.osl is not None else at.strip()


FORMAT = Format("nvidia", 2, recognises, read, frozenset({"failed_not_zero", "roofline_compute"}))
