"""Summaries of `vllm bench sweep serve`: every run of a sweep, as a JSON list or as a CSV.

The runs' own folders hold separate results of `vllm bench serve`.
"""

import ast
import contextlib
import json
from collections.abc import Iterator, Mapping

from bench.audit.claim import Claim
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.parsing.fields import Fields
from warehouse.importers.vllm import serve


def _recognises(document: Document) -> bool:
    names = document.first_object if document.is_json_list else document.header()
    return all(name in names for name in serve.ALWAYS)


def _read(document: Document, this: Format) -> Iterator[Claim]:
    for place, values in _runs(document):
        yield serve.serve_claim(
            Fields(values, f"{document.name} {place}"), document, this, place, tool="vllm bench sweep serve"
        )


def _runs(document: Document) -> Iterator[tuple[str, Mapping[str, object]]]:
    if document.is_json_list:
        yield from document.objects
        return
    for line, row in document.numbered_table:
        # The unnamed first column is the row number.
        yield f"line {line}", {name: _value(cell) for name, cell in row.items() if name and cell}


def _value(cell: str) -> object:
    """The value of a cell; lists written as text are parsed."""
    if cell.startswith("["):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(cell)
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return ast.literal_eval(cell)  # texts as Python writes them, in single quotes
    return cell


FORMAT = Format("vllm-sweep", 3, _recognises, _read, serve.REQUIRED)
