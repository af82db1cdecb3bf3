"""The twin of a table of published numbers: `python -m tests.data.formats.claims_table.make` writes it again."""

import csv
import io
from pathlib import Path

COLUMNS = [
    "source",
    "source_date",
    "url_or_title",
    "system",
    "gpu",
    "gpu_count",
    "provider",
    "model",
    "precision",
    "framework",
    "framework_version",
    "tp",
    "isl",
    "osl",
    "concurrency_or_batch",
    "num_prompts",
    "metric",
    "value",
    "unit",
    "notes",
]
SAME = {
    "source": "a report",
    "source_date": "2026-02",
    "url_or_title": "report.md",
    "system": "one host",
    "gpu": "AMD Instinct MI300X 192GB",
    "gpu_count": "1",
    "model": "meta-llama/Llama-3.3-70B-Instruct",
    "precision": "FP8 (--quantization fp8)",
    "framework": "vLLM",
    "framework_version": "0.9.2 (ROCm 7.0.0)",
    "tp": "1",
    "notes": "mean of 3 runs",
}


def rows() -> list[dict[str, str]]:
    one = {**SAME, "isl": "128", "osl": "2048", "concurrency_or_batch": "1", "num_prompts": "30"}
    four = {**one, "concurrency_or_batch": "4", "num_prompts": "120"}
    return [
        {**one, "metric": "output_throughput", "value": "33.1", "unit": "tok/s"},
        {**one, "metric": "mean_ttft_ms", "value": "61.5", "unit": "ms"},
        {**four, "metric": "output_throughput", "value": "~124", "unit": "tok/s"},
        {**SAME, "metric": "memory_model_weights", "value": "~70", "unit": "GB", "notes": "table of memory"},
        {**SAME, "framework": "vLLM v0.9.1", "framework_version": "", "metric": "output_throughput", "value": "15-20",
         "unit": "tok/s", "notes": "'Expected'"},
        {**SAME, "metric": "qualitative:software", "value": "A=Good | B=Better", "unit": "text", "notes": ""},
    ]  # fmt: skip


def files() -> dict[str, str]:
    """Every twin by its name."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows())
    return {"small.csv": out.getvalue()}


if __name__ == "__main__":
    for name, text in files().items():
        Path(__file__).with_name(name).write_text(text)
