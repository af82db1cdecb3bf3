"""Whether the machine itself was as fast as its GPU should be, before the runs and after them."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Rule

CANARY_RULES: tuple[Rule, ...] = (
    Rule(
        code="canary_near_floor",
        column=ev.CANARY_OVER_FLOOR,
        family="machine",
        passing=(1.1, None),
        tolerated=None,
        sentence="the canary reached {value:.2f} times the floor of this GPU; a healthy one is well above it",
        origin=(
            "catalog/canary_floors.csv; a machine below a floor before its first server is not used. 10 % above it"
            " is chosen by Nightbench"
        ),
    ),
    Rule(
        code="canary_fell",
        column=ev.CANARY_KEPT_SHARE,
        family="machine",
        passing=(0.9, None),
        tolerated=None,
        sentence="after the runs the canary reached {value:.0%} of what it reached before them",
        origin="chosen by Nightbench: a machine that became 10 % slower may have been slow during the runs",
    ),
)
