"""MLPerf's `summary_results.json` and `summary.csv`: one row per result.

Rows of the 99 and 99.9 % targets belong to one run.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals
from bench.errors import UnreadableResultError
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.printed import printed_precision
from warehouse.importers.parsing.tree import Tree
from warehouse.importers.parsing.units import REQUEST_RATE

_TARGET = re.compile(r"-99(?:\.9)?$")
# What the submission checker calls a column of its CSV, and the list of results of a round.
CSV_NAMES = {
    "Organization": "Submitter",
    "Division": "Category",
    "SystemType": "Suite",
    "SystemName": "System",
    "MlperfModel": "UsedModel",
    "number_of_nodes": "Nodes",
    "accelerator_model_name": "Accelerator",
    "accelerators_per_node": "a#",
    "framework": "Software",
    "Result": "Performance_Result",
    "Units": "Performance_Units",
}
_SAME = ("ID", "Submitter", "System", "Scenario", "Performance_Result", "Performance_Units", "Suite", "Category")


def read_rows(document: Document, form: Format) -> Iterator[Claim]:
    """One claim per run, in file order; a repeated accuracy target is named in the location of the first."""
    rows = document.json
    if not isinstance(rows, list):
        raise UnreadableResultError(f"{document.name} is not a list of results")
    yield from _claims(document, form, rows, [f"[{at}]" for at in range(len(rows))])


def read_csv(document: Document, form: Format) -> Iterator[Claim]:
    """As `read_rows`, of the CSV that the submission checker writes."""
    rows = [{CSV_NAMES.get(name, name): cell for name, cell in row.items() if cell} for row in document.table]
    yield from _claims(document, form, rows, [f"line {line}" for line, _ in document.numbered_table])


def _claims(document: Document, form: Format, rows: Sequence[Any], places_of: Sequence[str]) -> Iterator[Claim]:
    places: dict[tuple[str, ...], list[int]] = {}
    for at, row in enumerate(rows):
        places.setdefault(_run(row, at), []).append(at)
    for repeated in places.values():
        place = " and ".join(places_of[at] for at in repeated)
        row = rows[repeated[0]]
        one = Tree(row if isinstance(row, dict) else {}, f"{document.name} {place}")
        if not isinstance(row, dict):
            one.remark("unreadable_value", "it is not an object, so nothing of it is read")
        yield _claim(document, form, place, one)


def _run(row: Any, at: int) -> tuple[str, ...]:
    """The key of a run: its row without the accuracy target in the model name."""
    if not isinstance(row, dict) or not _TARGET.search(str(row.get("Model"))):
        return (str(at),)
    return (*(str(row.get(name)) for name in _SAME), _TARGET.sub("", str(row.get("Model"))))


def _claim(document: Document, form: Format, place: str, one: Tree) -> Claim:
    nodes, each = one.count("Nodes"), one.count("a#")
    model = one.text("Model")
    asked = ClaimedConfig(
        model=one.text("UsedModel") or (None if model is None else _TARGET.sub("", model)),
        precision=printed_precision(one.text("weight_data_types")),
        gpu=one.text("Accelerator"),
        gpu_count=nodes * each if nodes and each else None,
        engine=one.text("Software"),
    )
    return Claim(
        lineage=form.lineage(document, place, "mlperf", one.text("version", "Version")),
        asked=asked,
        said=_said(one),
        remarks=one.all_remarks(),
        label=" ".join(text for text in (one.text("Submitter"), model, one.text("Scenario")) if text),
        unread=one.all_unread(),
        required=form.required,
    )


def _said(one: Tree) -> ClaimedTotals:
    unit = (one.text("Performance_Units") or "").lower()
    value = one.positive("Performance_Result")
    if unit == "tokens/s":
        return ClaimedTotals(output_throughput_tok_per_s=value)
    if unit in REQUEST_RATE:
        return ClaimedTotals(request_throughput_per_s=value)
    if value is not None:
        one.remark("unit_unknown", f"Performance_Result has the unit {unit!r}; ignored")
    return ClaimedTotals()
