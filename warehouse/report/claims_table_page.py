"""docs/reference/claims-table.md: what a table of claims may hold; `python -m warehouse.report.claims_table_page`."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from bench.audit.claim import Kind, Outcome
from bench.audit.context_keys import KEYS
from bench.audit.rules import Status, Verdict
from catalog.read import read_spellings
from warehouse.importers.claims_table.claimed_metrics import DIMENSIONS
from warehouse.importers.claims_table.columns import COLUMNS, KEPT
from warehouse.importers.claims_table.kinds import KINDS
from warehouse.importers.claims_table.vocabulary import STATISTICS
from warehouse.importers.parsing.printed_units import UNITS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "claims-table.md"
_HEAD = """# The claims table

Generated from `catalog/spellings.csv` and the importer by `python -m warehouse.report.claims_table_page`.
[Audit a vendor's table](../how-to/audit-a-result.md#a-vendors-table) shows how to use one.

A claims table is a file with a header, in one of two forms. Its cells are separated by commas, or by tabs, semicolons
or the bars of a Markdown table.

- Long: each row has one number, in the columns `metric`, `value` and `unit`. Rows with the same other columns are one
  claim, and their numbers are held against each other.
- Wide: each row is one claim, and each metric has a column. A wide table has a column for the model or the GPU.

Names of columns and metrics are compared in lower case. Spaces, underscores and hyphens count as one space. A colon at
the end is left out, and so is a unit that is in brackets or last. A name that is not listed is read if each of its
words is in `catalog/header_words.csv` and together they name one metric. The audit names each column, metric and value
that it does not read, with the nearest name of this page.
"""
_VALUES = """
## Values

| printed | read as |
|---|---|
| `33.1`, `1,234`, `1 234`, `18.9e6`, `**150**`, `150*`, `150 [1]` | the number |
| `1.2k`, `3M`, `70B` | 1,200; 3 million; 70 billion |
| `54.28 ± 2.56` | the number and its spread |
| `~900`, `about 900` | 900; a rate or latency is held against physics as 850 to 950, and against nothing else |
| `15-20`, `1-2k` | a range; of a rate or latency the end that allows most is held against physics |
| `< 1`, `up to 1`, `> 100`, `500+` | a limit, held against physics like a range: the highest latency, the lowest rate |
| `1,234 tok/s`, `$0.13` | the number and its unit, which must be that of the `unit` column |
| `OOM`, `crashed`, `timed out` | a failure, which is the cause that the row states |
| empty, `N/A`, `-`, `—`, `TBD` | no number |
| `inf`, `33,1`, any other text | refused, with the reason |
"""


def page() -> str:
    """The whole page."""
    return "".join((_HEAD, *_columns(), *_metrics(), *_units(), _VALUES, *_statuses(), *_keys()))


def _columns() -> Iterator[str]:
    headers = _spellings("column")
    yield "\n## Columns\n\nColumns marked *kept* are stored with the row; no rule reads them.\n"
    yield "\n| column | what it holds | other headers |\n|---|---|---|\n"
    for name, meaning in COLUMNS.items():
        kept = " (*kept*)" if name in KEPT else ""
        yield f"| `{name}` | {meaning}{kept} | {_quoted(each for each in headers[name] if each != name)} |\n"


def _metrics() -> Iterator[str]:
    names = _spellings("metric")
    words = ", ".join(f"`{each}`" for each in STATISTICS)
    yield "\n## Metrics\n\n`ttft`, `tpot`, `itl` and `e2el` are latencies. A statistic stands before or after the"
    yield f" name: {words}, `p99`, `99th percentile`.\nWithout one, the number is read as the median, with the finding"
    yield " `metric_ambiguous`. Names that may be\nseveral metrics are refused; a gap between tokens is read as `itl`,"
    yield " with the same finding.\n"
    yield "\n| metric | units | names |\n|---|---|---|\n"
    for means in sorted(names):
        metrics = means.split("|")
        units = sorted({unit for each in metrics for unit in DIMENSIONS[each.partition(".")[0]] if unit})
        yield f"| {_quoted(metrics, ' or ')} | {_quoted(units)} | {_quoted(names[means])} |\n"


def _units() -> Iterator[str]:
    by_dimension: dict[str, list[str]] = defaultdict(list)
    for name, (dimension, _factor) in UNITS.items():
        by_dimension[dimension].append(name)
    yield "\n## Units\n\nBefore a unit is looked up, `per` becomes `/`, `tokens` becomes `tok`, `requests`, `queries`"
    yield " and `samples` become `req`,\n`tps` becomes `tok/s`, `qps` and `rps` become `req/s`, `$` becomes `usd`.\n"
    yield "\n| unit | also |\n|---|---|\n"
    for dimension, units in by_dimension.items():
        yield f"| `{dimension}` | {_quoted(each for each in units if each != dimension)} |\n"


def _statuses() -> Iterator[str]:
    yield "\n## Statuses\n\nA row's kind follows from the words of its metric and notes; without one it is"
    yield " `measured`.\nComparisons use measured rows only.\n\n| kind | words |\n|---|---|\n"
    for kind in get_args(Kind):
        yield f"| `{kind}` | {_quoted(word for word, each in KINDS.items() if each == kind)} |\n"
    for what, names in (("outcome", Outcome), ("status of a rule", Status), ("verdict", Verdict)):
        yield f"\nThe {what} is one of {_quoted(get_args(names))}."
    yield "\n[findings.md](findings.md) says when each applies.\n"


def _keys() -> Iterator[str]:
    yield "\n## Keys of a context file\n\n`results.context.toml` states what `results.csv` lacks; `context.toml` does"
    yield " so for each file of its folder.\nAn option of `nightbench audit` has the name of its key, with hyphens.\n"
    yield "\n| key | what it states |\n|---|---|\n"
    for name, key in KEYS.items():
        yield f"| `{name}` | {key.meaning}{f'; also `{key.older}`' if key.older else ''} |\n"


def _quoted(names: Iterable[str], between: str = ", ") -> str:
    return between.join(f"`{name}`" for name in names)


def _spellings(kind: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in read_spellings():
        if row.kind == kind:
            found["|".join(row.candidates)].append(row.spelling.replace("|", "\\|"))
    return found


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
