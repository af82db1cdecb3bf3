"""The numbers of an engine in a Prometheus text, and how far its counters moved."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

_LEFT_OUT = ("_created", "_bucket")


def sums(metrics: str, prefix: str, by: Sequence[str] = ()) -> dict[str, float]:
    """Counters and gauges whose name begins with `prefix` and a colon, summed over their labels, by the rest of it.

    A metric with a label of `by` is also given for each of its values: `request_success_total.length`.
    """
    found: dict[str, float] = {}
    for sample in _samples(metrics, f"{prefix}:"):
        name = sample.name.removeprefix(f"{prefix}:")
        for key in (name, *(f"{name}.{sample.labels[label]}" for label in by if label in sample.labels)):
            found[key] = found.get(key, 0.0) + sample.value
    return found


def _samples(metrics: str, start: str) -> Iterator[Sample]:
    """The samples whose name begins so; each line is parsed by itself, so that a wrong one counts as missing."""
    for line in metrics.splitlines():
        if line.startswith(start) and not line.split("{", 1)[0].split(maxsplit=1)[0].endswith(_LEFT_OUT):
            with suppress(ValueError, OverflowError):  # the parser reads whole numbers as int, of any length
                for family in text_string_to_metric_families(line):
                    yield from [sample._replace(value=float(sample.value)) for sample in family.samples]


def deltas(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """How far each counter (`…_total`, and the sum and count of a histogram) moved.

    One that fell is negative: the server was restarted.
    """
    names = [name for name in after if "_total" in name or name.endswith(("_sum", "_count"))]
    return {name: after[name] - before.get(name, 0.0) for name in names}
