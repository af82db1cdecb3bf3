"""docs/reference/findings.md: every finding code; `python -m warehouse.report.findings_page` writes it."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from bench.audit.rules import RULES, Rule
from bench.audit.rules.wording import told_range
from bench.wording import shown

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "findings.md"
_HEAD = """# Findings

Generated from `bench/audit/rules/` by `python -m warehouse.report.findings_page`. `nightbench audit --explain CODE`
prints the same text.

A finding is what one rule says of one measurement: **PASS** inside what passes, **WARN** outside, **FAIL** outside what
is tolerated, **NOT-CHECKABLE** where an input is missing, which is named and never guessed. A rule that does not
concern a measurement says nothing. Several rules may share a code: weaker evidence has bounds of its own.

The verdict follows from the worst finding: a FAIL of the row or of its group makes it `rejected`, a WARN or a required
rule that is not checkable `suspect`, else it is `accepted`; a code that says that nothing was measured makes it
`failed`. A FAIL of scope *metric* takes only the named columns out of the views and leaves the row to the other rules.
Comparisons read `accepted` only.

Codes without bounds: `unreadable`, `unknown_format` and, of run folders, the stage at which a run ended; each is a FAIL
with a sentence. In the lake there are also `not_checkable` and `check_errored`.
"""


def page() -> str:
    """The whole page."""
    ordered = sorted(RULES, key=lambda rule: (rule.family, rule.code, rule.column))
    return _HEAD + "".join(
        part for family, rules in groupby(ordered, key=lambda rule: rule.family) for part in _chapter(family, rules)
    )


def _chapter(family: str, rules: Iterator[Rule]) -> Iterator[str]:
    yield f"\n## {family}\n\n| code | scope | evidence | passes | does not fail | says | bounds from |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for rule in rules:
        tolerated = "any" if rule.tolerated is None else told_range(rule.tolerated)
        failed = "; then nothing was measured" if rule.means_failed else ""
        said = f"{shown(rule.sentence)}{failed}".replace("|", "\\|")
        where = f"{rule.scope}: {', '.join(rule.withdraws)}" if rule.withdraws else rule.scope
        yield f"| `{rule.code}` | {where} | `{rule.column}` | {told_range(rule.passing)} | {tolerated} "
        yield f"| {said} | {rule.origin} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
