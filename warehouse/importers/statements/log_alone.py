"""An engine's log or a capture without a result: a claim without a number, or a part of the result beside it."""

from collections.abc import Iterator
from dataclasses import fields

from bench.audit.claim import Claim, ClaimedConfig
from bench.errors import NightbenchError, ToldBesideError
from warehouse.importers.format import Format
from warehouse.importers.parsing.document import Document
from warehouse.importers.statements.logs import captures, logs
from warehouse.importers.statements.stated import TEXT_MAX, Stated

_RESULTS = (".json", ".jsonl", ".csv", ".json.gz", ".csv.gz")
_FIELDS = frozenset(each.name for each in fields(ClaimedConfig))


def _stated(document: Document) -> list[Stated]:
    if len(document.data) > TEXT_MAX or document.data.lstrip()[:1] in (b"{", b"["):
        return []
    try:
        return [*logs(document.text), *captures(document.text)]
    except NightbenchError:
        return []


def _recognises(document: Document) -> bool:
    return bool(_stated(document))


def _read(document: Document, this: Format) -> Iterator[Claim]:
    result = next((name for name in document.siblings if name.endswith(_RESULTS)), None)
    if result is not None:
        raise ToldBesideError(f"{document.name} is a log or a capture, and is read with {result} beside it")
    found = {each.field: each.value for each in reversed(_stated(document)) if each.field in _FIELDS}
    yield Claim(this.lineage(document), ClaimedConfig(**found), label="log")  # type: ignore[arg-type]  # of their types


FORMAT = Format("log", 1, _recognises, _read)
