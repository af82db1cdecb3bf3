"""What a server's answers to the fixed questions are asked: whether the same weights still say the same.

None of these is required: a server that tells no log-probabilities is not doubted for it, nor is a first night.
"""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Rule

# Nats a token. A logit of 16 to 32 in bfloat16 is off by up to 1/16, as a standard deviation 0.036; over 120 tokens the
# mean is off by 0.0033, and this is three times as much. Float32 and bfloat16 of our small model differ by 0.0002.
ROUNDING_NATS = 0.01
LOST_NATS = 0.05  # perplexity 5 % higher: what is quicker at this price is another model
ONE_PROMPT_APART = 0.75  # where two tokens are all but equally likely rounding decides, and one prompt of four may part
_ROUNDING = "three standard errors of bfloat16 rounding over the passage; 5 % of perplexity is another model"
_GREEDY = "one of the four fixed prompts may part where two tokens are all but equally likely"
WORSE_SE = 2.0  # of both scores: one in forty where other questions are drawn each night, and they are the same
MUCH_WORSE_SE = 3.0  # one in seven hundred
_SCORES = "two and three standard errors of the difference; the questions are the same, so chance moves it by less"
_LOST = "the same as of numerics_changed, against the median of the latest sound nights with the same weights"
ANSWER_RULES: tuple[Rule, ...] = (
    Rule(
        code="numerics_changed",
        column=ev.LOGPROB_CHANGE,
        family="quality",
        passing=(0.0, ROUNDING_NATS),
        tolerated=(0.0, LOST_NATS),
        sentence="the mean log-probability of the fixed passage moved by {value:.4f} nats a token during the load",
        is_required=False,
        origin=_ROUNDING,
        lacking="the server's answers before and after the load were not compared: {quality_not_checked}",
    ),
    Rule(
        code="numerics_changed_greedy",
        column=ev.GREEDY_AGREED_SHARE,
        family="quality",
        passing=(ONE_PROMPT_APART, None),
        tolerated=None,
        sentence="after the load the server gave only {value:.0%} of the greedy tokens that it gave before",
        is_required=False,
        origin=_GREEDY,
        lacking="the server's answers before and after the load were not compared: {quality_not_checked}",
    ),
    Rule(
        code="numerics_changed_since",
        column=ev.GREEDY_AGREED_EARLIER_SHARE,
        family="quality",
        passing=(ONE_PROMPT_APART, None),
        tolerated=None,
        sentence="only {value:.0%} of the greedy tokens are those of an earlier night on this server and hardware",
        is_required=False,
        origin=_GREEDY,
        lacking="greedy tokens were not compared with an earlier night's: {greedy_not_compared}",
    ),
    Rule(
        code="quality_below",
        column=ev.LOGPROB_FALL,
        family="quality",
        passing=(None, ROUNDING_NATS),
        tolerated=(None, LOST_NATS),
        sentence=(
            "the fixed passage has {value:.4f} nats a token less of mean log-probability than in earlier nights: "
            "the answers got worse, so their speed is not comparable"
        ),
        is_required=False,
        origin=_LOST,
        lacking="the answers were not compared with an earlier night's: {quality_not_compared}",
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
            "a score of lm-eval is {value:.1f} standard errors below that of earlier nights: the answers got worse, so "
            "their speed is not comparable"
        ),
        is_required=False,
        origin=_SCORES,
        lacking="scores of lm-eval were not compared with an earlier night's: {lm_eval_not_compared}",
        only_where="lm_eval_tasks",
        noted_in="lm_eval_worst",
    ),
)
