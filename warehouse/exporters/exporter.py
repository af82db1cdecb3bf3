"""An exporter: the name of a format, and the function that writes its files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warehouse.exporters.measurement import Measurement


@dataclass(frozen=True)
class Exporter:
    """One format; `files` returns texts by file name.

    A format that `takes_failed` has a row for a run that failed, too, with the reason in place of its numbers.
    `lacking` returns why this format cannot hold a measurement, which is then left out; None if it can.
    """

    name: str
    files: Callable[[Sequence[Measurement]], dict[str, str]]
    lacking: Callable[[Measurement], str | None] = lambda _measurement: None
    takes_failed: bool = False
