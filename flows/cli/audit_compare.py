"""What `nightbench audit --compare A B` prints: the ratios of two files, and whether they stand."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.audit.comparison import Comparison, Difference


def comparison_lines(found: Iterable["Comparison"]) -> Iterator[str]:
    """Each pair of rows with its ratios, and the terms that differ with the row that each speeds up."""
    for each in found:
        places = [" ".join(filter(None, (row.lineage.file, row.lineage.place))) for row in (each.first, each.second)]
        yield f"{'stands    ' if each.stands else 'stands not'}  {places[0]}  against  {places[1]}"
        for ratio in each.ratios:
            yield f"  {ratio.number}: {ratio.second:g} / {ratio.first:g} = {ratio.times:.4g}"
        for difference in each.differences:
            yield f"  {'differs' if difference.is_known else 'unknown'}: {_told(difference)}"


def _told(difference: "Difference") -> str:
    values = [
        "not stated" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        for value in (difference.first, difference.second)
    ]
    hint = f", which speeds up {difference.towards}" if difference.towards else ""
    return f"{difference.term} is {values[0]} and {values[1]}{hint}"
