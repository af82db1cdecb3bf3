"""Published figures beside scenarios: which one fits, whether it passes the audit, and which terms differ."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import catalog
from bench.catalog.published import Published
from bench.suite.scenario import Scenario
from catalog.read import find_gpu, find_model, precision_of, read_published
from warehouse.audit import AuditOptions, audit
from warehouse.importers.parsing.printed import read_quantity, whole
from warehouse.suite_report.measured import Measured

_LABEL = re.compile(r"row label '([^']+)'")
FIRST_LINE = 2  # of the table's data, below its header


@dataclass(frozen=True)
class Figure:
    """One published figure: as printed, its number (None: a range or no number), and its verdict in the audit."""

    row: Published
    number: float | None
    verdict: str


def find_figure(scenario: Scenario, sources: tuple[str, ...], metric: str) -> Figure | None:
    """The published figure of the same model, lengths and load; None where no source has one, or several do."""
    found = [one for one in _figures(sources, metric) if _is_of(one.row, scenario)]
    return found[0] if len(found) == 1 else None


def differing_terms(figure: Figure, scenario: Scenario, measured: Measured) -> Iterator[str]:
    """The terms under which ours and the published figure differ, each with both values.

    A comparison needs the same model, precision, GPUs and lengths; a term that one side does not state is unknown.
    """
    row = figure.row
    gpus = measured.fact("gpus") or []
    pairs = {
        "model": (_model_of(row), _model(str(measured.fact("model_source") or "").removeprefix("hf:"))),
        "precision": (precision_of(row.precision or ""), measured.fact("precision")),
        "GPU": (_gpu(row.gpu), _gpu(gpus[0]) if gpus else "none"),
        "GPU count": (whole(row.gpu_count or ""), measured.fact("gpu_count") if gpus else 0),
        "isl": (whole(row.isl or ""), measured.fact("isl")),
        "osl": (whole(row.osl or ""), measured.fact("osl")),
        "load": (whole(row.concurrency_or_batch or ""), _load_of(scenario, measured)),
    }
    for name, (theirs, ours) in pairs.items():
        if theirs is not None and ours is not None and theirs != ours:
            yield f"{name}: {theirs} published, {ours} here"


def other_terms(figure: Figure, measured: Measured) -> Iterator[str]:
    """Terms that are listed and refuse nothing: a newer engine is what a night is run for."""
    theirs, ours = (
        figure.row.framework_version,
        measured.fact("engine_version_found") or measured.fact("driver_version"),
    )
    if theirs and ours and str(ours).split("+")[0] not in theirs:
        yield f"engine: {figure.row.framework} {theirs} published, {measured.fact('engine')} {ours} here"


def _load_of(scenario: Scenario, measured: Measured) -> int | None:
    """How many requests were in flight; of a batch, all."""
    is_batch = scenario.workload.arrivals == "batch"
    found = measured.fact("request_count" if is_batch else "concurrency_asked")
    return None if found is None else int(found)


def _is_of(row: Published, scenario: Scenario) -> bool:
    work = scenario.workload
    load = whole(row.concurrency_or_batch or "")
    return (
        (whole(row.isl or ""), whole(row.osl or "")) == (work.isl, work.osl)
        and load in (None, work.in_flight)
        and _model_of(row) in (None, _model(scenario.model.source.removeprefix("hf:").partition("@")[0]))
    )


def _model_of(row: Published) -> str | None:
    """The model of a figure: by the label of its row, where the source prints another model beside it."""
    label = _LABEL.search(row.notes or "")
    known = find_model(label[1]) if label is not None else None
    return known.model if known is not None else _model(row.model)


def _model(text: str | None) -> str | None:
    """The catalogue's name of a model, else the text itself."""
    name = (text or "").partition("@")[0]
    known = find_model(name) if name else None
    return known.model if known is not None else name or None


def _gpu(text: str | None) -> str | None:
    known = find_gpu(text) if text else None
    return known.gpu if known is not None else text


@cache
def _figures(sources: tuple[str, ...], metric: str) -> tuple[Figure, ...]:
    verdicts = _verdicts()
    return tuple(
        Figure(row, quantity.number if quantity is not None else None, verdicts.get(line, "not audited"))
        for line, row in enumerate(read_published(), FIRST_LINE)
        if row.source in sources and row.metric == metric
        for quantity in [read_quantity(row.value)]
    )


@cache
def _verdicts() -> Mapping[int, str]:
    """The verdict of each line of the catalogue's published figures, by the audit that every claim gets."""
    file = Path(catalog.__file__).with_name("published.csv")
    found: dict[int, str] = {}
    for one in audit([str(file)], AuditOptions()).judged:
        found |= {int(line): one.verdict for line in re.findall(r"\d+", one.claim.lineage.place)}
    return found
