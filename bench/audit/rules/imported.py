"""What an importer may say of a file's own words: values that are none, and metrics that mean nothing."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

_TABLE = "the project's audit table, sections 2 and 9"

IMPORTED_RULES: tuple[Rule, ...] = (
    Rule(
        code="unreadable_value",
        column=ev.REMARKED_UNREADABLE_VALUE,
        family="completeness",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#value|values} could not be read",
        origin="a value of the wrong type, NaN or infinity says nothing; what was read still counts",
    ),
    Rule(
        code="unit_unknown",
        column=ev.REMARKED_UNIT_UNKNOWN,
        family="units",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#value has|values have} a unit that nothing tells",
        scope="metric",
        origin=_TABLE,
    ),
    Rule(
        code="failed_not_zero",
        column=ev.REMARKED_FAILED_NOT_ZERO,
        family="completeness",
        passing=ZERO,
        tolerated=ZERO,
        sentence=(
            "{value:#metric that can only be positive is|metrics that can only be positive are} 0: a "
            "failure, not a speed"
        ),
        means_failed=True,
        origin=_TABLE,
    ),
    Rule(
        code="meaningless_metric",
        column=ev.REMARKED_MEANINGLESS_METRIC,
        family="units",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#metric means nothing and is|metrics mean nothing and are} left out",
        scope="metric",
        origin=_TABLE,
    ),
    Rule(
        code="tokens_ambiguous",
        column=ev.REMARKED_TOKENS_AMBIGUOUS,
        family="units",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#throughput says|throughputs say} tokens and not which",
        origin=_TABLE,
    ),
    Rule(
        code="cost_denominator_unstated",
        column=ev.REMARKED_COST_DENOMINATOR_UNSTATED,
        family="money",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#cost a token does|costs a token do} not say of which tokens",
        scope="metric",
        withdraws=("usd_per_mtok",),
        origin=_TABLE,
    ),
)
