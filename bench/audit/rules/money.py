"""What tokens cost, and rates whose unit is not what it is called."""

from bench import evidence_columns as ev
from bench.audit.evidence import cost
from bench.audit.rules.rule import ZERO, Rule

_TABLE = "the project's audit table, section 9"

MONEY_RULES: tuple[Rule, ...] = (
    Rule(
        "cost_identity",
        ev.COST_RATIO,
        "money",
        (cost.COST_LOW, cost.COST_HIGH),
        (cost.COST_LOW, cost.COST_HIGH),
        "a token costs {value:.3g} times what price and throughput make",
        origin=_TABLE,
    ),
    Rule(
        "cost_unit",
        ev.COST_UNIT_RATIO,
        "money",
        (cost.COST_LOW, cost.COST_HIGH),
        (cost.COST_LOW, cost.COST_HIGH),
        "a token costs {value:.3g} times what price and throughput make",
        origin=_TABLE,
    ),
    Rule(
        "unit_misuse",
        ev.PER_USER_TIMES_TPOT,
        "units",
        (0.8, 1.2),
        (0.8, 1.2),
        "tokens a second a user are {value:.2f} times what the time a token takes makes",
        scope="metric",
        withdraws=("per_user_tok_per_s",),
        origin=_TABLE,
    ),
    Rule(
        "unit_suspect",
        ev.UNIT_OVER_SIBLINGS,
        "units",
        ZERO,
        ZERO,
        "{value:#number is out of the band of its own model's others|"
        "numbers are out of the band of their own model's others} "
        "and in that of another unit",
        scope="metric",
        withdraws=("train_tflops_per_gpu",),
        origin=_TABLE,
    ),
)
