"""Whether a server's start can have taken as long as its engine logs."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Range, Rule

# Times of lines and of graph capture are whole seconds.
_POSSIBLE: Range = (None, 2.0)

START_RULES: tuple[Rule, ...] = (
    Rule(
        code="start_longer_than_measured",
        column=ev.START_EXCESS_S,
        family="client-server",
        passing=_POSSIBLE,
        tolerated=_POSSIBLE,
        sentence="by its log the engine's start took {value:.1f} s longer than from its start until it was ready",
        is_required=False,
        only_where="start_other_s",
        scope="metric",
        withdraws=("start_", "cold_compilation", "warm_compilation"),
        origin="arithmetic: phases that follow one another take no longer than the whole; 2 s for whole seconds",
    ),
)
