"""Each line of docs/reference/told.md: a trouble, what finds it, and the title of the one message that it brings.

In a title NIGHT, LEASE, TIME and PLACE stand for a name, a time and a path. A line is tested under its name.
"""

import re
from dataclasses import dataclass

NIGHT_ITSELF, CHECK, REAP, WATCHDOG = "the night, at its end", "`check`", "`reap`", "the lease's watchdog"
OUTSIDE = "an outside service"
HERE = "tests/flows/test_told.py"
SERVED = "tests/flows/test_scheduled.py::test_what_a_check_finds_of_the_service_is_told_once"
WHAT = "suites/local.toml on local"
_STANDS_FOR = {
    "NIGHT": r"[\w:.-]+(, which has no plan)?",
    "LEASE": r"[\w-]+",
    "TIME": r"[\d-]+ [\d:]+",
    "PLACE": r"\S+",
}


@dataclass(frozen=True)
class Trouble:
    """One line: `cause` are words of the message's text that name what is wrong or what to do."""

    name: str
    found_by: str
    title: str
    cause: str
    test: str = ""

    @property
    def runs(self) -> str:
        """The test of this line."""
        return self.test or f"{HERE}::test_a_trouble_is_told_once_to_each_address[{self.name}]"

    def is_told_by(self, title: str) -> bool:
        """Whether this is its message."""
        pattern = re.escape(self.title)
        for word, stands_for in _STANDS_FOR.items():
            pattern = pattern.replace(word, stands_for)
        return re.fullmatch(pattern, title) is not None


TROUBLES = (
    Trouble("failed night", NIGHT_ITSELF, "PLACE on local, night NIGHT: 2 failed", "2 failed"),
    Trouble("rejected night", NIGHT_ITSELF, f"{WHAT}, night NIGHT: 1 rejected", "1 rejected"),
    Trouble("spent budget", NIGHT_ITSELF, f"{WHAT}, night NIGHT: out of budget", "5 USD"),
    Trouble("no capacity", NIGHT_ITSELF, f"{WHAT}, night NIGHT: no capacity", "no capacity in atl1"),
    Trouble("refused token", NIGHT_ITSELF, f"{WHAT}, night NIGHT: the cloud refuses the token", "set another one"),
    Trouble("machine in use", NIGHT_ITSELF, "PLACE on local, night NIGHT: another night holds the machine", "wait"),
    Trouble("full disk", NIGHT_ITSELF, "PLACE on local, night NIGHT: the disk is full", "GiB free"),
    Trouble("book of events that cannot be written", NIGHT_ITSELF, f"{WHAT}, night NIGHT: failed", "no such model"),
    Trouble("any other error", NIGHT_ITSELF, f"{WHAT}, night NIGHT: failed", "RuntimeError: a bug"),
    Trouble(
        "regression", NIGHT_ITSELF, f"{WHAT}, night NIGHT: 1 accepted, 1 change for the worse", "only engine_version"
    ),
    Trouble(
        "improvement", NIGHT_ITSELF, f"{WHAT}, night NIGHT: 1 accepted, 1 change for the better", "only engine_version"
    ),
    Trouble("killed night", CHECK, "a night was killed: its process is gone", "nightbench run --resume NIGHT"),
    Trouble("missing night", CHECK, "the night of TIME UTC has not begun", "nightbench status", SERVED),
    Trouble("skipped night", CHECK, "the night of TIME UTC was skipped", "late by 26 h", SERVED),
    Trouble("stopped worker", CHECK, "the worker of the service is stopped", "run `nightbench up`", SERVED),
    Trouble("stopped server", CHECK, "the server of the service is stopped", "run `nightbench up`", SERVED),
    Trouble("stale suite", CHECK, "suite synthetic has no data since night NIGHT", "nights failed or did not start"),
    Trouble(
        "stale series",
        CHECK,
        "series m chat of suite nightly has no good run since night NIGHT",
        "rejected, failed or not run",
    ),
    Trouble(
        "stayed-away machine",
        CHECK,
        "machine b of suite nightly has no good run since night NIGHT",
        "rejected, failed or not run",
    ),
    Trouble(
        "disk that fills up", CHECK, "the disk of PLACE has less than 90000 GiB free (NIGHTBENCH_MIN_FREE_GIB)", "free"
    ),
    Trouble("leak", CHECK, "not released: LEASE", "has expired and is open, at 2.59 USD/h"),
    Trouble("check that fails", CHECK, "`nightbench check` failed", "other troubles may not be reported"),
    Trouble("lease that cannot be released", REAP, "not released: LEASE", "lacks the scope droplet:delete"),
    Trouble(
        "token refused to the reaper",
        REAP,
        "the reaper cannot see what is rented at digitalocean",
        "The token is wrong or revoked",
    ),
    Trouble("reap that fails", REAP, "`nightbench reap` failed", "other troubles may not be reported"),
    Trouble("watchdog that cannot release", WATCHDOG, "not released: LEASE", "lacks the scope droplet:delete"),
    Trouble(
        "watchdog that gives up",
        WATCHDOG,
        "the watchdog of LEASE gave up after 7 days: STILL BILLED",
        "delete the machine in the cloud's console",
    ),
    Trouble("webhook that hangs", CHECK, "a night was killed: its process is gone", "nightbench run --resume NIGHT"),
    Trouble("webhook that answers 500", CHECK, "a night was killed: its process is gone", "nightbench run --resume"),
    Trouble(
        "tracker that answers 500", CHECK, "a night was killed: its process is gone", "nightbench run --resume NIGHT"
    ),
    Trouble("mail server that refuses", CHECK, "a night was killed: its process is gone", "nightbench run --resume"),
    Trouble(
        "lost computer",
        OUTSIDE,
        "of that service: the heartbeat stayed away",
        "the heartbeat stayed away",
        f"{HERE}::test_a_lost_computer_is_told_by_whoever_expects_its_heartbeat",
    ),
)


def trouble(name: str) -> Trouble:
    """The trouble of this name."""
    return next(one for one in TROUBLES if one.name == name)
