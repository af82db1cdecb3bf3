"""llm-d's Benchmark Report v0.1, as YAML or JSON: one scenario and its metrics; the names of rates say their units.

Its `duration` is what its producer wrote there: of vLLM's client the measured window, of inference-perf the time in
which requests were sent, of guidellm the window with its warm-up. Only the first is that of the rates.
"""

from collections.abc import Iterator

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals
from warehouse.importers.format import Format
from warehouse.importers.llmd.report import has_top_keys, latency_of, total_of, tree_of
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.printed import engine_of, printed_precision
from warehouse.importers.parsing.tree import Tree

_SAYS_WINDOW = frozenset({"vllm-benchmark", "inferencemax"})


def recognises(document: Document) -> bool:
    """Whether it has the report's top-level keys, as JSON or YAML."""
    return has_top_keys(document, "version", "scenario", "metrics")


def read(document: Document, form: Format) -> Iterator[Claim]:
    """The claim of a report."""
    one = tree_of(document, "0.1", "one with its keys is of version 0.1")
    scenario, metrics = one.part("scenario"), one.part("metrics")
    tool = scenario.part("load").text("name")
    yield Claim(
        lineage=form.lineage(document, "", tool),
        asked=_asked(scenario),
        said=_said(metrics, says_window=tool in _SAYS_WINDOW),
        latency_s=latency_of(metrics.part("latency")),
        remarks=one.all_remarks(),
        label=scenario.text("description") or "",
        unread=one.all_unread(),
        required=form.required,
    )


def _asked(scenario: Tree) -> ClaimedConfig:
    """The model on all accelerators; tensor parallelism only where all parts have the same."""
    accelerators = scenario.part("host").parts("accelerator")
    engines = scenario.part("platform").parts("engine")
    counts = [each.count("count") for each in accelerators]
    models = {each.text("model") for each in accelerators}
    parallelisms = [each.part("parallelism") for each in accelerators]
    model = scenario.part("model")
    first = engines[0] if engines else None
    return ClaimedConfig(
        model=model.text("name"),
        precision=printed_precision(model.text("quantization")),
        gpu=models.pop() if len(models) == 1 else None,
        gpu_count=sum(count for count in counts if count) or None if None not in counts else None,
        tp_size=_one([each.count("tp") for each in parallelisms]),
        pp_size=_one([each.count("pp") for each in parallelisms]),
        engine=None if first is None else engine_of(first.text("name")),
        engine_version=None if first is None else first.text("version"),
    )


def _one(sizes: list[int | None]) -> int | None:
    return sizes[0] if len(set(sizes)) == 1 else None


def _said(metrics: Tree, *, says_window: bool) -> ClaimedTotals:
    time, requests, rates = metrics.part("time"), metrics.part("requests"), metrics.part("throughput")
    total, failures = requests.count("total"), requests.count("failures") or 0
    completed = None if total is None else total - failures - (requests.count("incomplete") or 0)
    duration_s = time.amount("duration")
    return ClaimedTotals(
        completed=completed,
        failed=failures,
        duration_s=duration_s if says_window else None,
        total_input_tokens=total_of(requests.part("input_length"), completed),
        total_output_tokens=total_of(requests.part("output_length"), completed),
        request_throughput_per_s=rates.positive("requests_per_sec"),
        input_throughput_tok_per_s=rates.positive("input_tokens_per_sec"),
        output_throughput_tok_per_s=rates.positive("output_tokens_per_sec"),
        total_throughput_tok_per_s=rates.positive("total_tokens_per_sec"),
        has_trimmed_rates=True,
    )


FORMAT = Format("llm-d-0.1", 1, recognises, read, frozenset({"failure_rate", "zero_output", "percentile_order"}))
