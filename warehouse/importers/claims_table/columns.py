"""The columns of a claims table, by any header that catalog/spellings.csv lists."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.audit.claim import NotRead
from warehouse.importers.claims_table.vocabulary import column_of, nearest

# What each column holds; docs/reference/claims-table.md prints this.
COLUMNS: Mapping[str, str] = {
    "metric": "name of the number; required",
    "value": "the number as printed; required",
    "unit": "its unit; empty if the name states it",
    "notes": "text; words such as `expected` and `interpolated` state how the number came about",
    "source": "who printed it",
    "source_date": "when: YYYY, YYYY-MM or YYYY-MM-DD",
    "url_or_title": "where; names the GPU and the model that no other column does",
    "system": "the machine in the source's words; names the GPU and the model where their columns are empty",
    "provider": "who rents it out",
    "model": "model, by its maker's name",
    "precision": "precision of the weights: bf16, fp8, int4",
    "kv_precision": "precision of the KV cache",
    "gpu": "GPU: MI300X, H100 SXM",
    "gpu_count": "number of GPUs of the whole system",
    "framework": "engine, with or without its version: vLLM v0.9.2",
    "framework_version": "version of the engine",
    "image": "container image, best with its digest",
    "tp": "tensor parallel size",
    "pp": "pipeline parallel size",
    "dp": "data parallel size",
    "ep": "expert parallel size",
    "max_model_len": "context length of the server, in tokens",
    "gpu_memory_utilization": "share of GPU memory that the engine may use: 0.9 or 90 %",
    "mode": "`offline` or `serving`",
    "isl": "input tokens per request, as requested",
    "osl": "output tokens per request, as requested",
    "observed_isl": "mean input tokens per request, as counted",
    "observed_osl": "mean output tokens per request, as counted",
    "concurrency": "requests in flight, or their cap",
    "batch": "size of one fixed batch",
    "concurrency_or_batch": "either of these; the metric tells which",
    "request_rate": "requests sent per second; `inf`: no limit",
    "num_prompts": "number of requests",
    "is_speculative": "whether speculative decoding is on, or its method",
    "spec_tokens_per_step": "mean tokens per step with speculative decoding",
    "prefix_caching": "whether prefix caching is on",
    "spread": "standard deviation of the value over repeats, in its unit or as `2 %`",
    "n": "number of repeats that the value is the mean of",
}
# They describe where a number is from; no rule reads them.
KEPT = frozenset({"source", "source_date", "url_or_title", "system", "provider"})


@dataclass(frozen=True)
class Header:
    """The columns of one table: our name of each header, and the headers that are not read."""

    columns: Mapping[str, str]
    others: Mapping[str, NotRead]

    def rename(self, row: Mapping[str, str]) -> dict[str, str]:
        """The cells of the known columns under our names."""
        return {name: row[header].strip() for header, name in self.columns.items()}

    def not_read(self, row: Mapping[str, str]) -> Iterator[NotRead]:
        """The cells of a row that stand under unknown headers."""
        for header, each in self.others.items():
            if row[header].strip():
                yield NotRead(each.what, each.name, row[header].strip(), each.why, each.nearest)


def read_header(names: Sequence[str]) -> Header:
    """What each header means; of two that mean the same, the first is read."""
    meanings = {name: column_of(name) for name in names}
    columns: dict[str, str] = {}
    others: dict[str, NotRead] = {}
    for name, means in meanings.items():
        if not means:
            others[name] = _other(name, "its name is not in catalog/spellings.csv")
        elif means[0] in columns.values():
            others[name] = _other(name, f"another column is {means[0]} already")
        else:
            columns[name] = means[0]
    return Header(columns, others)


def _other(name: str, why: str) -> NotRead:
    return NotRead("column", name, "", why, nearest(name, "column"))
