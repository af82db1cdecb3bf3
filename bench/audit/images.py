"""Whether the server read every image that it was sent, by its counters of the cache of decoded images."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench import evidence_columns as ev
from bench.audit.rules import Evidence
from bench.loadgen.report import LoadReport
from bench.metrics import ratio
from bench.record import RunRecord


@dataclass(frozen=True)
class Images:
    """How many images the answered requests had, warm-up included, and what the counters show; None where they lack."""

    sent: int
    read: float | None  # looked up by the server: each image once, before it is decoded
    found: float | None  # of these, in its cache, so that they were not decoded

    @property
    def cache_hit_share(self) -> float | None:
        """Images out of the cache over those that the server read."""
        return ratio(self.found, self.read)


def images_of(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> Images | None:
    """The images of a run; None where its prompts have none."""
    of_each = record.asked.workload.prompts.images
    if of_each is None:
        return None
    answered = int(report.requests.is_ok.sum()) + (report.warmup_count or 0) - (report.warmup_failed_count or 0)
    counted = deltas or {}
    return Images(answered * of_each, counted.get("mm_cache_queries_total"), counted.get("mm_cache_hits_total"))


def image_evidence(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> Evidence:
    """Empty where the prompts have no images."""
    found = images_of(record, report, deltas)
    if found is None:
        return {}
    return {ev.IMAGES_READ_SHARE: ratio(found.read, found.sent), ev.IMAGE_CACHE_HIT_SHARE: found.cache_hit_share}
