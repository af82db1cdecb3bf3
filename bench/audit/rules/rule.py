"""One reason to doubt a measurement, declared as data: a column of evidence and its two bounds.

Inside `passing` it passes, inside `tolerated` it is a warning, outside it fails. warehouse/judging/expectations.py has
great-expectations judge by the same rules.
"""

import math
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["accepted", "suspect", "rejected", "failed", "not-run"]
Status = Literal["PASS", "WARN", "FAIL", "NOT-CHECKABLE"]
# What a finding is about: the whole measurement, some of its columns, or several measurements together.
Scope = Literal["row", "metric", "group"]
Evidence = dict[str, float | None]
# (lowest, highest), None for no bound.
Range = tuple[float | None, float | None]
EXACT_ONE: Range = (1.0, 1.0)
ZERO: Range = (0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One reason to doubt a measurement; its column is its key, its code may be that of other rules too.

    `tolerated` None: nothing outside `passing` fails, it only warns. `loop` says to which kind of load it applies,
    `driver` to which load driver, and `needs_exact_prompts` that it says nothing of prompts whose length is only
    approximate; a rule that does not apply is left out, it is not NOT-CHECKABLE. `lacking`
    says why it could not be checked, in words of the measurement's columns.
    """

    code: str
    column: str
    family: str
    passing: Range
    tolerated: Range | None
    sentence: str
    loop: Literal["closed", "open", "any"] = "any"
    driver: Literal["meter", "any"] = "any"
    needs_exact_prompts: bool = False
    is_required: bool = True
    lacking: str | None = None
    scope: Scope = "row"
    withdraws: tuple[str, ...] = ()  # scope `metric`: how the columns begin that a FAIL takes out of every view
    means_failed: bool = False  # a FAIL says that nothing was measured at all
    origin: str = ""  # where the bounds are from
    only_where: str | None = None  # a column of the measurement; where that is missing the rule does not apply
    noted_in: str | None = None  # a column of the measurement that tells the arithmetic

    def applies(self, loop: str, driver: str, *, is_exact: bool = True) -> bool:
        """Whether this rule is about runs of this loop (`closed` or `open`), driver and exactness of prompts."""
        return (
            self.loop in ("any", loop) and self.driver in ("any", driver) and (is_exact or not self.needs_exact_prompts)
        )


def judge(rule: Rule, value: float | None) -> Status:
    """What one rule says of one value; NaN counts as missing."""
    if value is None or math.isnan(value):
        return "NOT-CHECKABLE"
    if inside(rule.passing, value):
        return "PASS"
    return "WARN" if rule.tolerated is None or inside(rule.tolerated, value) else "FAIL"


def inside(bounds: Range, value: float) -> bool:
    """Whether a value lies in a range; both ends belong to it."""
    low, high = bounds
    return (low is None or value >= low) and (high is None or value <= high)
