"""Rules in words: what passes, and what fails."""

from bench.audit.rules.rule import Range, Rule


def told_bounds(rule: Rule) -> str:
    """`passes <= 1.02, fails outside <= 1.1`."""
    fails = "never fails" if rule.tolerated is None else f"fails outside {told_range(rule.tolerated)}"
    return f"passes {told_range(rule.passing)}, {fails}"


def told_range(bounds: Range) -> str:
    """`<= 1.1`, `>= 0.5` or `[0, 0.05]`."""
    low, high = bounds
    if low is None:
        return f"<= {high:g}"
    return f">= {low:.3g}" if high is None else f"[{low:g}, {high:g}]"
