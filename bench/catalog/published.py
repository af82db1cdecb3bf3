"""Published numbers and hourly list prices, which the audit of claims looks up."""

from dataclasses import dataclass
from typing import ClassVar

from bench.catalog.csv_rows import Above, Count, CsvRow, Day


@dataclass(frozen=True, kw_only=True)
class Published(CsvRow):
    """One published number as its source prints it: text throughout, since `~33`, `15-20` and `OOM` are printed too."""

    KEY: ClassVar = (
        *("source", "source_date", "url_or_title", "system", "gpu", "gpu_count", "provider", "model", "precision"),
        *("framework", "framework_version", "tp", "isl", "osl", "concurrency_or_batch", "num_prompts"),
        *("metric", "value", "unit", "notes"),
    )

    source_date: str  # YYYY, YYYY-MM or YYYY-MM-DD; `undated`
    url_or_title: str
    system: str | None
    gpu: str | None
    gpu_count: str | None
    provider: str | None
    model: str | None
    precision: str | None
    framework: str | None
    framework_version: str | None
    tp: str | None
    isl: str | None
    osl: str | None
    concurrency_or_batch: str | None
    num_prompts: str | None
    metric: str
    value: str
    unit: str
    notes: str | None


@dataclass(frozen=True, kw_only=True)
class PastPrice(CsvRow):
    """What an hour of a machine cost, on the days between which it was seen."""

    KEY: ClassVar = ("provider", "gpu", "gpu_count", "seen_from", "terms")

    provider: str
    gpu: str
    gpu_count: Count
    usd_per_hour: Above  # of the whole machine
    seen_from: Day
    seen_until: Day
    terms: str | None  # None: on demand, for anybody
