"""The rows of the view `published`: catalog/published.csv in the catalogue's names, each with its verdict in the audit.

`python -m warehouse.suite_report.published_rows` rewrites warehouse/views/published.csv, which the view holds: the
audit of all of them takes too long for each query.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import catalog
from bench.audit.judge import Judged
from catalog.read import precision_of, read_published
from warehouse.audit import AuditOptions, audit
from warehouse.importers.parsing.printed import read_quantity, whole
from warehouse.suite_report.published import FIRST_LINE, gpu_name, model_of
from warehouse.views import PUBLISHED, PUBLISHED_FILE

SEEDS = Path(catalog.__file__).with_name("published.csv")


def published_csv() -> str:
    """The text of the file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, PUBLISHED, lineterminator="\n")
    writer.writeheader()
    writer.writerows(published_rows())
    return text.getvalue()


def published_rows() -> Iterator[dict[str, Any]]:
    """One row for each published figure; None where its source says nothing."""
    verdicts = _verdicts()
    for line, row in enumerate(read_published(), FIRST_LINE):
        quantity = read_quantity(row.value)
        yield {
            "line": line,
            "source": row.source,
            "source_date": row.source_date,
            "model": model_of(row),
            "precision": precision_of(row.precision or "") or row.precision,
            "gpu": gpu_name(row.gpu),
            "gpu_count": whole(row.gpu_count or ""),
            "framework": row.framework,
            "framework_version": row.framework_version,
            "isl": whole(row.isl or ""),
            "osl": whole(row.osl or ""),
            "load": whole(row.concurrency_or_batch or ""),
            "metric": row.metric,
            "value": row.value,
            "number": None if quantity is None else quantity.number,
            "unit": row.unit,
            "verdict": verdicts[line],
            "notes": row.notes,
        }


def _verdicts() -> Mapping[int, str]:
    """The verdict of each line by the audit that every claim gets."""
    metric_of = dict(enumerate((row.metric for row in read_published()), FIRST_LINE))
    return {one.line: one.verdict for one in judged_lines(SEEDS, metric_of)}


@dataclass(frozen=True)
class JudgedLine:
    """A line of a table with one number a line; its verdict is that of its claim, or rejected where it is withdrawn."""

    line: int
    verdict: str
    claim: Judged


def judged_lines(file: Path, metric_of: Mapping[int, str]) -> Iterator[JudgedLine]:
    """Every line of such a table, audited bare; `metric_of` has its metrics by line."""
    for one in audit([str(file)], AuditOptions()).judged:
        for line in _lines(one.claim.lineage.place):
            is_withdrawn = metric_of[line].startswith(one.withdrawn)
            yield JudgedLine(line, "rejected" if is_withdrawn else one.verdict, one)


def _lines(place: str) -> Iterator[int]:
    """3, 4 and 5 of `lines 3-5`."""
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", place):
        yield from range(int(first), int(last or first) + 1)


if __name__ == "__main__":
    PUBLISHED_FILE.write_text(published_csv(), encoding="utf-8")
