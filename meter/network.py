"""What lay between the meter and the server: the addresses that were used, TLS, and what shows itself in the heads."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from meter.record import Part


def network(part: Part, left_out: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Describe the way to the server, warm-up included; `left_out`: each address without a connection, and why."""
    rows = [row for row in part.rows if row["address"] is not None]
    requests = Counter(row["address"] for row in rows)
    opened = Counter(address for address, _worker, _number in {_connection(row) for row in rows})
    return {
        "addresses": {one: {"connections": opened[one], "requests": requests[one]} for one in sorted(requests)},
        "left_out": dict(left_out),
        "tls": part.tls,
        "between": dict(sorted(part.between.items())),
    }


def _connection(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["address"], row["worker"], row["connection"]
