"""Result files of SGLang's CI on AMD: a title with the image, then a block of tab-separated lines for each metric.

A block is a line such as `Median TTFT (ms, lower better)`, a line `request rate` or `concurrency` with the loads, and a
line of values for each setup: `MI300x-aiter, some-host`. The night is the date in the image's tag. Read from the files
of michael-amd/sglang-ci, 2025-10 to 2025-12.
"""

import re
from collections.abc import Iterator, Sequence

from bench.errors import UnreadableResultError
from warehouse.importers.history.long_table import HistoryOptions
from warehouse.importers.history.row import HistoryRow, moment_in_name, number_or_none, stack_of
from warehouse.importers.parsing.document import Document

_TITLE = re.compile(r"(?P<what>.+?) - (?P<model>\S.*?) \((?P<image>[^()]+)\)\s*$")
_BLOCK = re.compile(r"(?P<metric>\S.*?) \((?P<unit>[^,()]+), (?P<better>lower|higher) better\)\s*$")
_LOADS = ("request rate", "concurrency")
_VERSION = re.compile(r"v(\d[\w.]*)")
SOURCE = "sglang-ci"


def is_titled_blocks(document: Document) -> bool:
    """Whether this is such a file; never raises."""
    lines = [line for line in document.data[:2048].decode("utf-8", "replace").splitlines() if line.strip()][:2]
    return len(lines) == 2 and bool(_TITLE.fullmatch(lines[0])) and bool(_BLOCK.fullmatch(lines[1]))  # noqa: PLR2004


def read_titled_blocks(document: Document, options: HistoryOptions) -> Iterator[HistoryRow]:
    """Every value of every block; raises UnreadableResultError with the line that fits no block."""
    lines = document.text.splitlines()
    title = _TITLE.fullmatch(lines[0])
    block: re.Match[str] | None = None
    loads: Sequence[str] = ()
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        found = _BLOCK.fullmatch(line)
        cells = line.split("\t")
        if found:
            block, loads = found, ()
        elif title is None or block is None or (not loads and cells[0] not in _LOADS):
            raise UnreadableResultError(f"{document.name} line {number} belongs to no block of a metric: {line[:60]!r}")
        elif not loads:
            loads = [f"{cells[0]} {load}" for load in cells[1:]]
        elif len(cells) != len(loads) + 1:
            raise UnreadableResultError(
                f"{document.name} line {number} has {len(cells) - 1} values, its block has {len(loads)} loads"
            )
        else:
            place = f"line {number} of {document.path.name}"
            yield from _values(place, title, block, list(zip(loads, cells[1:], strict=True)), cells[0], options)


def _values(
    place: str,
    title: re.Match[str],
    block: re.Match[str],
    values: Sequence[tuple[str, str]],
    setup: str,
    options: HistoryOptions,
) -> Iterator[HistoryRow]:
    name, _, host = setup.partition(", ")
    version = _VERSION.match(title["image"])
    stack = stack_of({"image": title["image"], "host": host, "engine_version": version[1] if version else None})
    series, within = options.taken_apart(f"{title['model']}/{name}")
    for load, text in values:
        yield HistoryRow(
            series=f"{series}/{load}",
            metric=block["metric"],
            measured_at=moment_in_name(title["image"]),
            value=number_or_none(text),
            place=place,
            unit=block["unit"],
            source=options.source or SOURCE,
            is_lower_better=block["better"] == "lower",
            has_zone=False,
            stack=stack | within,
        )
