"""What a file reports twice must agree: totals and rates, latencies and their sums, requested and achieved load.

The columns of bench.audit.rules.night are judged by its rules, also for files of other tools.
"""

from bench.audit.rules.identities.arithmetic import ARITHMETIC_RULES
from bench.audit.rules.identities.completeness import COMPLETENESS_RULES
from bench.audit.rules.identities.latency import LATENCY_RULES
from bench.audit.rules.identities.queueing import QUEUEING_RULES
from bench.audit.rules.identities.statistics import SERVER_RULES, STATISTICS_RULES
from bench.audit.rules.rule import Rule

IDENTITY_RULES: tuple[Rule, ...] = (
    *COMPLETENESS_RULES,
    *ARITHMETIC_RULES,
    *LATENCY_RULES,
    *QUEUEING_RULES,
    *SERVER_RULES,
    *STATISTICS_RULES,
)
