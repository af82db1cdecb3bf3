"""One reason to doubt a measurement, declared as data: a column of evidence and its two bounds.

A value inside `passing` passes, inside `tolerated` it warns, outside both it fails. great-expectations judges by the
same rules in warehouse/judging/expectations.py.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bench.suite.workload import COMMAND, OFFLINE

Verdict = Literal["accepted", "suspect", "unchecked", "rejected", "failed", "not-run"]
Status = Literal["PASS", "WARN", "FAIL", "NOT-CHECKABLE"]
# What a finding is about: the whole measurement, some of its columns, or several measurements together.
Scope = Literal["row", "metric", "group"]
Evidence = dict[str, float | None]
# What a load also is, whose requests are due at recorded times, or after a pause.
LOOPS: Mapping[str, tuple[str, ...]] = {"trace": ("open", "replay"), "sessions": ("sessions", "replay")}
# (lowest, highest), None for no bound.
Range = tuple[float | None, float | None]
EXACT_ONE: Range = (1.0, 1.0)
ZERO: Range = (0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One reason to doubt a measurement; its column is its key, its code may be that of other rules too.

    With `tolerated` None the rule only warns. `loop`, `driver` and `needs_exact_prompts` restrict the runs that it
    applies to; a rule that does not apply is left out and is not NOT-CHECKABLE. `lacking` is the message where the
    evidence is missing; it may name columns of the measurement.
    """

    code: str
    column: str
    family: str
    passing: Range
    tolerated: Range | None
    sentence: str
    loop: Literal["closed", "sessions", "open", "replay", "any"] = "any"
    driver: Literal["meter", "any"] = "any"
    is_of_batches: bool = False  # it also applies to batches without a server, of which no request is known
    is_of_commands: bool = False  # it also applies to commands, of which only the host is known
    needs_exact_prompts: bool = False
    needs_tokens: bool = False  # it applies to answers of tokens only, and not to embeddings
    is_required: bool = True
    lacking: str | None = None
    scope: Scope = "row"
    withdraws: tuple[str, ...] = ()  # scope `metric`: prefixes of the columns that a FAIL removes from every view
    only_doubts_on_a_busy_host: bool = False  # where others took more CPU time than allowed, a FAIL may be their doing
    is_noise: bool = False  # it finds noise on the host: alone, it keeps no run out of the series
    means_failed: bool = False  # a FAIL means that nothing was measured
    origin: str = ""  # the source of the bounds; docs/reference/rule-sources.md describes them
    only_where: str | None = None  # the rule applies where this column of the measurement is known
    note: str = ""  # the arithmetic; it may name columns of the measurement

    def applies(self, loop: str, driver: str, *, is_exact: bool = True, has_tokens: bool = True) -> bool:
        """Whether it is about runs of this loop (as `loop_of` names it), driver, exactness of prompts and answers."""
        if driver == COMMAND:
            return self.is_of_commands
        if driver in OFFLINE and not self.is_of_batches:
            return False
        return (
            self.loop in ("any", *LOOPS.get(loop, (loop,)))
            and self.driver in ("any", driver)
            and (is_exact or not self.needs_exact_prompts)
            and (has_tokens or not self.needs_tokens)
        )


def loop_of(arrivals: str) -> str:
    """`closed`, `sessions`, `trace` or `open`, by a suite's `arrivals`."""
    return arrivals if arrivals in ("closed", *LOOPS) else "open"


def judge(rule: Rule, value: float | None, *, is_beside_others: bool = False) -> Status:
    """The status of one value; NaN counts as missing. `is_beside_others`: its host was busier than its suite allows."""
    if value is None or math.isnan(value):
        return "NOT-CHECKABLE"
    if inside(rule.passing, value):
        return "PASS"
    is_noise = is_beside_others and rule.only_doubts_on_a_busy_host
    return "WARN" if rule.tolerated is None or is_noise or inside(rule.tolerated, value) else "FAIL"


def inside(bounds: Range, value: float) -> bool:
    """Whether a value lies in a range; both ends belong to it."""
    low, high = bounds
    return (low is None or value >= low) and (high is None or value <= high)
