"""Whether a recorded trace, or sessions with pauses, were replayed at their times."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Rule

STEP_MS = 10.0  # of an engine

REPLAY_RULES: tuple[Rule, ...] = (
    Rule(
        code="late_replay",
        only_doubts_on_a_busy_host=True,
        column=ev.REPLAY_LATE_P99_MS,
        family="queueing",
        loop="replay",
        passing=(None, STEP_MS),
        tolerated=(None, 10 * STEP_MS),
        sentence="1 % of the requests were sent {value:.1f} ms or more after their recorded time or pause",
        driver="meter",
        is_required=False,
        note="{host_pressure}",
        origin=(
            "chosen by Nightbench: a step of an engine takes about 10 ms, so that a request which is later joins"
            " another batch; from ten steps on it is another trace"
        ),
    ),
    Rule(
        code="sessions_not_held",
        only_doubts_on_a_busy_host=True,
        column=ev.SESSIONS_OPEN_SHARE,
        family="queueing",
        passing=(0.95, None),
        tolerated=(0.5, None),
        sentence="only {value:.0%} of the requested sessions were open until the last one began",
        loop="sessions",
        driver="meter",
        is_required=False,
        origin="definition: a session begins where another one ends; 5 % are left to the hand-over",
    ),
)
