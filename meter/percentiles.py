"""The statistics of the meter about itself; those of a result are computed by the reader."""

import math
from collections.abc import Sequence

NS_PER_MS = 1_000_000


def nearest_rank(values: Sequence[int], share: float) -> int | None:
    """The smallest value with at least this share of all at or below it; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def percentile_ms(values_ns: Sequence[int], share: float) -> float | None:
    """Nearest-rank percentile of nanoseconds, in milliseconds."""
    found = nearest_rank(values_ns, share)
    return None if found is None else found / NS_PER_MS
