"""What an importer may say of a file's own words: values that are none, and metrics that mean nothing."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

_TABLE = "the project's audit table, sections 2 and 9"

IMPORTED_RULES: tuple[Rule, ...] = (
    Rule(
        "unreadable_value",
        ev.REMARKED_UNREADABLE_VALUE,
        "completeness",
        ZERO,
        None,
        "{value:#value|values} could not be read",
        origin="a value of the wrong type, NaN or infinity says nothing; what was read still counts",
    ),
    Rule(
        "unit_unknown",
        ev.REMARKED_UNIT_UNKNOWN,
        "units",
        ZERO,
        None,
        "{value:#value has|values have} a unit that nothing tells",
        scope="metric",
        origin=_TABLE,
    ),
    Rule(
        "failed_not_zero",
        ev.REMARKED_FAILED_NOT_ZERO,
        "completeness",
        ZERO,
        ZERO,
        "{value:#metric that can only be positive is|metrics that can only be positive are} 0: a failure, not a speed",
        means_failed=True,
        origin=_TABLE,
    ),
    Rule(
        "meaningless_metric",
        ev.REMARKED_MEANINGLESS_METRIC,
        "units",
        ZERO,
        ZERO,
        "{value:#metric means nothing and is|metrics mean nothing and are} left out",
        scope="metric",
        origin=_TABLE,
    ),
    Rule(
        "tokens_ambiguous",
        ev.REMARKED_TOKENS_AMBIGUOUS,
        "units",
        ZERO,
        None,
        "{value:#throughput says|throughputs say} tokens and not which",
        origin=_TABLE,
    ),
    Rule(
        "cost_denominator_unstated",
        ev.REMARKED_COST_DENOMINATOR_UNSTATED,
        "money",
        ZERO,
        ZERO,
        "{value:#cost a token does|costs a token do} not say of which tokens",
        scope="metric",
        withdraws=("usd_per_mtok",),
        origin=_TABLE,
    ),
)
