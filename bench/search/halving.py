"""Successive halving: which candidates run next and how long, and when the best one is confirmed.

Pure functions of the rounds until now (Jamieson and Talwalkar, 2016): every candidate runs briefly, the better ones run
longer, and so on until one is left. A candidate whose runs failed or were rejected, or whose requests surely miss the
SLO, goes no further. The last one then runs at full length in turns with the suite's own flags.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.frozen import StoredValue
from bench.search.flag_space import OWN, Candidate
from bench.search.goodput import wilson
from bench.suite.slo import Slo


class Trial(StoredValue):
    """What one candidate showed in one night; `value` is the geometric mean of its runs, None with `reason` why."""

    candidate: str
    value: float | None = None
    runs: int = 0  # that count
    request_count: int = 0  # of these runs
    within_slo: int | None = None  # of these requests; None: there is no SLO
    reason: str = ""


class Round(StoredValue):
    """One night of candidates."""

    night: str
    request_count: int  # of a run
    trials: tuple[Trial, ...]


class Confirmation(StoredValue):
    """One night of a candidate in turns with the suite's own flags; the ratio is over these, with its 95 % interval."""

    night: str
    trials: tuple[Trial, ...]  # the suite's own, then the candidate
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    verdict: str = ""  # of the pair: gain, loss, equivalent, inconclusive


class Tuning(StoredValue):
    """A search for flags: what the suite wants, and every night so far. All else follows from these."""

    suite: str  # its file
    suite_name: str
    suite_sha256: str
    target: str
    scenario: str
    metric: str
    is_lower_better: bool
    slo: Slo | None
    keep: int
    first_count: int  # requests of a run in the first round
    full_count: int  # and of a confirming run
    candidates: tuple[Candidate, ...]
    rounds: tuple[Round, ...] = ()
    confirmations: tuple[Confirmation, ...] = ()

    def candidate(self, name: str) -> Candidate:
        """The candidate of a name."""
        return next(one for one in self.candidates if one.name == name)


@dataclass(frozen=True)
class Step:
    """What comes next: a round of `candidates`, or the confirmation of one; none of them and the answer at the end."""

    candidates: tuple[str, ...] = ()
    request_count: int = 0
    is_confirmation: bool = False
    answer: str = ""
    winner: str | None = None  # its flags are confirmed as better


def next_step(search: Tuning) -> Step:
    """The next step; the same for the same nights."""
    if not search.rounds:
        return Step(tuple(one.name for one in search.candidates), search.first_count)
    last = search.rounds[-1]
    going_on = kept(search, last)
    if not going_on:
        reasons = "; ".join(f"{one.candidate}: {dropped_for(search, one)}" for one in last.trials)
        return Step(answer=f"no candidate {_standard(search)}: {reasons}")
    if len(going_on) > 1:
        return Step(going_on, request_count_of(search, len(search.rounds)))
    return _confirming(search, last)


def request_count_of(search: Tuning, number: int) -> int:
    """The requests of a run in this round, from 0."""
    return int(min(search.first_count * search.keep**number, search.full_count))


def sizes(candidates: int, keep: int) -> list[int]:
    """How many candidates each round has, if none fails: one of `keep` goes on."""
    found = list[int]()
    while candidates > 1:
        found.append(candidates)
        candidates = math.ceil(candidates / keep)
    return found


def course(search: Tuning) -> list[tuple[int, int]]:
    """The candidates and the requests of a run in each round, if none fails."""
    counts = sizes(len(search.candidates), search.keep)
    return [(count, request_count_of(search, number)) for number, count in enumerate(counts)]


def ranked(search: Tuning, trials: Sequence[Trial]) -> list[Trial]:
    """Those that may go on, the best first; equal ones in their order."""
    good = [one for one in trials if not dropped_for(search, one)]
    return sorted(good, key=lambda one: (one.value or 0.0) * (1 if search.is_lower_better else -1))


def kept(search: Tuning, last: Round) -> tuple[str, ...]:
    """The candidates that go on to the next round, in their own order; one: the best."""
    best = {one.candidate for one in ranked(search, last.trials)[: math.ceil(len(last.trials) / search.keep)]}
    return tuple(one.candidate for one in last.trials if one.candidate in best)


def dropped_for(search: Tuning, trial: Trial, *, is_final: bool = False) -> str:
    """Why a candidate goes no further, whatever the others show; "" where it may.

    A short run drops a candidate only where its share is surely too low; a confirmation goes by the share itself.
    """
    if trial.value is None:
        return trial.reason or f"no {search.metric}"
    if search.slo is None or trial.within_slo is None or not trial.request_count:
        return ""
    share = trial.within_slo / trial.request_count
    most = share if is_final else wilson(trial.within_slo, trial.request_count)[1]
    if most >= search.slo.share_min:
        return ""
    return f"misses the SLO: {share:.1%} of {trial.request_count} requests keep it"


def _confirming(search: Tuning, last: Round) -> Step:
    """The best of the last round that no confirmation refused; the answer where one was confirmed, or none is left."""
    refused = []
    for one in search.confirmations:
        own, other = one.trials
        why = dropped_for(search, other, is_final=True)
        if not why:
            return _answer(search, one, own, other)
        refused.append(f"{other.candidate} was refused at full length: {why}")
    names = [one.candidate for one in ranked(search, last.trials)][len(refused) :]
    if names and names[0] != OWN:
        return Step((OWN, names[0]), search.full_count, is_confirmation=True)
    why = "; ".join([*refused, "the suite's own flags are the best of what was tried" if names else "none is left"])
    return Step(answer=f"no better flags were found: {why}")


def _answer(search: Tuning, one: Confirmation, own: Trial, trial: Trial) -> Step:
    flags = search.candidate(trial.candidate)
    if own.value is None:
        return Step(answer=f"nothing was confirmed: the suite's own flags have no value: {own.reason}")
    if one.ratio is None or one.ratio_low is None or one.ratio_high is None:
        return Step(answer=f"nothing was confirmed: {search.metric} is not known of both sides in two rounds")
    change = f"{search.metric} {_pct(one.ratio)} [{_pct(one.ratio_low)}, {_pct(one.ratio_high)}]"
    within = f", {_share(trial)} of its requests keep the SLO ({search.slo})" if search.slo else ""
    against = "against the suite's own flags"
    missed = dropped_for(search, own, is_final=True)
    if missed:
        return Step(
            answer=f"{flags}: {change} {against}; with those the engine {missed}{within}", winner=trial.candidate
        )
    if one.verdict == "gain":
        return Step(answer=f"{flags}: {change} {against}{within}", winner=trial.candidate)
    return Step(answer=f"no better flags were found: {flags} is the best: {change} {against}, {one.verdict}{within}")


def _standard(search: Tuning) -> str:
    return "has an accepted run" if search.slo is None else f"has an accepted run that keeps the SLO ({search.slo})"


def _pct(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def _share(trial: Trial) -> str:
    return f"{(trial.within_slo or 0) / max(trial.request_count, 1):.1%}"


NightKind = Literal["round", "confirmation"]


class TuningNight(StoredValue):
    """What one night of a search showed: tuning.json in its folder; `search` has all nights up to this one."""

    search: Tuning
    kind: NightKind
    next_step: str  # what followed, or the answer
    is_over: bool
