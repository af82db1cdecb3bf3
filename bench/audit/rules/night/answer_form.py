"""Whether answers have the form that the suite demands of them: a gate on accuracy."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Rule

ANSWER_FORM_RULES: tuple[Rule, ...] = (
    Rule(
        code="answers_invalid",
        column=ev.VALID_OVER_FLOOR,
        family="quality",
        passing=(1.0, None),
        tolerated=(1.0, None),
        sentence="valid answers are {value:.3f} times the share that the suite demands: an answer that was cut or has "
        "another form counts as invalid",
        driver="meter",
        is_required=False,
        only_where="answer_form",
        origin="definition: the suite sets the floor, answers.valid_share_min",
    ),
)
