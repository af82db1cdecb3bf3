"""Whether the answers to the fixed questions changed: while the server ran, or since earlier nights.

None of these rules is required: a server without log-probabilities and a first night have nothing to compare.
"""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Rule

# Nats per token. A logit of 16 to 32 in bfloat16 is off by up to 1/16, a standard deviation of 0.036. The mean over 120
# tokens is off by 0.0033; this is three times as much. Float32 and bfloat16 of our small model differ by 0.0002.
ROUNDING_NATS = 0.01
LOST_NATS = 0.05  # 5 % more perplexity: a model that is faster at this price is another model
ONE_PROMPT_APART = 0.75  # rounding decides between two equally likely tokens, so one prompt of four may differ
WORSE_SE = 2.0  # of both scores: one in forty by chance if each night drew other questions; the questions are the same
MUCH_WORSE_SE = 3.0  # one in seven hundred
ANSWER_RULES: tuple[Rule, ...] = (
    Rule(
        code="numerics_changed",
        column=ev.LOGPROB_CHANGE,
        family="quality",
        passing=(0.0, ROUNDING_NATS),
        tolerated=(0.0, LOST_NATS),
        sentence=(
            "the mean log-probability of the fixed passage changed by {value:.4f} nats per token "
            "between the server's first and its last load"
        ),
        is_required=False,
        origin=(
            "three standard errors of bfloat16 rounding over the passage (0.01); 0.05 is 5 % of perplexity, "
            "another model"
        ),
        lacking="answers before the first and after the last load were not compared: {quality_not_checked}",
    ),
    Rule(
        code="numerics_changed_greedy",
        column=ev.GREEDY_AGREED_SHARE,
        family="quality",
        passing=(ONE_PROMPT_APART, None),
        tolerated=None,
        sentence="after its last load the server repeated only {value:.0%} of its greedy tokens from before the first",
        is_required=False,
        origin="one of the four fixed prompts may differ where two tokens are about equally likely",
        lacking="answers before the first and after the last load were not compared: {quality_not_checked}",
    ),
    Rule(
        code="numerics_changed_since",
        column=ev.GREEDY_AGREED_EARLIER_SHARE,
        family="quality",
        passing=(ONE_PROMPT_APART, None),
        tolerated=None,
        sentence="only {value:.0%} of the greedy tokens match an earlier night on this server and hardware",
        is_required=False,
        origin="one of the four fixed prompts may differ where two tokens are about equally likely",
        lacking="greedy tokens were not compared with an earlier night: {greedy_not_compared}",
    ),
    Rule(
        code="quality_below",
        column=ev.LOGPROB_FALL,
        family="quality",
        passing=(None, ROUNDING_NATS),
        tolerated=(None, LOST_NATS),
        sentence=(
            "the fixed passage has {value:.4f} nats per token less mean log-probability than in earlier "
            "nights: the answers got worse, so their speed is not comparable"
        ),
        is_required=False,
        origin=("the bounds of numerics_changed, against the median of the latest sound nights with the same weights"),
        lacking="answers were not compared with an earlier night: {quality_not_compared}",
    ),
)
# Apart from the rules of the fixed questions: a score that fell does not take a night's answers out of their median.
SCORE_RULES: tuple[Rule, ...] = (
    Rule(
        code="quality_below_tasks",
        column=ev.LM_EVAL_FALL_SE,
        family="quality",
        passing=(None, WORSE_SE),
        tolerated=(None, MUCH_WORSE_SE),
        sentence=(
            "a score of lm-eval is {value:.1f} standard errors below earlier nights: the answers got worse, "
            "so their speed is not comparable"
        ),
        is_required=False,
        origin=(
            "two and three standard errors of the difference, one in forty and one in seven hundred by "
            "chance; the same questions vary by less"
        ),
        lacking="scores of lm-eval were not compared with an earlier night: {lm_eval_not_compared}",
        only_where="lm_eval_tasks",
        note="{lm_eval_worst}",
    ),
    Rule(
        code="quality_below_floor",
        column=ev.LM_EVAL_OVER_FLOOR,
        family="quality",
        passing=(1.0, None),
        tolerated=(1.0, None),
        sentence="a score of lm-eval is {value:.3f} times the lowest that the suite accepts",
        is_required=False,
        origin="the floors of the suite, quality.lm_eval.floors",
        lacking="a score for which the suite has a floor is missing: {lm_eval_not_compared}",
        only_where="lm_eval_floors",
        note="{lm_eval_lowest}",
    ),
)
