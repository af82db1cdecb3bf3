"""The last lines of a night, in plain words: what happened, what it means, and what to do next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.wording import counted

# Codes that say how busy the host was or how far repeats differ: noise, which another night may not have.
NOISE = frozenset(
    {
        *("busy_host", "busy_host_gpu", "stolen_cpu", "unstable", "steady_drift", "dispatch_late", "canary_fell"),
        *("cold_start_contamination", "server_unwatched", "client_bound", "client_bound_merged", "client_bound_core"),
        *("client_bound_envelope", "slow_core"),
    }
)
OTHERS_TOOK = frozenset({"busy_host", "busy_host_gpu", "stolen_cpu"})
GOOD_VERDICTS = frozenset({"accepted", "suspect"})  # of runs that need nothing from a person
ORDER = ("accepted", "suspect", "rejected", "failed", "not-run")
MEANINGS = {
    "accepted": "Accepted runs passed every check, and count in comparisons.",
    "suspect": "Suspect runs were measured, but something makes their numbers less sure: {codes}.",
    "rejected": "Rejected runs have something wrong in them, not only noise: {codes}. They count nowhere.",
    "failed": "Failed runs have no numbers: {codes}.",
    "not-run": "Some runs were not started.",
}


@dataclass(frozen=True)
class Doubt:
    """What makes runs of one verdict doubtful: the code or reason, of how many runs, and a sentence of one of them."""

    verdict: str
    code: str
    runs: int
    message: str = ""


def closing(night: str, verdicts: Mapping[str, int], doubts: Sequence[Doubt]) -> list[str]:
    """The lines, for a night with so many runs of each verdict; `doubts` are the most frequent first."""
    known = [name for name in ORDER if verdicts.get(name)]
    said = ", ".join(f"{verdicts[name]} {name}" for name in known)
    lines = [f"Night {night}: {counted(sum(verdicts.values()), 'run')}, {said}."]
    lines += [MEANINGS[name].format(codes=_codes(name, doubts)) for name in known]
    busy = next((one.message for one in doubts if one.code == "busy_host"), None)
    lines += [f"The host was busy: {busy}."] if busy else []
    slow = next((one.message for one in doubts if one.code == "slow_core"), None)
    lines += [f"The cores of the host changed their speed: {slow}."] if slow else []
    return [*lines, _next(night, known, doubts)]


def _codes(verdict: str, doubts: Sequence[Doubt]) -> str:
    found = [f"{one.code} ({counted(one.runs, 'run')})" for one in doubts if one.verdict == verdict]
    return ", ".join(found) or "the page has the reasons"


def _next(night: str, verdicts: Sequence[str], doubts: Sequence[Doubt]) -> str:
    if "not-run" in verdicts:
        return f"Next: `nightbench run --resume {night}` runs what is missing."
    if "failed" in verdicts or "rejected" in verdicts:
        return "Next: read the reasons on the page, mend what they name, and run another night."
    if any(one.code == "slow_core" for one in doubts) and not any(one.code in OTHERS_TOOK for one in doubts):
        return (
            "Next: nothing else kept this host busy, and its cores themselves were slower in some runs, which may be a "
            "part of it (a virtual machine shares them, heat slows them): run it again later, or on another host."
        )
    if any(one.code in NOISE for one in doubts):
        return (
            "Next: the interval of each scenario on the page says how exact the numbers are; for narrower ones close "
            "what keeps the computer busy and run `nightbench run` again."
        )
    return "Next: open the page, or run another night and compare the two: `nightbench compare NIGHT NIGHT`."
