"""The files of one inference-perf run: they are in one folder, and each has facts that the others lack."""

import re
from collections.abc import Iterator

from bench.audit.claim import Remark
from bench.errors import UnreadableResultError
from warehouse.importers.parsing.document import Document, read_document
from warehouse.importers.parsing.tree import Tree

_STAGE = re.compile(r"(?P<prefix>.*)stage_(?P<number>\d+)_lifecycle_metrics\.json")
SUMMARY, REQUESTS = "summary_lifecycle_metrics.json", "per_request_lifecycle_metrics.json"
CONFIG = "config.yaml"


def stage_of(name: str) -> tuple[str, int] | None:
    """What stands before the name of a stage's file, and the stage's number; None for another file."""
    found = _STAGE.fullmatch(name)
    return None if found is None else (found["prefix"], int(found["number"]))


def stages_beside(document: Document, prefix: str) -> Iterator[str]:
    """The files of the stages of the run whose files have this prefix."""
    return (name for name in document.siblings if (stage := stage_of(name)) is not None and stage[0] == prefix)


def prefix_of(document: Document, name: str) -> str | None:
    """What stands before this name in the document's own; None where it has another name."""
    own = document.path.name
    return own.removesuffix(name) if own.endswith(name) else None


def config_beside(document: Document, prefix: str) -> tuple[Tree, tuple[Remark, ...]]:
    """The configuration of the run, its values as text; empty if it is missing, with a remark if it is broken."""
    name = f"{prefix}{CONFIG}"
    data = document.sibling(name)
    if data is None:
        return Tree({}, name), ()
    try:
        value = read_document(name, data).yaml
    except UnreadableResultError as error:
        return Tree({}, name), (Remark("unreadable_value", f"{error}; what it asks for is ignored"),)
    return Tree(value if isinstance(value, dict) else {}, name), ()
