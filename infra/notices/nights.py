"""The event of a night that was killed; whoever finds one gives it the same key, so that it is one message."""

from infra.notices.event import Event

KILLED = "night.killed"


def killed(run_id: str) -> Event:
    """A night whose process ended without a word, known by its flow run."""
    return Event(
        f"{KILLED}/{run_id}",
        "act",
        "a night was killed: its process is gone",
        f"its watchdog releases its machine, what was measured is kept, and `nightbench run --resume NIGHT` runs the "
        f"rest; the last lines of night.log in its folder say how far it was (flow run {run_id})",
    )
