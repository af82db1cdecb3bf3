"""The NVIDIA-format report as JSON and as CSV.

Its throughput is of output tokens. Concurrency, scenario and run are in columns of our own: without them, rows could
not be compared or distinguished.
"""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from warehouse.exporters.exporter import Exporter
from warehouse.exporters.measurement import Measurement, known

COLUMNS = (
    "Model", "PP", "TP", "Input Length", "Output Length", "Throughput", "GPU", "Server", "Precision", "Framework",
    "Concurrency", "Scenario", "Run", "Reason",
)  # fmt: skip


def lacking(one: Measurement) -> str | None:
    """The reason why the format cannot represent this measurement; None if it can."""
    is_told = one["output_throughput_tok_per_s"] or _reason(one)
    return None if is_told else "the output token throughput is unknown"


def _reason(one: Measurement) -> str | None:
    """Why a run failed; None of one that was measured."""
    if one["outcome"] == "measured" and one["verdict"] != "failed":
        return None
    return str(one["reason"] or one["verdict"])


def json_files(measurements: Sequence[Measurement]) -> dict[str, str]:
    """One report per model and machine type, since its metadata names only one."""
    grouped: dict[tuple[Any, ...], list[Measurement]] = {}
    for one in measurements:
        grouped.setdefault((one["model"], one.gpu, one["host"], one["precision"], one.framework), []).append(one)
    reports = [json.dumps(_report(group), indent=2) + "\n" for group in grouped.values()]
    if len(reports) == 1:
        return {"report.json": reports[0]}
    return {f"report-{number}.json": text for number, text in enumerate(reports, start=1)}


def _report(group: Sequence[Measurement]) -> dict[str, Any]:
    first = group[0]
    started = first["started_at"]
    metadata = {
        "timestamp": started.isoformat() if started else None,
        "model": first["model"],
        "gpu": _gpu(first) if len({one.gpu_count for one in group}) == 1 else first.gpu,
        "server": first["host"],
        "precision": first["precision"],
        "framework": first.framework,
    }
    return {"metadata": known(metadata), "benchmarks": [_benchmark(one) for one in group]}


def _benchmark(one: Measurement) -> dict[str, Any]:
    rate = one["output_throughput_tok_per_s"] if _reason(one) is None else None
    latency = one.latencies_ms("e2el").get("mean")
    return known(
        {
            "input_length": one["isl"],
            "output_length": one["osl"],
            "throughput_tokens_per_sec": rate,
            "pp": one.parallel["pp"],
            "tp": one.parallel["tp"],
            "concurrency": one["concurrency_asked"],
            "scenario": one["scenario"],
            "run": one["run_id"],
            "avg_latency_sec": latency / 1e3 if latency is not None else None,
            "successful_requests": one["completed"],
            "failed_requests": one["failed"],
            "wall_time_sec": one["duration_s"],
            "total_tokens": one["total_output_tokens"],
            "error": _reason(one),
        }
    )


def csv_files(measurements: Sequence[Measurement]) -> dict[str, str]:
    """One table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(["" if cell is None else cell for cell in _cells(one)] for one in measurements)
    return {"report.csv": out.getvalue()}


def _cells(one: Measurement) -> tuple[Any, ...]:
    sizes = one.parallel
    reason = _reason(one)
    rate = "N/A" if reason else f"{one['output_throughput_tok_per_s']!r} output tokens/sec"
    asked = (one["isl"], one["osl"], rate, _gpu(one), one["host"], one["precision"], one.framework)
    return (
        one["model"],
        sizes["pp"],
        sizes["tp"],
        *asked,
        one["concurrency_asked"],
        one["scenario"],
        one["run_id"],
        reason,
    )


def _gpu(one: Measurement) -> str | None:
    return f"{one.gpu_count}x {one.gpu}" if one.gpu else None


JSON_EXPORTER = Exporter("nvidia-json", json_files, lacking, takes_failed=True)
CSV_EXPORTER = Exporter("nvidia-csv", csv_files, lacking, takes_failed=True)
