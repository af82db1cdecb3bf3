"""The bounds of rules as text."""

from bench.audit.rules.rule import Range, Rule


def bounds_text(rule: Rule) -> str:
    """`passes <= 1.02, fails outside <= 1.1`."""
    fails = "never fails" if rule.tolerated is None else f"fails outside {range_text(rule.tolerated)}"
    return f"passes {range_text(rule.passing)}, {fails}"


def range_text(bounds: Range) -> str:
    """`<= 1.1`, `>= 0.5` or `[0, 0.05]`."""
    low, high = bounds
    if low is None:
        return f"<= {high:g}"
    return f">= {low:.3g}" if high is None else f"[{low:g}, {high:g}]"
