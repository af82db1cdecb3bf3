"""What tokens cost, and rates whose unit is not what it is called."""

from bench import evidence_columns as ev
from bench.audit.evidence import cost
from bench.audit.rules.rule import ZERO, Rule

_TABLE = "the project's audit table, section 9"

MONEY_RULES: tuple[Rule, ...] = (
    Rule(
        code="cost_identity",
        column=ev.COST_RATIO,
        family="money",
        passing=(cost.COST_LOW, cost.COST_HIGH),
        tolerated=(cost.COST_LOW, cost.COST_HIGH),
        sentence="a token costs {value:.3g} times what price and throughput make",
        origin=_TABLE,
    ),
    Rule(
        code="cost_unit",
        column=ev.COST_UNIT_RATIO,
        family="money",
        passing=(cost.COST_LOW, cost.COST_HIGH),
        tolerated=(cost.COST_LOW, cost.COST_HIGH),
        sentence="a token costs {value:.3g} times what price and throughput make",
        origin=_TABLE,
    ),
    Rule(
        code="unit_misuse",
        column=ev.PER_USER_TIMES_TPOT,
        family="units",
        passing=(0.8, 1.2),
        tolerated=(0.8, 1.2),
        sentence="tokens a second a user are {value:.2f} times what the time a token takes makes",
        scope="metric",
        withdraws=("per_user_tok_per_s",),
        origin=_TABLE,
    ),
    Rule(
        code="unit_suspect",
        column=ev.UNIT_OVER_SIBLINGS,
        family="units",
        passing=ZERO,
        tolerated=ZERO,
        sentence=(
            "{value:#number is out of the band of its own model's others|"
            "numbers are out of the band of their own model's others} "
            "and in that of another unit"
        ),
        scope="metric",
        withdraws=("train_tflops_per_gpu",),
        origin=_TABLE,
    ),
)
