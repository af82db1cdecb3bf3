"""Per-request arrays of a file: gaps end to end, and arrays that must be of one length."""

from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bench.metrics import Floats, Ints
from warehouse.importers.parsing.fields import Fields

AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])


class Lengths:
    """Holds arrays of one object to one length, one entry a request; says which is of another."""

    def __init__(self, fields: Fields, count: int) -> None:
        self._fields = fields
        self._count = count

    def fitting(self, name: str, array: AnyArray | None) -> AnyArray | None:
        """The array, None where it is of another length: then nobody knows which entry is of which request."""
        if array is None or len(array) == self._count:
            return array
        said = f"{name} has {len(array)} entries and the others have {self._count}, so it is left out"
        self._fields.remark("unreadable_value", said)
        return None


def read_gaps(fields: Fields, name: str) -> tuple[Floats | None, Ints | None]:
    """A list of lists of seconds, end to end, and where each begins (n + 1 offsets); None, None where there is none.

    Read without a list in between: of a million requests these are most of the file.
    """
    lists = fields.raw(name)
    if lists is None:
        return None, None
    if not isinstance(lists, list) or not set(map(type, lists)) <= {list}:
        fields.remark("unreadable_value", f"{name} is no list of lists, so it is left out")
        return None, None
    counts = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    try:
        gaps = np.fromiter(chain.from_iterable(lists), dtype=np.float64, count=int(counts.sum()))
    except (TypeError, ValueError, OverflowError):
        gaps = np.full(1, np.nan)
    if not np.isfinite(gaps).all():
        fields.remark("unreadable_value", f"{name} holds what is no number, so it is left out")
        return None, None
    return gaps, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
