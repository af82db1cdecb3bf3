"""The floors of a canary from earlier nights on machines of the same kind, in the place of the catalogue's constants.

The reference is the first `NIGHTS` healthy nights of a kind, and later ones never change it: a slow drift cannot lower
the floor. Its median and spread are those of more than half of the nights, so a few slow hosts among them do not count.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from bench.catalog.rows import CanaryFloor
from bench.frozen import StoredValue

NIGHTS = 10  # with four slow hosts among them, median and spread are still those of the six others
SIGMA_OF_MAD = 1.4826  # the standard deviation of a normal distribution over its median absolute deviation
SPREADS = 5.0  # the spread of ten nights may be a third too small; at five, a healthy machine is refused by no accident
LEAST_WIDTH = 0.2  # share of the median: nights that agree closely must not refuse a host for what no run would notice


@dataclass(frozen=True)
class EarlierCanary:
    """What one test reached on one night before the first server: the median over its healthy GPUs of one model."""

    night: str
    gpu: str  # as in catalog/gpus.csv
    test: str
    value: float


class HistoryFloor(StoredValue):
    """The floor of a test on one GPU, and the nights it is from; values in the test's unit."""

    gpu: str
    test: str
    floor: float
    median: float
    spread: float  # robust: SIGMA_OF_MAD times the median absolute deviation
    night_count: int
    first_night: str
    last_night: str

    @property
    def is_verified(self) -> bool:
        """True: it was measured on healthy machines."""
        return True


def floors_from(earlier: Iterable[EarlierCanary], constants: Sequence[CanaryFloor]) -> tuple[HistoryFloor, ...]:
    """The floor of each GPU and test that has `NIGHTS` healthy nights.

    A constant that is verified stands, and so does one that is higher: machines below it were refused, so a history
    that would lower it has only widely spread values. `earlier` is of one kind of machine.
    """
    known = {(row.gpu, row.test): row for row in constants}
    found = (
        _floor(list(nights)) for _, nights in groupby(sorted(earlier, key=_place), key=lambda one: _place(one)[:2])
    )
    return tuple(one for one in found if one is not None and _replaces(one, known.get((one.gpu, one.test))))


def _place(one: EarlierCanary) -> tuple[str, str, str]:
    return one.gpu, one.test, one.night


def _floor(nights: Sequence[EarlierCanary]) -> HistoryFloor | None:
    """The floor of one GPU and test from its first nights; None where they are too few."""
    if len(nights) < NIGHTS:
        return None
    first = nights[:NIGHTS]
    middle = median(one.value for one in first)
    spread = SIGMA_OF_MAD * median(abs(one.value - middle) for one in first)
    return HistoryFloor(
        gpu=first[0].gpu,
        test=first[0].test,
        floor=max(0.0, middle - max(SPREADS * spread, LEAST_WIDTH * middle)),
        median=middle,
        spread=spread,
        night_count=NIGHTS,
        first_night=first[0].night,
        last_night=first[-1].night,
    )


def _replaces(found: HistoryFloor, constant: CanaryFloor | None) -> bool:
    return found.floor > 0 and (constant is None or (not constant.is_verified and found.floor > constant.floor))
