"""The tools whose records are read by field name: trtllm-bench, SGLang's offline ones, llama-bench, AIConfigurator."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any

from bench.audit.claim import Claim, ClaimedConfig, Remark, RequestSeries
from bench.audit.evidence.rounding import rel
from warehouse.importers.claims_table.facets import facets_of
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields
from warehouse.importers.records.reading import APART_MAX, Relation, hold, is_of, read_record, records

Values = Mapping[str, Any]
_ALWAYS = frozenset({"failed_not_zero"})


def _as_it_is(values: Values) -> Values:
    return values


@dataclass(frozen=True)
class _Form:
    """One tool's records: what is computed from what in them, and how a record becomes plain fields."""

    name: str
    tool: str
    engine: str | None  # None: a field says it
    version: int = 1
    relations: tuple[Relation, ...] = ()
    prepared: Callable[[Values], Values] = _as_it_is
    completed: Callable[[Claim], Claim] = lambda claim: claim  # what the numbers of this tool mean together
    required: frozenset[str] = _ALWAYS

    @property
    def format(self) -> Format:
        """The importer of these records."""
        return Format(self.name, self.version, partial(is_of, self.name), partial(_read, self), self.required)


def _read(form: _Form, document: Document, this: Format) -> Iterator[Claim]:
    for place, values in records(document):
        fields = Fields(form.prepared(values), f"{document.name} {place}".rstrip())
        found = read_record(form.name, fields)
        hold(fields, form.relations)
        claim = Claim(
            lineage=this.lineage(document, place, form.tool),
            asked=found.asked if form.engine is None else replace(found.asked, engine=form.engine),
            said=found.said,
            latency_s=found.latency_s,
            series=None if found.iteration_s is None else RequestSeries(iteration_s=found.iteration_s),
            label=_label(found.asked),
            remarks=tuple(fields.remarks),
            unread=fields.unread(),
            required=this.required,
        )
        yield form.completed(claim)


def _label(asked: ClaimedConfig) -> str:
    batch = [f"batch {asked.batch}"] if asked.batch is not None else []
    lengths = [f"{asked.isl or 0:g} in, {asked.osl or 0:g} out"] if asked.isl or asked.osl else []
    return ", ".join([asked.model or "unnamed model", *batch, *lengths])


def _prepared_llama(values: Values) -> Values:
    """The rate by what is timed: prompts, answers or both; a count of 0 says that there are none of them."""
    found = {name: value for name, value in values.items() if name not in ("n_prompt", "n_gen") or not _is_zero(value)}
    timed = "_".join(name for name in ("n_prompt", "n_gen") if name in found)
    found[f"avg_ts of {timed}"] = found.pop("avg_ts", None)
    if isinstance(name := found.get("model_filename"), str):
        found["model_filename"] = PurePath(name.replace("\\", "/")).name.removesuffix(".gguf")
    if isinstance(kind := found.get("model_type"), str):
        found["model_type"] = facets_of(kind)[0].get("precision")
    return found


def _is_zero(value: object) -> bool:
    return value in (0, "0")


def _one_sequence(claim: Claim) -> Claim:
    """What llama-bench times: one sequence; a mean of rates is only near the rate of the mean time."""
    asked = replace(claim.asked, batch=1, has_fixed_lengths=True, weights_source="index")
    # It repeats until a mean is steady, and never for the minute of a load: its samples are not a window.
    remarks = (*claim.remarks, *_of_samples(claim))
    return replace(claim, asked=asked, said=replace(claim.said, has_trimmed_rates=True), series=None, remarks=remarks)


def _of_samples(claim: Claim) -> Iterator[Remark]:
    samples = None if claim.series is None else claim.series.iteration_s
    stated = claim.latency("e2el", "mean")
    if samples is None or stated is None:
        return
    computed = float(samples.mean())
    if rel(stated, computed) > APART_MAX:
        where = f"{claim.lineage.file} {claim.lineage.place}".rstrip()
        text = f"{where}: avg_ns is {stated * 1e9:.6g}, and the mean of samples_ns {computed * 1e9:.6g}"
        yield Remark("table_arithmetic", text)


def _one_batch(claim: Claim) -> Claim:
    """One batch that is timed once: each of its times is its mean and its median."""
    latency_s = {
        metric: {"median": found["mean"], **found} if "mean" in found else found
        for metric, found in claim.latency_s.items()
    }
    return replace(claim, asked=replace(claim.asked, has_fixed_lengths=True), latency_s=latency_s)


def _with_totals(claim: Claim) -> Claim:
    """TensorRT-LLM prints mean lengths, to all digits; its totals are those times the requests."""
    said = claim.said
    count, isl, osl = said.completed, said.mean_input_tokens, said.mean_output_tokens
    if count is None:
        return claim
    totals = replace(
        said,
        total_input_tokens=_total(isl, count),
        total_output_tokens=_total(osl, count),
    )
    return replace(claim, said=totals)


def _total(mean: float | None, count: int) -> int | None:
    """The tokens of so many requests; None without a mean, or where no number holds them."""
    return None if mean is None or not math.isfinite(mean * count) else round(mean * count)


def _prepared_prediction(values: Values) -> Values:
    """Engine and machine in the words of the catalogue: `trtllm`, `h200_sxm`."""
    found = dict(values)
    if isinstance(system := found.get("system"), str):
        found["system"] = system.replace("_", " ")
    if found.get("backend") == "trtllm":
        found["backend"] = "tensorrt-llm"
    return found


def _predicted(claim: Claim) -> Claim:
    """A prediction: no run stands behind it."""
    return replace(claim, asked=replace(claim.asked, has_fixed_lengths=True), kind="expected")


_BATCH = ("batch_size",)
_FORMS = (
    _Form(
        "trtllm-bench",
        "trtllm-bench",
        "tensorrt-llm",
        relations=(Relation("world_info.world_size", ("world_info.tp_size", "world_info.pp_size"), ()),),
        completed=_with_totals,
        required=_ALWAYS | {"derived_mismatch"},
    ),
    _Form(
        "sglang-one-batch",
        "sglang.bench_one_batch",
        "sglang",
        relations=(
            Relation("prefill_throughput", (*_BATCH, "input_len"), ("prefill_latency",)),
            Relation("median_decode_throughput", _BATCH, ("median_decode_latency",)),
        ),
        completed=_one_batch,
    ),
    _Form("sglang-offline", "sglang.bench_offline_throughput", "sglang", required=_ALWAYS | {"derived_mismatch"}),
    _Form(
        "llama-bench",
        "llama-bench",
        "llama.cpp",
        prepared=_prepared_llama,
        completed=_one_sequence,
    ),
    _Form("aiconfigurator", "aiconfigurator", None, prepared=_prepared_prediction, completed=_predicted),
)
RECORD_FORMATS = tuple(form.format for form in _FORMS)
