"""Hold the sentences of a page against its tables: each ratio that is surely read is computed from their rows.

A ratio is recomputed from rows that differ in what the sentence compares and in nothing else. `Up to` is the largest
of several; any other has to lie between the least and the largest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.audit.claim import Claim, NotRead, Remark
from bench.audit.comparison import Ratio, compare
from catalog.read import read_names
from warehouse.importers.parsing.printed import engine_of, whole
from warehouse.importers.statements.grammar import Compared, compared, is_about_speed
from warehouse.importers.statements.prose import sentences

_SENTENCES_MAX = 200  # of one page
_LEAST = 0.01  # numbers of tables are rounded too
_RATES = ("throughput_tok_per_s", "per_gpu_tok_per_s", "request_throughput_per_s")


@dataclass(frozen=True)
class _Found:
    """Rows that differ in one term only, and the ratios of their numbers."""

    rows: tuple[Claim, ...]
    ratios: tuple[Ratio, ...]


def with_sentences(name: str, text: str, claims: Sequence[Claim]) -> list[Claim]:
    """The claims of a page's tables, with a remark for each sentence that they contradict, and those not read."""
    remarks: dict[int, list[Remark]] = {}
    unread: list[NotRead] = []
    about = [each for each in sentences(text) if is_about_speed(each[1])]
    for line, sentence in about[:_SENTENCES_MAX]:
        said = compared(sentence)
        found = said if isinstance(said, str) else _rows_of(said, claims)
        if isinstance(found, str) or isinstance(said, str):
            unread.append(NotRead("sentence", f"line {line}: {sentence}", "", str(found)))
            continue
        wrong = _contradiction(said, found)
        if wrong is not None:
            at = next(at for at, claim in enumerate(claims) if claim is found.rows[0])
            text_of = f"{name} line {line}: {sentence!r}: {wrong}"
            remarks.setdefault(at, []).append(Remark("table_arithmetic", text_of))
    told = [replace(each, remarks=(*each.remarks, *remarks.get(at, ()))) for at, each in enumerate(claims)]
    return [replace(told[0], not_read=(*told[0].not_read, *unread)), *told[1:]] if unread and told else told


def _rows_of(said: Compared, claims: Sequence[Claim]) -> _Found | str:
    usable = [claim for claim in claims if _has_load(claim, said)]
    for term in ("gpu", "engine", "precision"):
        values = {value for claim in usable if (value := getattr(claim.asked, term)) is not None}
        first, second = (_named(term, side, values) for side in (said.first, said.second))
        if first and second and first != second:
            sides = [[claim for claim in usable if getattr(claim.asked, term) == value] for value in (second, first)]
            pairs = [each for each in compare(*sides) if [other.term for other in each.differences] == [term]]
            ratios = tuple(ratio for each in pairs for ratio in each.ratios if _is_of(ratio.number, said))
            if len({ratio.number for ratio in ratios}) == 1:
                return _Found(tuple(each.second for each in pairs), ratios)
            return (
                "its rows differ in more than what it compares"
                if not ratios
                else "the tables have several such metrics"
            )
    return "it names no two configurations of the tables"


def _named(term: str, text: str, values: set[str]) -> str | None:
    """The one of these values that a half of a sentence names; None if it names none or several."""
    names = read_names()
    words = {word.strip(".,;:()'\"").lower() for word in text.split()}
    if term == "gpu":
        said = names.gpu_in(text)
        own = {each.gpu for each in names.gpus_called(said)} if said else set()
        found = [value for value in values if own and own == {each.gpu for each in names.gpus_called(value)}]
    elif term == "engine":
        found = [value for value in values if any(engine_of(word) == value for word in words)]
    else:
        found = [value for value in values if value.lower() in words]
    return found[0] if len(found) == 1 else None


def _has_load(claim: Claim, said: Compared) -> bool:
    return all(getattr(claim.asked, name) == whole(value) for name, value in said.stated.items())


def _is_of(number: str, said: Compared) -> bool:
    return number.endswith(_RATES) if said.metric == "rate" else number.startswith(f"{said.metric}_")


def _contradiction(said: Compared, found: _Found) -> str | None:
    """Why the rows do not allow the stated ratio; None if they do."""
    values = [ratio.times for ratio in found.ratios]
    loose = max(said.half, _LEAST * said.times)
    least, most = min(values), max(values)
    decisive = (least if said.times < 1 else most) if said.is_most else None
    if decisive is not None:
        is_beyond = said.times < decisive - loose if said.times < 1 else said.times > decisive + loose
    else:
        is_beyond = not least - loose <= said.times <= most + loose
    if not is_beyond:
        return None
    nearest = min(found.ratios, key=lambda each: abs(each.times - said.times))
    many = f", the nearest of {len(values)}" if len(values) > 1 else ""
    return (
        f"{said.printed} is a ratio of {said.times:.4g}, and {nearest.number} is "
        f"{nearest.second:g} / {nearest.first:g} = {nearest.times:.4g}{many}"
    )
