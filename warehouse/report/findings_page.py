"""docs/reference/findings.md: every finding code; `python -m warehouse.report.findings_page` writes it."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from bench.audit.rules import RULES, Rule
from bench.audit.rules.wording import range_text
from bench.wording import shown

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "findings.md"
_HEAD = """# Findings

Generated from `bench/audit/rules/` by `python -m warehouse.report.findings_page`. `nightbench audit --explain CODE`
prints the same text for one code.

A rule judges one measurement and produces a finding:

| status | when |
|---|---|
| PASS | the evidence is inside *passes* |
| WARN | it is outside *passes* and inside *warns up to* |
| FAIL | it is outside both |
| NOT-CHECKABLE | an input is missing; the finding names it, and no rule guesses one |

A rule that does not apply to a measurement produces no finding. Several rules may share a code: each has bounds for
its own evidence, wider ones where the evidence is weaker.

The verdict of a measurement follows from its worst finding of scope *row* or *group*: FAIL makes it `rejected`;
WARN, or a required rule that is NOT-CHECKABLE, makes it `suspect`; otherwise it is `accepted`. FAIL of a rule
marked *failed run* makes it `failed`. FAIL of scope *metric* removes only the named columns from the views.
A row of another tool that would be `accepted` or `suspect` is `unchecked` if no rule of arithmetic or physics could be
held against any of its numbers. Comparisons and series read what is `accepted`, and runs of our own that nothing but
rules marked *noise* make `suspect`: they count by the interval of their repeats.

Three codes have no bounds: `unreadable`, `unknown_format` and, for run folders, the stage at which a run ended.
Each is a FAIL with a message. The lake also has `not_checkable` and `check_errored`.

In a message, `{value}` stands for the evidence. [rule-sources.md](rule-sources.md) describes the tools, files and
formulas that the last column names.
"""


def page() -> str:
    """The whole page."""
    ordered = sorted(RULES, key=lambda rule: (rule.family, rule.code, rule.column))
    return _HEAD + "".join(
        part for family, rules in groupby(ordered, key=lambda rule: rule.family) for part in _chapter(family, rules)
    )


def _chapter(family: str, rules: Iterator[Rule]) -> Iterator[str]:
    yield f"\n## {family}\n\n| code | scope | evidence | passes | warns up to | message | source of the bounds |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for rule in rules:
        tolerated = "any value" if rule.tolerated is None else range_text(rule.tolerated)
        failed = " (failed run)" if rule.means_failed else " (noise)" if rule.is_noise else ""
        message = f"{shown(rule.sentence)}{failed}".replace("|", "\\|")
        scope = f"{rule.scope}: {', '.join(rule.withdraws)}" if rule.withdraws else rule.scope
        yield f"| `{rule.code}` | {scope} | `{rule.column}` | {range_text(rule.passing)} | {tolerated} "
        yield f"| {message} | {rule.origin} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
