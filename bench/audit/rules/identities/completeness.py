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
        code="errors_as_success",
        column=ev.ANSWERS_WITHOUT_USAGE,
        family="completeness",
        passing=ZERO,
        tolerated=(0.0, 0.05),
        sentence="{value:.1%} of the completed requests have no token usage of the server: errors inside a stream?",
        origin=(
            "vLLM, SGLang and llama.cpp end each whole stream with its usage where it is requested; a stream that ends"
            " in an error object has none, and its status is 200. 5 % as for failed requests"
        ),
    ),
    Rule(
        code="errors_as_success",
        column=ev.SHORT_ANSWERS,
        family="completeness",
        passing=ZERO,
        tolerated=None,
        sentence="{value:.1%} of the completed requests end at one and the same earlier event: errors inside a stream?",
        origin=(
            "chosen by Nightbench: answers of one length, and a class of at least 5 that all end at three quarters of "
            "it or before, are not natural stops, which end anywhere"
        ),
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
