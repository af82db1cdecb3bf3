"""Whether the run of a file is whole: what completed, and whether its values are possible."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import EXACT_ONE, ZERO, Rule

COMPLETENESS_RULES: tuple[Rule, ...] = (
    Rule(
        code="incomplete",
        column=ev.COMPLETED_SHARE,
        family="completeness",
        passing=EXACT_ONE,
        tolerated=(0.95, 1.0),
        sentence="{value:.1%} of the planned requests completed",
        origin="InferenceX tolerates 5 % failed requests, perf-eval tolerates none",
    ),
    Rule(
        code="zero_output",
        column=ev.NOTHING_MEASURED,
        family="completeness",
        passing=ZERO,
        tolerated=ZERO,
        sentence="nothing was measured",
        means_failed=True,
        origin=("definition: without a completed request or an output token a run failed; its speed is not 0"),
    ),
    Rule(
        code="cancelled",
        column=ev.CANCELLED,
        family="completeness",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the client reports that the run was cancelled or killed",
        origin="definition: a cancelled run covers only a part of its plan",
    ),
    Rule(
        code="impossible_values",
        column=ev.IMPOSSIBLE_VALUES,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#value is|values are} impossible",
        origin="definition: a time, a count and a rate are finite and not negative; a share is at most 1",
    ),
)
