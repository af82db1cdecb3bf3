"""Whether the stated cost follows from price and throughput, and whether rates have the unit of their names."""

from bench import evidence_columns as ev
from bench.audit.evidence import cost
from bench.audit.rules.rule import ZERO, Rule

MONEY_RULES: tuple[Rule, ...] = (
    Rule(
        code="cost_identity",
        column=ev.COST_RATIO,
        family="money",
        passing=(cost.COST_LOW, cost.COST_HIGH),
        tolerated=(cost.COST_LOW, cost.COST_HIGH),
        sentence="stated cost is {value:.3g} times price over throughput",
        origin=("cost per million tokens = price per hour / (tokens per second x 3600) x 10^6; 2 % for rounding"),
    ),
    Rule(
        code="cost_unit",
        column=ev.COST_UNIT_RATIO,
        family="money",
        passing=(cost.COST_LOW, cost.COST_HIGH),
        tolerated=(cost.COST_LOW, cost.COST_HIGH),
        sentence="stated cost is {value:.3g} times price over throughput",
        origin=(
            "cost per million tokens = price per hour / (tokens per second x 3600) x 10^6; 2 % for rounding."
            " A factor near 1000 is a cost per thousand tokens"
        ),
    ),
    Rule(
        code="unit_misuse",
        column=ev.PER_USER_TIMES_TPOT,
        family="units",
        passing=(0.8, 1.2),
        tolerated=(0.8, 1.2),
        sentence="tokens per second per user are {value:.2f} times 1 / TPOT",
        scope="metric",
        withdraws=("per_user_tok_per_s",),
        origin="definition: tokens per second per user = 1 / TPOT; 20 % for means against medians",
    ),
    Rule(
        code="unit_suspect",
        column=ev.UNIT_OVER_SIBLINGS,
        family="units",
        passing=ZERO,
        tolerated=ZERO,
        sentence=(
            "{value:#number is|numbers are} outside the range of the model's other numbers and inside that "
            "of another unit"
        ),
        scope="metric",
        withdraws=("train_tflops_per_gpu",),
        origin="chosen by Nightbench: a factor of the median of the model's other results",
    ),
)
