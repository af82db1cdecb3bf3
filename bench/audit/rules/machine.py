"""Whether the machine was as fast as its GPU should be, and handed back nothing but its own results."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule
from bench.machine.canary import KEPT_SHARE_MIN

MACHINE_RULES: tuple[Rule, ...] = (
    Rule(
        code="canary_near_floor",
        column=ev.CANARY_OVER_FLOOR,
        family="machine",
        passing=(1.1, None),
        tolerated=None,
        sentence="the canary reached {value:.2f} times the floor of this GPU; a healthy one is well above it",
        origin=(
            "bench/machine/canary_history.py, or catalog/canary_floors.csv while there are too few nights; a machine"
            " below a floor before its first server is not used. 10 % above it is chosen by Nightbench"
        ),
    ),
    Rule(
        code="canary_fell",
        column=ev.CANARY_KEPT_SHARE,
        family="machine",
        passing=(KEPT_SHARE_MIN, None),
        tolerated=None,
        sentence="after the runs the canary reached {value:.0%} of what it reached before them",
        origin="chosen by Nightbench: a machine that became 10 % slower may have been slow during the runs",
    ),
    Rule(
        code="foreign_results",
        column=ev.FOREIGN_RESULTS,
        family="machine",
        passing=ZERO,
        tolerated=None,
        sentence="its machine offered {value:#result|results} that the plan did not give it; none was copied",
        origin="a machine that hands back results of other runs may have changed its own as well",
    ),
)
