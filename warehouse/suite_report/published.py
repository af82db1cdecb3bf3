"""Published figures beside scenarios: which one fits, whether it passes the audit, and which terms differ."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from bench.catalog.published import Published
from bench.errors import UsageError
from bench.suite.report import INCOMPARABLE, METRIC, ReportTable
from bench.suite.scenario import Scenario
from catalog.read import find_gpu, find_model, precision_of, read_published
from warehouse.importers.parsing.printed import whole
from warehouse.suite_report.measured import Measured, Value
from warehouse.views import read_audited

_LABEL = re.compile(r"row label '([^']+)'")
FIRST_LINE = 2  # of the table's data, below its header
BESIDE = ("published", "published_verdict", "ratio", "ratio_low", "ratio_high")


@dataclass(frozen=True)
class Figure:
    """One published figure: as printed, its number (None: a range or no number), and its verdict in the audit.

    A figure is `rejected` where the audit withdraws it, even if the rest of its claim is accepted.
    """

    row: Published
    number: float | None
    verdict: str | None  # None: not audited


def find_figure(scenario: Scenario, sources: tuple[str, ...], metric: str) -> Figure | None:
    """The published figure of the same model, lengths and load; None where no source has one, or several do."""
    found = [one for one in _figures(sources, metric) if _is_of(one.row, scenario)]
    return found[0] if len(found) == 1 else None


def named_figure(table: ReportTable, row: str, sources: tuple[str, ...]) -> tuple[Figure | None, tuple[str, ...]]:
    """The published figure that a table names for one of its rows, and why a ratio to it means nothing.

    A name that fits no figure, or several, is such a reason: it costs its own row, and not the report.
    """
    columns = table.figures.get(row)
    if columns is None:
        return None, ()
    others = {name: text for name, text in columns.items() if name not in {METRIC, INCOMPARABLE}}
    why = tuple(text for name, text in columns.items() if name == INCOMPARABLE)
    try:
        return figure_of_columns(others, sources, columns.get(METRIC) or str(table.published)), why
    except UsageError as error:
        return None, (*why, str(error))


def figure_of_columns(columns: Mapping[str, str], sources: tuple[str, ...], metric: str) -> Figure:
    """The one published figure that has these columns of catalog/published.csv; UsageError for none or several."""
    found = [one for one in _figures(sources, metric) if columns.items() <= asdict(one.row).items()]
    if len(found) != 1:
        raise UsageError(f"report: {len(found)} published figures of {metric} have {dict(columns)}: name exactly one")
    return found[0]


def differing_terms(figure: Figure, scenario: Scenario, measured: Measured) -> Iterator[str]:
    """The terms under which ours and the published figure differ, each with both values.

    A comparison needs the same model, precision, GPUs and lengths; a term that one side does not state is unknown. A
    figure that states none of them is compared with nothing.
    """
    pairs = _terms(figure, scenario, measured)
    if all(theirs is None for theirs, _ours in pairs.values()):
        yield "the source states no terms"
    yield from _unequal(pairs)


def unstated_terms(figure: Figure, scenario: Scenario, measured: Measured) -> tuple[str, ...]:
    """The terms that the source of a figure does not state, and that we know of ours."""
    pairs = _terms(figure, scenario, measured)
    return tuple(name for name, (theirs, ours) in pairs.items() if theirs is None and ours is not None)


def _terms(figure: Figure, scenario: Scenario, measured: Measured) -> dict[str, tuple[Any, Any]]:
    """Each term of a comparison: theirs, and ours."""
    row = figure.row
    return {
        "model": (model_of(row), _model(str(measured.fact("model_source") or "").removeprefix("hf:"))),
        "precision": (precision_of(row.precision or ""), measured.fact("precision")),
        **_gpus(figure, measured),
        "isl": (whole(row.isl or ""), measured.fact("isl")),
        "osl": (whole(row.osl or ""), measured.fact("osl")),
        "load": (whole(row.concurrency_or_batch or ""), _load_of(scenario, measured)),
    }


def differing_terms_of_command(figure: Figure, measured: Measured, unit: str) -> Iterator[str]:
    """The same of a command: what it computes is stated by whoever names the figure, so GPUs and units remain."""
    return _unequal({**_gpus(figure, measured), "unit": (figure.row.unit, unit)})


def _gpus(figure: Figure, measured: Measured) -> dict[str, tuple[Any, Any]]:
    """The GPUs of both sides."""
    row, gpus = figure.row, measured.fact("gpus") or []
    return {
        "GPU": (gpu_name(row.gpu), gpu_name(gpus[0]) if gpus else "none"),
        "GPU count": (whole(row.gpu_count or ""), measured.fact("gpu_count") if gpus else 0),
    }


def _unequal(pairs: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
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


def beside(
    figure: Figure | None,
    ours: Value,
    different: tuple[str, ...],
    measured: Measured,
    scale: float,
    unstated: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The published figure, its verdict and our ratio to it; no ratio where the terms differ, which are named.

    The interval of the ratio is that of ours: no source states its own. Terms that the source leaves out are named too.
    """
    if figure is None:
        return dict.fromkeys(BESIDE) | {"terms": "; ".join(different) or "no published figure"}
    theirs = None if figure.number is None else figure.number * scale
    is_comparable = ours.mean is not None and theirs and not different
    ratios = [one / theirs if is_comparable and theirs and one is not None else None for one in ours.ends]
    known = [*(["not compared"] if different else []), *different]
    known += other_terms(figure, measured) if ours.mean is not None else ()
    said = "; ".join(known) or ("equal as far as stated" if is_comparable else _why_not(figure, ours))
    return {
        "published": f"{figure.row.value} {figure.row.unit}",
        "published_verdict": figure.verdict,
        **dict(zip(("ratio", "ratio_low", "ratio_high"), ratios, strict=True)),
        "terms": "; ".join([said, *([f"not stated there: {', '.join(unstated)}"] if unstated else [])]),
    }


