"""Claims with what the text beside their numbers states: in the same part of a page, or in the log beside a result.

What a claim leaves open is filled in where all that the text states agrees. What the text contradicts is a pair, if
all rows state one value: of a sweep, a command can be that of one row only.
"""

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import replace

from bench.audit.claim import Claim, ClaimedConfig, Fact, Pair, ServerCounters
from bench.errors import NightbenchError
from catalog.read import read_names
from warehouse.importers.parsing.document import Document, read_document
from warehouse.importers.statements.commands import commands, images
from warehouse.importers.statements.logs import captures, logs
from warehouse.importers.statements.prose import without_tags
from warehouse.importers.statements.recompute import with_sentences
from warehouse.importers.statements.stated import TEXT_MAX, Stated
from warehouse.importers.tables.report import is_fence
from warehouse.importers.tables.workbook import is_workbook

_BESIDE = (".log", ".txt", ".sh")
_SNIFFED_MAX = 16
_HEADING = re.compile(r"^ {0,3}#{1,6}\s|<h[1-6][\s>]", re.IGNORECASE)
_LINE = re.compile(r"\bline (\d+)")
_FIELDS = frozenset(each.name for each in fields_of(ClaimedConfig))
_WHAT: Mapping[str, Fact] = {
    "engine_version": "engine_version",
    "engine": "engine_mode",
    "attention_backend": "engine_mode",
    "gpu": "label",
    "model": "label",
    "gpu_count": "label",
}
_Facts = Mapping[str, Stated]


def stated_in(text: str) -> list[Stated]:
    """All that a text states."""
    if len(text) > TEXT_MAX:
        return []
    return [*commands(text), *images(text), *logs(text), *captures(text)]


def with_statements(document: Document, claims: Iterator[Claim]) -> Iterator[Claim]:
    """The claims of a file with what the text around its tables, or the one log beside it, states."""
    if document.data.lstrip()[:1] in (b"{", b"[") or not _is_page(document):
        beside = _of_log_beside(document)
        yield from _joined(list(claims), beside) if beside else claims
        return
    if len(document.text) > TEXT_MAX:
        yield from claims
        return
    yield from with_sentences(document.name, document.text, list(_of_parts(document, claims)))


def _of_parts(document: Document, claims: Iterator[Claim]) -> Iterator[Claim]:
    """The claims with what the same part of the page states."""
    found = stated_in(without_tags(document.text))
    if not found:
        yield from claims
        return
    starts = list(_headings(document.text))
    parts: dict[int, list[Stated]] = defaultdict(list)
    for each in found:
        parts[_part(starts, each.where)].append(each)
    read = list(claims)
    grouped: dict[int, list[int]] = defaultdict(list)
    for at, claim in enumerate(read):
        grouped[_part(starts, claim.lineage.place)].append(at)
    for part, own in grouped.items():
        for at, claim in zip(own, _joined([read[at] for at in own], parts.get(part, [])), strict=True):
            read[at] = claim
    yield from read


def _headings(text: str) -> Iterator[int]:
    """The lines with a heading; `# a remark` in a block of code is none."""
    is_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if is_fence(line):
            is_code = not is_code
        elif not is_code and _HEADING.search(line):
            yield number


def _is_page(document: Document) -> bool:
    """Whether words stand around the tables of a text; the sheets of a workbook have titles only."""
    if is_workbook(document.data):
        return False
    try:
        return any(table.caption or table.heading for table in document.tables)
    except NightbenchError:
        return False


def _part(starts: Sequence[int], place: str) -> int:
    """Which part of a page a place is in, by the headings above it."""
    line = _LINE.search(place)
    return bisect(starts, int(line[1])) if line else -1


def _of_log_beside(document: Document) -> list[Stated]:
    """What the file with the same stem states, or the only one in the folder that states anything."""
    names = [name for name in document.siblings if name.endswith(_BESIDE) and name != document.path.name]
    own = [name for name in names if name.startswith(f"{document.path.name.split('.')[0]}.")]
    for group in (own, names):
        texts = [_text(document, name) for name in group[:_SNIFFED_MAX]]
        found = [facts for text in texts if (facts := stated_in(text))]
        if len(found) == 1 and len(group) <= _SNIFFED_MAX:
            return found[0]
    return []


def _text(document: Document, name: str) -> str:
    data = document.sibling(name)
    try:
        return "" if data is None or len(data) > TEXT_MAX else read_document(name, data).text
    except NightbenchError:
        return ""


def _joined(claims: Sequence[Claim], stated: Sequence[Stated]) -> Iterator[Claim]:
    for claim in claims:
        facts = _agreed(stated, claim.asked.engine)
        yield _with(claim, facts, _varied(claims)) if facts else claim


def _agreed(stated: Sequence[Stated], engine: str | None) -> _Facts:
    """The facts on which everything agrees that states them; of several engines only those of the claim's."""
    engines = {each.where: each.value for each in stated if each.field == "engine"}
    usable = [each for each in stated if engine is None or engines.get(each.where, engine) == engine]
    values: dict[str, dict[object, Stated]] = defaultdict(dict)
    for each in usable if len({engines[each.where] for each in usable if each.where in engines}) <= 1 else []:
        values[each.field].setdefault(each.value, each)
    if engine is not None and engines and engine not in engines.values() and len(set(engines.values())) == 1:
        where = next(iter(engines))
        values["engine"] = {engines[where]: Stated("engine", engines[where], where)}
    return {field: next(iter(own.values())) for field, own in values.items() if len(own) == 1}


def _varied(claims: Sequence[Claim]) -> frozenset[str]:
    """The fields in which the rows differ."""
    return frozenset(name for name in _FIELDS if len({getattr(each.asked, name) for each in claims}) > 1)


def _with(claim: Claim, facts: _Facts, varied: frozenset[str]) -> Claim:
    filled = ClaimedConfig(**{name: fact.value for name, fact in facts.items() if name in _FIELDS})  # type: ignore[arg-type]  # each reader gives a field its type
    pairs = [pair for name, fact in facts.items() if name not in varied and (pair := _conflict(claim, fact))]
    preempted = facts.get("preemptions")
    server = claim.server
    if preempted is not None and server is None:
        server = ServerCounters(preemptions=float(str(preempted.value)))
    open_fields = {name for name in _FIELDS if getattr(claim.asked, name) is None and name not in varied}
    known = replace(filled, **dict.fromkeys(_FIELDS - open_fields))
    return replace(claim.with_context(known), pairs=(*claim.pairs, *pairs), server=server)


def _conflict(claim: Claim, fact: Stated) -> Pair | None:
    """The pair of what the claim and the text say, where they differ; whether they do, its rule decides."""
    claimed = getattr(claim.asked, fact.field, None) or claim.unread.get(fact.field)
    if claimed is None or isinstance(claimed, float) or _is_same(fact.field, str(claimed), str(fact.value)):
        return None
    return Pair(
        _WHAT.get(fact.field, "flag"), str(claimed), str(fact.value), f"{fact.field} in the result / {fact.where}"
    )


def _is_same(field: str, claimed: str, found: str) -> bool:
    names = read_names()
    if field == "gpu":
        one, other = names.gpus_called(claimed), names.gpus_called(found)
        return not one or not other or bool({each.gpu for each in one} & {each.gpu for each in other})
    if field == "model":
        first, second = names.model(claimed), names.model(found)
        return first is None or second is None or first == second
    return claimed.lower() == found.lower()
