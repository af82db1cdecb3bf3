"""guidellm's report in each of its forms, JSON, YAML and CSV, as one nested value: that of the JSON."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from bench.errors import UnreadableResultError
from warehouse.importers.guidellm.table import benchmarks_of_table, is_table
from warehouse.importers.parsing.document import Document

# In this order, of reports beside one another: the first has the requests, and CSV rounds its times to seconds.
SUFFIXES = (".json", ".yaml", ".yml", ".csv")
_WORDS: Mapping[str, Any] = {"null": None, "~": None, "": None, "true": True, "false": False}


def recognises(document: Document) -> bool:
    """Whether it is a report in one of the forms."""
    return _form(document) is not None


def report_of(document: Document) -> dict[str, Any]:
    """The whole report; raises UnreadableResultError if it is not an object or a cell is broken."""
    form = _form(document)
    value = None if form is None else form(document)
    if not isinstance(value, dict):
        raise UnreadableResultError(f"{document.name} is not a guidellm report: it is not an object")
    return value


def _form(document: Document) -> Callable[[Document], Any] | None:
    if document.is_json_object:
        return (lambda one: one.json) if _has_metrics(document) else None
    if is_table(document.header()):
        return benchmarks_of_table
    if document.data.startswith((b"benchmarks:", b"args:")) and b"guidellm_version:" in document.data:
        return lambda one: _resolved(one.yaml)
    return None


def _has_metrics(document: Document) -> bool:
    if not document.has_keys("benchmarks"):
        return False
    benchmarks = document.json["benchmarks"]
    first = benchmarks[0] if isinstance(benchmarks, list) and benchmarks else None
    return isinstance(first, dict) and "metrics" in first and ("type_" in first or "run_stats" in first)


def _resolved(value: Any) -> Any:
    """Resolve the words of YAML that are not text, at any depth; numbers stay text, which every reader accepts."""
    if isinstance(value, dict):
        return {key: _resolved(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [_resolved(inside) for inside in value]
    return _WORDS.get(value, value)


def told_by(document: Document, report: Mapping[str, Any]) -> str | None:
    """A report of the same run in a fuller form beside this one; None if there is none."""
    own, benchmarks = document.path, report.get("benchmarks")
    ids = [run for run in map(_run_id, benchmarks if isinstance(benchmarks, list) else ()) if run]
    if not ids or own.suffix not in SUFFIXES:
        return None
    for suffix in SUFFIXES[: SUFFIXES.index(own.suffix)]:
        name = f"{own.stem}{suffix}"
        data = document.sibling(name)
        if data is not None and all(run.encode() in data for run in ids):
            return name
    return None


def _run_id(benchmark: Any) -> str | None:
    config = benchmark.get("config") if isinstance(benchmark, dict) else None
    found = config.get("id_") if isinstance(config, dict) else None
    return json.dumps(found).strip('"') if isinstance(found, str) else None