def _why_not(figure: Figure, ours: Value) -> str:
    """Why a figure with equal terms has no ratio."""
    if ours.mean is None:
        return "not compared: the night has no value"
    return f"not compared: {figure.row.value!r} is printed, which is not one number"


def beside_row(
    table: ReportTable,
    row: str,
    sources: tuple[str, ...],
    ours: Value,
    terms: tuple[str, ...] = (),
    printed: Figure | None = None,
) -> dict[str, Any]:
    """The published figure that a table names for a row other than a scenario; `terms` are those that differ.

    Such a row is computed, or is of several scenarios. `printed` is its figure where the report itself holds it. {} for
    a table without figures.
    """
    if not (table.figures or table.printed):
        return {}
    figure, why = (printed, ()) if printed else named_figure(table, row, sources)
    return beside(figure, ours, (*why, *(terms if figure else ())), Measured("accepted"), table.published_scale)


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
        and model_of(row) in (None, _model(scenario.model.source.removeprefix("hf:").partition("@")[0]))
    )


def model_of(row: Published) -> str | None:
    """The model of a figure: by the label of its row, where the source prints another model beside it."""
    label = _LABEL.search(row.notes or "")
    known = find_model(label[1]) if label is not None else None
    return known.model if known is not None else _model(row.model)


def _model(text: str | None) -> str | None:
    """The catalogue's name of a model, else the text itself."""
    name = (text or "").partition("@")[0]
    known = find_model(name) if name else None
    return known.model if known is not None else name or None


def gpu_name(text: str | None) -> str | None:
    """The catalogue's name of a GPU, else the text itself."""
    known = find_gpu(text) if text else None
    return known.gpu if known is not None else text


@cache
def _figures(sources: tuple[str, ...], metric: str) -> tuple[Figure, ...]:
    judged = {int(row["line"]): row for row in read_audited()}
    return tuple(
        Figure(row, float(number) if (number := judged[line]["number"]) else None, judged[line]["verdict"])
        for line, row in enumerate(read_published(), FIRST_LINE)
        if row.source in sources and row.metric == metric
    )
