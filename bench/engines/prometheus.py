"""The numbers of an engine in a Prometheus text, and how far its counters moved."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

_LINE = re.compile(r"([a-z]+):(\w+)(\{.*\})?\s+(\S+)$")


def sums(metrics: str, prefix: str, reason_label: str | None = None) -> dict[str, float]:
    """Counters and gauges whose name begins with `prefix` and a colon, summed over their labels, by the rest of it.

    A metric with the label `reason_label` is also given for each of its values: `request_success_total.length`.
    """
    found: dict[str, float] = {}
    for name, labels, value in _values(metrics, prefix):
        reason = re.search(rf'{reason_label}="(\w+)"', labels) if reason_label else None
        for key in (name, f"{name}.{reason[1]}") if reason else (name,):
            found[key] = found.get(key, 0.0) + value
    return found


def _values(metrics: str, prefix: str) -> Iterator[tuple[str, str, float]]:
    for line in metrics.splitlines():
        match = _LINE.match(line)
        if match and match[1] == prefix and not match[2].endswith(("_created", "_bucket")):
            with suppress(ValueError):  # no number: the metric counts as missing
                yield match[2], match[3] or "", float(match[4])


def deltas(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """How far each counter (`…_total`, and the sum and count of a histogram) moved.

    One that fell is negative: the server was restarted.
    """
    names = [name for name in after if "_total" in name or name.endswith(("_sum", "_count"))]
    return {name: after[name] - before.get(name, 0.0) for name in names}
