"""How well the meter itself did: its lag behind the kernel, its lateness, its appetite."""

import math
from collections.abc import Sequence
from typing import Any

from meter.clock import kernel_stamp_ns
from meter.exchange import Exchange
from meter.record import Origin

NS_PER_MS = 1_000_000


def percentile_ms(values_ns: Sequence[int], share: float) -> float | None:
    """Nearest rank: the smallest value with at least this share of all at or below it; None of nothing."""
    if not values_ns:
        return None
    return sorted(values_ns)[max(math.ceil(share * len(values_ns)) - 1, 0)] / NS_PER_MS


def _lags_ns(exchanges: Sequence[Exchange], origin: Origin) -> list[int]:
    """List how long each stamped read waited between the kernel and us."""
    if origin.offset is None:
        return []
    shift = origin.offset.real_minus_mono_ns
    stamps = ((at, kernel_stamp_ns(ancillary)) for exchange in exchanges for at, ancillary, _data in exchange.reads)
    return [at - (stamp - shift) for at, stamp in stamps if stamp is not None]


def _delays_ns(exchanges: Sequence[Exchange]) -> list[int]:
    return [
        exchange.send_start_ns - exchange.intended_ns
        for exchange in exchanges
        if exchange.request.phase == "measured"
        and exchange.send_start_ns is not None
        and exchange.intended_ns is not None
    ]


def client_health(exchanges: Sequence[Exchange], origin: Origin, cpu_s: float, wall_s: float) -> dict[str, Any]:
    """Sum up the client, warm-up included; the dispatch delay is of measured requests of an open loop."""
    lags = _lags_ns(exchanges, origin)
    reads = sum(len(exchange.reads) for exchange in exchanges)
    return {
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "kernel_stamp_share": len(lags) / reads if reads else None,
        "lag_p50_ms": percentile_ms(lags, 0.50),
        "lag_p99_ms": percentile_ms(lags, 0.99),
        "lag_max_ms": percentile_ms(lags, 1.0),
        "dispatch_delay_p99_ms": percentile_ms(_delays_ns(exchanges), 0.99),
    }
