"""The memory budget of a table, recomputed: its sums, its weights and KV cache by the model, its memory by the card.

A number counts as right if one way of writing the budget gives it, in the printed unit or in the other of GB and GiB.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from bench.audit.claim import BudgetLine
from bench.catalog.precisions import GGUF_BYTES, WEIGHT_BYTES
from bench.catalog.rows import CatalogModel, Gpu
from bench.physics import GIB, checkpoint_bytes, kv_elements

Part = Literal["weights", "kv", "other", "used", "total", "free", "capacity"]
GB = 1e9
UNITS: Mapping[str, float] = {"GB": GB, "GiB": GIB, "MB": 1e6, "MiB": 2.0**20, "TB": 1e12, "TiB": 2.0**40, "%": 1.0}
_OTHER_UNIT = {"GB": "GiB", "GiB": "GB", "MB": "MiB", "MiB": "MB", "TB": "TiB", "TiB": "TB"}
_BASE = frozenset({"weights", "kv", "other"})
_PERCENT = 100.0
_SHARE = "%"
_EXACT = 1e-9
# Beyond what is printed: makers round memory and drivers keep some; checkpoints keep some tensors in 16 bits; tools
# count whole blocks of KV. The group size of 4-bit weights and the mix of a GGUF file are seldom stated.
_CARD_APART, _WEIGHTS_APART, _BLOCKS_APART, _KV_APART = 0.03, 0.05, 0.2, 0.02
_BITS_OF_BLOCKS = 0.6  # bytes a weight: below, scales take a share that depends on the group


@dataclass(frozen=True)
class Entry:
    """One number of a budget, as printed; `half` is half a unit of its last digit, `unit` is empty if not printed."""

    part: Part
    name: str
    number: float
    half: float
    unit: str
    key: str  # its name in the coverage

    @property
    def bytes(self) -> float:
        """In the printed unit; GB if none is."""
        return self.number * UNITS.get(self.unit, GB)

    @property
    def half_bytes(self) -> float:
        """What printing leaves open."""
        return self.half * UNITS.get(self.unit, GB)

    @property
    def printed(self) -> str:
        """The number with its unit."""
        return f"{self.number:g}{'' if self.unit == '%' else ' '}{self.unit}".strip()


@dataclass(frozen=True)
class Known:
    """What a table states beside its budget; several where a name may mean each of them, empty where unknown."""

    gpus: Sequence[Gpu] = ()
    counts: Sequence[int] = (1,)  # of GPUs that a number may be of
    model: CatalogModel | None = None
    named_params: float | None = None  # of the size in the model's name
    precisions: Sequence[str] = ()
    kv_bytes: Sequence[float] = ()  # of one element
    tokens: Sequence[float] = ()  # of one sequence
    sequences: float | None = None


@dataclass(frozen=True)
class _Way:
    """One way to get a number: the formula, its bytes (or percent), and how far off by rounding.

    `keys` are the other numbers of the budget that it is made of, in whose unit the number then is; `note` says under
    which reading of their units it holds.
    """

    formula: str
    bytes: float
    loose: float
    keys: tuple[str, ...] = ()
    note: str = ""


def lines_of(entries: Sequence[Entry], known: Known, *, is_complete: bool = True) -> Iterator[BudgetLine]:
    """Each number of a budget that can be recomputed, with the arithmetic.

    Without `is_complete`, a part of the budget has no number, so sums over the parts are left out.
    """
    for entry in entries:
        if entry.part == "weights":
            ways = list(_of_weights(known))
        elif entry.part == "kv":
            ways = list(_of_kv(known))
        elif entry.part == "capacity":
            ways = list(_of_card(known, _CARD_APART))
        elif entry.part == "free":
            ways = list(_of_free(entry, entries, known, is_complete=is_complete))
        elif entry.part in {"used", "total"}:
            ways = list(_of_sum(entry, entries, is_complete=is_complete))
            ways += list(_of_card(known, _CARD_APART)) if entry.part == "total" and ways else []
        else:
            ways = []
        if ways:
            yield _line(entry, ways)


def _of_weights(known: Known) -> Iterator[_Way]:
    for precision in known.precisions:
        nominal = 0.5 if WEIGHT_BYTES[precision] < _BITS_OF_BLOCKS else WEIGHT_BYTES[precision]
        is_rough = precision in GGUF_BYTES or WEIGHT_BYTES[precision] < _BITS_OF_BLOCKS
        apart = _BLOCKS_APART if is_rough else _WEIGHTS_APART
        by_count = [(params, f"{params / 1e9:.4g}e9") for params in _params(known)]
        sizes = [
            (f"{said} parameters x {nominal:g} bytes ({precision})", params * nominal) for params, said in by_count
        ]
        if known.model is not None:
            whole = checkpoint_bytes(known.model, precision)
            sizes.append((f"the {precision} checkpoint of {known.model.model}, embeddings in 16 bits", whole))
        for (said, size), count in product(sizes, known.counts):
            yield _Way(f"{said}{_over(count)}", size / count, apart * size / count)


def _params(known: Known) -> list[float]:
    """Of the catalogue, and those that the name says, where they are others."""
    own = float(known.model.params_total) if known.model else None
    named = known.named_params
    is_same = own is not None and named is not None and abs(named - own) <= _WEIGHTS_APART * own
    return [each for each in (own, None if is_same else named) if each]


def _of_kv(known: Known) -> Iterator[_Way]:
    if known.model is None or known.sequences is None:
        return
    for tokens in known.tokens:
        elements = kv_elements(known.model, tokens)
        for size in known.kv_bytes:
            for count in known.counts:
                held = elements * known.sequences * size / count
                formula = (
                    f"{elements / tokens:.6g} elements a token of {known.model.model} x {tokens:g} tokens x "
                    f"{known.sequences:g} sequences x {size:g} bytes{_over(count)}"
                )
                yield _Way(formula, held, _KV_APART * held)


def _of_card(known: Known, apart: float) -> Iterator[_Way]:
    for gpu in known.gpus:
        for count in known.counts:
            times = f"{count} x " if count > 1 else ""
            for size, unit in ((gpu.mem_gb_spec, "GB"), (gpu.mem_gib_device, "GiB"), (gpu.mem_gb_spec, "GiB")):
                held = count * size * UNITS[unit]
                yield _Way(f"{times}{size:g} {unit} of {gpu.gpu}", held, apart * held)


def _of_sum(entry: Entry, entries: Sequence[Entry], *, is_complete: bool) -> Iterator[_Way]:
    """All parts; those before the number; those since the last subtotal, alone or with it."""
    before = entries[: entries.index(entry)]
    base = [each for each in entries if each.part in _BASE]
    above = [each for each in before if each.part in _BASE]
    last = max((at for at, each in enumerate(before) if each.part == "used"), default=None)
    since = [] if last is None else [each for each in before[last + 1 :] if each.part in _BASE]
    groups = [base, above, since, [before[last], *since] if last is not None and since else []] if is_complete else []
    free = [each for each in entries if each.part == "free" and each.unit != _SHARE]
    used = [each for each in entries if each.part == "used"]
    if entry.part == "total" and free:
        groups += [[used[-1], *free]] if used else [[*base, *free]] if is_complete else []
    for group in groups:
        if len(group) > 1:
            yield from _sums(group, entry.unit)


def _of_free(entry: Entry, entries: Sequence[Entry], known: Known, *, is_complete: bool) -> Iterator[_Way]:
    """What is there, less what is used; as a share of it where the number is in percent."""
    unit = "" if entry.unit == _SHARE else entry.unit
    wholes = [each for each in entries if each.part == "capacity" or _is_whole(each, entries, is_complete=is_complete)]
    there = [way for each in wholes for way in _sums([each], unit)]
    takers = [[each] for each in entries if each.part in {"used", "total"}]
    base = [each for each in entries if each.part in _BASE]
    takers += [base] if base and is_complete else []
    taken_ways = [way for group in takers for way in _sums(group, unit)]
    for whole, taken in product(there or list(_of_card(known, _EXACT)), taken_ways):
        if whole.formula in taken.formula or (whole.keys and whole.note != taken.note):
            continue
        left, loose = whole.bytes - taken.bytes, whole.loose + taken.loose
        formula = f"{whole.formula} - ({taken.formula})"
        if entry.unit == _SHARE:
            share = _PERCENT * left / whole.bytes
            keys = (*whole.keys, *taken.keys)
            yield _Way(f"({formula}) / {whole.formula}", share, _PERCENT * loose / whole.bytes, keys)
        else:
            yield _Way(formula, left, loose, whole.keys and (*whole.keys, *taken.keys), taken.note)


def _is_whole(entry: Entry, entries: Sequence[Entry], *, is_complete: bool) -> bool:
    """Whether a total may be of the memory that is there: not if it is the sum of the parts."""
    if entry.part != "total":
        return False
    ways = list(_of_sum(entry, [each for each in entries if each.part != "free"], is_complete=is_complete))
    return not ways or _line(entry, ways).is_wrong


def _sums(entries: Sequence[Entry], unit: str) -> Iterator[_Way]:
    """The sum of these in their own units; if those differ, also with all of them in `unit`."""
    formula = " + ".join(f"{each.printed} ({each.name})" for each in entries)
    loose = sum(each.half_bytes for each in entries)
    keys = tuple(each.key for each in entries)
    yield _Way(formula, sum(each.bytes for each in entries), loose, keys)
    if unit and {each.unit for each in entries} != {unit}:
        plain = sum(each.number for each in entries) * UNITS[unit]
        yield _Way(formula, plain, loose, keys, f"; it fits if all are {unit}")


def _line(entry: Entry, ways: Sequence[_Way]) -> BudgetLine:
    """The first way that gives the number in its unit, else in the other; else the nearest."""
    units = _units(entry)
    for way, unit in sorted(product(ways, units), key=lambda tried: (bool(tried[0].note), units.index(tried[1]))):
        if _apart(entry, unit, way) > way.loose + entry.half * UNITS[unit] + _EXACT * abs(way.bytes):
            continue
        note = way.note or _unit_note(entry, unit, way)
        said = f"{entry.name} is {entry.printed}: {way.formula} = {_both(way.bytes, unit)}{note}"
        return BudgetLine(said, is_wrong=False, is_other_unit=bool(note), names=(entry.key, *way.keys))
    near = min(ways, key=lambda way: min(_apart(entry, unit, way) for unit in units))
    said = f"{entry.name} is {entry.printed}, but {near.formula} = {_both(near.bytes, entry.unit)}"
    return BudgetLine(said, is_wrong=True, is_other_unit=False, names=(entry.key, *near.keys))


def _unit_note(entry: Entry, unit: str, way: _Way) -> str:
    if entry.unit:
        return "" if unit == entry.unit else f"; it fits in {unit}, not in {entry.unit}"
    return "" if way.keys else f"; no unit is printed, {unit} fits"


def _units(entry: Entry) -> tuple[str, ...]:
    if entry.unit == _SHARE:
        return (_SHARE,)
    return (entry.unit, _OTHER_UNIT[entry.unit]) if entry.unit else ("GB", "GiB")


def _apart(entry: Entry, unit: str, way: _Way) -> float:
    return abs(entry.number * UNITS[unit] - way.bytes)


def _over(count: int) -> str:
    return f" / {count} GPUs" if count > 1 else ""


def _both(size: float, unit: str) -> str:
    return f"{size:.4g} %" if unit == _SHARE else f"{size / GB:.4g} GB = {size / GIB:.4g} GiB"
