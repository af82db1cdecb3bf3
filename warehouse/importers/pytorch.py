"""PyTorch's benchmark records, version 3, of other benchmarks than vLLM's: one metric of one job each.

Records of one job, model and arguments are one claim. Metric names are those of serving benchmarks; others stay unread.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields
from warehouse.importers.parsing.latencies import read_latencies
from warehouse.importers.parsing.printed import printed_precision

_PARTS = frozenset({"benchmark", "model", "metric"})


def _recognises(document: Document) -> bool:
    found = document.first_object
    return found.keys() >= _PARTS and all(isinstance(found[name], dict) for name in _PARTS)


def _read(document: Document, this: Format) -> Iterator[Claim]:
    jobs: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for place, record in document.objects:
        jobs.setdefault(_job(record), []).append((place, record))
    for records in jobs.values():
        first, last = records[0][0], records[-1][0]
        place = first if first == last else f"{first} to {last}"
        yield _claim(document, this, place, [record for _, record in records])


def _job(record: Mapping[str, Any]) -> str:
    """Equal for records of one job and one configuration."""
    same = (record.get("workflow_id"), record.get("job_id"), record.get("model"), record.get("benchmark"))
    return json.dumps(same, sort_keys=True, default=str)


def _claim(document: Document, this: Format, place: str, records: list[Mapping[str, Any]]) -> Claim:
    first = records[0]
    where = f"{document.name} {place}".rstrip()
    metrics = Fields(dict(_values(records)), where)
    args = Fields(_part(first, "benchmark", "extra_info", "args"), where)
    benchmark, model = Fields(_part(first, "benchmark"), where), Fields(_part(first, "model"), where)
    about, runner = Fields(_part(first, "model", "extra_info"), where), Fields(_runner(first), where)
    name = model.text("name")
    asked = ClaimedConfig(
        model=name,
        precision=printed_precision(benchmark.text("dtype")),
        gpu=runner.text("gpu_info"),
        gpu_count=runner.integer("gpu_count") or None,
        engine=about.text("engine"),
        engine_version=about.text("engine_version"),
        **_load(args),  # type: ignore[arg-type]  # of their fields' types
    )
    said = ClaimedTotals(
        request_throughput_per_s=metrics.positive("requests_per_second"),
        output_throughput_tok_per_s=metrics.positive("output_tokens_per_second"),
        total_throughput_tok_per_s=metrics.positive("tokens_per_second"),
    )
    latency_s = read_latencies(metrics)
    return Claim(
        lineage=this.lineage(document, place, benchmark.text("name")),
        asked=asked,
        said=said,
        latency_s=latency_s,
        label=" ".join(filter(None, (name, args.text("scenario")))),
        remarks=tuple(remark for part in (metrics, args, runner) for remark in part.remarks),
        unread={**metrics.unread(), **args.unread("args.")},
        required=this.required,
    )


def _load(args: Fields) -> Mapping[str, float | None]:
    return {
        "isl": args.number("input_len"),
        "osl": args.number("output_len"),
        "concurrency": args.integer("max_concurrency"),
        "request_rate_per_s": args.number("request_rate"),
        "request_count": args.integer("num_prompts"),
        "tp_size": args.integer("tp_size", "tensor_parallel_size"),
        "pp_size": args.integer("pp_size", "pipeline_parallel_size"),
        "dp_size": args.integer("dp_size", "data_parallel_size"),
    }


def _values(records: list[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Each metric with its first value: several are repeats, of which a record names no statistic."""
    for record in records:
        metric = _part(record, "metric")
        values = metric.get("benchmark_values")
        if isinstance(metric.get("name"), str) and isinstance(values, list) and values:
            yield metric["name"], values[0]


def _runner(record: Mapping[str, Any]) -> Mapping[str, Any]:
    runners = record.get("runners")
    first = runners[0] if isinstance(runners, list) and runners else None
    return first if isinstance(first, dict) else {}


def _part(record: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    value: Any = record
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


FORMAT = Format("pytorch", 1, _recognises, _read, frozenset({"failed_not_zero"}))
