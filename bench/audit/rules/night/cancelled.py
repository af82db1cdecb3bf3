"""Whether a server stops computing what its client has cancelled."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Rule

CANCEL_RULES: tuple[Rule, ...] = (
    Rule(
        code="cancel_ignored",
        column=ev.CANCEL_OVERRUN_SHARE,
        family="client-server",
        passing=(None, 0.25),
        tolerated=(None, 0.5),
        sentence="the server computed {value:.0%} of the tokens that cancelled requests had left: it went on",
        driver="meter",
        is_required=False,
        only_where="cancelled",
        origin="chosen by Nightbench: vLLM 0.32.0 computed 3 % of long answers, the steps until it noticed; half is a "
        "server that goes on",
    ),
)
