"""What an importer may say of a file's own words: values that are none, and metrics that mean nothing."""

from bench.audit.rules.rule import ZERO, Rule

_TABLE = "the project's audit table, sections 2 and 9"

IMPORTED_RULES: tuple[Rule, ...] = (
    Rule(
        "unreadable_value",
        "ev_remarked_unreadable_value",
        "completeness",
        ZERO,
        None,
        "{value:#value|values} could not be read",
        origin="a value of the wrong type, NaN or infinity says nothing; what was read still counts",
    ),
    Rule(
        "unit_unknown",
        "ev_remarked_unit_unknown",
        "units",
        ZERO,
        None,
        "{value:#value has|values have} a unit that nothing tells",
        scope="metric",
        origin=_TABLE,
    ),
    Rule(
        "failed_not_zero",
        "ev_remarked_failed_not_zero",
        "completeness",
        ZERO,
        ZERO,
        "{value:#metric that can only be positive is|metrics that can only be positive are} 0: a failure, not a speed",
        means_failed=True,
        origin=_TABLE,
    ),
    Rule(
        "meaningless_metric",
        "ev_remarked_meaningless_metric",
        "units",
        ZERO,
        ZERO,
        "{value:#metric means nothing and is|metrics mean nothing and are} left out",
        scope="metric",
        origin=_TABLE,
    ),
    Rule(
        "tokens_ambiguous",
        "ev_remarked_tokens_ambiguous",
        "units",
        ZERO,
        None,
        "{value:#throughput says|throughputs say} tokens and not which",
        origin=_TABLE,
    ),
    Rule(
        "cost_denominator_unstated",
        "ev_remarked_cost_denominator_unstated",
        "money",
        ZERO,
        ZERO,
        "{value:#cost a token does|costs a token do} not say of which tokens",
        scope="metric",
        withdraws=("usd_per_mtok",),
        origin=_TABLE,
    ),
)
