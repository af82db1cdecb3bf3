"""Per-request arrays of a file: concatenated gaps, and arrays of equal length."""

from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bench.metrics import Floats, Ints
from warehouse.importers.parsing.fields import Fields

AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])


class Lengths:
    """Checks that the arrays of one object have equal length, one entry per request."""

    def __init__(self, fields: Fields, count: int) -> None:
        self._fields = fields
        self._count = count

    def fitting(self, name: str, array: AnyArray | None) -> AnyArray | None:
        """The array; None with a remark if its length differs: its entries cannot be matched to requests."""
        if array is None or len(array) == self._count:
            return array
        said = f"{name} has {len(array)} entries but the other arrays have {self._count}; ignored"
        self._fields.remark("unreadable_value", said)
        return None


def read_gaps(fields: Fields, name: str) -> tuple[Floats | None, Ints | None]:
    """A list of lists of seconds, concatenated, and n + 1 offsets; None, None if it is missing.

    Read without intermediate lists: for a million requests they are most of the file.
    """
    lists = fields.raw(name)
    if lists is None:
        return None, None
    if not isinstance(lists, list) or not set(map(type, lists)) <= {list}:
        fields.remark("unreadable_value", f"{name} is not a list of lists; ignored")
        return None, None
    counts = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    try:
        gaps = np.fromiter(chain.from_iterable(lists), dtype=np.float64, count=int(counts.sum()))
    except (TypeError, ValueError, OverflowError):
        gaps = np.full(1, np.nan)
    if not np.isfinite(gaps).all():
        fields.remark("unreadable_value", f"{name} holds a value that is not a number; ignored")
        return None, None
    return gaps, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
