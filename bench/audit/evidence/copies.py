"""Numbers that stand where they were not measured: copied from another night, or under another unit."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from statistics import fmean, median, pstdev

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.comparable import ComparableGroup, numbers_of, throughput
from bench.audit.evidence.evidence import EvidenceByColumn, Observed
from bench.audit.evidence.rounding import digits
from bench.audit.evidence.scaling import is_closed
from bench.audit.evidence.timestamps import start_of

BAND = 3.0  # a number this many times its siblings' is out of their band
DIGITS_MIN = 5  # of a number that does not come out the same twice by chance
DIGITS_MIN_UNKNOWN = 10  # likewise, among machines of which nothing is known
REPEATS_MIN = 10
SIBLINGS_MIN = 2


def copied_numbers(claims: Sequence[Claim]) -> list[EvidenceByColumn]:
    """Evidence of each claim among all others; a claim that shares nothing has none."""
    found: list[EvidenceByColumn] = [{} for _ in claims]
    _copies(claims, found)
    _units(claims, found)
    _spread(claims, found)
    return found


def _copies(claims: Sequence[Claim], found: list[EvidenceByColumn]) -> None:
    """How many numbers a claim shares to all digits with one of another version or date, and files that are one."""
    holders: dict[Hashable, list[int]] = defaultdict(list)
    for at, claim in enumerate(claims):
        what = _configuration(claim)
        digits_min = DIGITS_MIN_UNKNOWN if claim.asked.gpu is None else DIGITS_MIN
        for name, value in numbers_of(claim).items():
            if digits(value) >= digits_min:
                holders[what, name, value].append(at)
    twins: dict[int, set[str]] = defaultdict(set)
    for several in holders.values():
        _note_twins(claims, several, [_edition(claims[at]) for at in several], twins)
    for several in _same_bytes(claims):
        _note_twins(claims, several, [claims[at].lineage.file for at in several], twins)
    for at, told in twins.items():
        found[at][ev.STALE_COPIES] = Observed(float(len(told)), "; ".join(sorted(told)[:3]))


def _same_bytes(claims: Sequence[Claim]) -> Iterable[list[int]]:
    """Claims from the same place of files of the same bytes."""
    holders: dict[Hashable, list[int]] = defaultdict(list)
    for at, claim in enumerate(claims):
        if claim.lineage.sha256.strip("0"):
            holders[claim.lineage.sha256, claim.lineage.place].append(at)
    return holders.values()


def _note_twins(
    claims: Sequence[Claim], several: list[int], editions: Sequence[Hashable], twins: dict[int, set[str]]
) -> None:
    """Add to each of these one of another edition; equal ones are not copies of each other."""
    others: dict[Hashable, int] = {}
    for at, edition in zip(several, editions, strict=True):
        others.setdefault(edition, at)
    if len(others) == 1:
        return
    first, second = list(others)[:2]
    for at, own in zip(several, editions, strict=True):
        other = others[second if own == first else first]
        twins[at].add(f"equal in all digits to {claims[other].lineage.file} {claims[other].lineage.place}".rstrip())


def _configuration(claim: Claim) -> Hashable:
    asked = claim.asked
    return (
        *(asked.model, asked.gpu, asked.gpu_count, asked.precision, asked.tp_size, asked.isl, asked.osl),
        *(asked.concurrency, asked.batch, asked.request_rate_per_s),
    )


def _edition(claim: Claim) -> Hashable:
    """What makes a number another one: the version and the day."""
    asked, started = claim.asked, start_of(claim)
    day = claim.unread.get("source_date") if started is None else started.date()
    return (asked.engine_version, asked.image, str(day))


def _units(claims: Sequence[Claim], found: list[EvidenceByColumn]) -> None:
    """TFLOP/s that are out of the band of the same model's others, where its tokens a second would fit."""
    families: dict[Hashable, list[int]] = defaultdict(list)
    for at, claim in enumerate(claims):
        said = claim.said
        if claim.asked.model and (said.train_tflops_per_gpu or said.train_tok_per_s_per_gpu):
            families[claim.asked.model.lower(), claim.asked.gpu].append(at)
    for family in families.values():
        tflops = {at: value for at in family if (value := claims[at].said.train_tflops_per_gpu)}
        tokens = [value for at in family if (value := claims[at].said.train_tok_per_s_per_gpu)]
        for at, value in tflops.items():
            others = [other for place, other in tflops.items() if place != at]
            if len(others) >= SIBLINGS_MIN and tokens:
                odd = not _in_band(value, others) and _in_band(value, tokens)
                note = (
                    f"{value:g} TFLOP/s, others {median(others):g}; tokens per second of this model {median(tokens):g}"
                )
                found[at][ev.UNIT_OVER_SIBLINGS] = Observed(float(odd), note)


def _in_band(value: float, others: Sequence[float]) -> bool:
    return 1 / BAND <= value / median(others) <= BAND


def _spread(claims: Sequence[Claim], found: list[EvidenceByColumn]) -> None:
    """How much repeats of one configuration on several days differ among each other."""
    for group in ComparableGroup().groups(claims, is_closed):
        repeats: dict[Hashable, list[int]] = defaultdict(list)
        for at in group:
            repeats[claims[at].asked.concurrency].append(at)
        for same in repeats.values():
            days = {_edition(claims[at]) for at in same}
            if min(len(same), len(days)) >= REPEATS_MIN:
                rates = [throughput(claims[at]) or 0.0 for at in same]
                spread = Observed(pstdev(rates) / fmean(rates), f"{len(same)} repeats on {len(days)} days")
                for at in same:
                    found[at][ev.SPREAD_OF_REPEATS] = spread
