"""A search in a night: the run that follows from the probes until now, and what they show when it ends."""

from collections.abc import Sequence
from typing import Literal

from bench.frozen import StoredValue
from bench.search import goodput, saturation
from bench.search.probe import Probe
from bench.suite.load_search import closed_load
from bench.suite.scenario import Scenario
from bench.suite.search import Goodput, Saturation
from bench.suite.slo import Slo
from bench.suite.suite import ScenarioEntry, Suite


class ProbeStatus(StoredValue):
    """One probe of a search and what it is: a sweep's status, or whether the rate keeps the SLO."""

    probe: Probe
    status: str


class SearchResult(StoredValue):
    """What one repeat of a search found: `value` lies between `low` and `high`; None where that is not known.

    The knee is in requests in flight, the goodput in requests per second.
    """

    search: str
    repeat: int
    kind: Literal["saturation", "goodput"]
    value: float | None
    low: float | None
    high: float | None
    is_over: bool  # False: the night ended before it
    why: str  # it stopped
    probes: tuple[ProbeStatus, ...]

    def __str__(self) -> str:
        """`users #0: knee at 104 requests in flight (98 to 110): throughput no longer rises; 9 probes`."""
        what, unit = ("knee", " requests in flight") if self.kind == "saturation" else ("goodput", " requests/s")
        value = "unknown" if self.value is None else f"{self.value:.4g}{unit}"
        ends = ["unknown" if end is None else f"{end:.4g}" for end in (self.low, self.high)]
        return f"{self.search} #{self.repeat}: {what} {value} ({ends[0]} to {ends[1]}): {self.why}"


class NightSearches(StoredValue):
    """What the searches of a night found: searches.json in its folder."""

    searches: tuple[SearchResult, ...]


def next_probe(entry: ScenarioEntry, slo: Slo | None, first: Scenario, probes: Sequence[Probe]) -> Scenario | None:
    """The scenario to probe next, of a search that begins with `first`; None where it is at its end."""
    search = entry.search
    if search is None:
        return None
    if isinstance(search, Saturation):
        level = saturation.next_level(search, probes)
        return None if level is None else _with_load(first, f"concurrency={level}", **closed_load(search, level))
    found = goodput.next_rate(search, _share(slo), probes)
    if found is None:
        return None
    rate, factor = found
    count = first.workload.request_count * factor
    more = "" if factor == 1 else f",requests={count}"
    return _with_load(first, f"rate={rate:g}{more}", request_rate_per_s=rate, request_count=count)


def result_of(entry: ScenarioEntry, slo: Slo | None, repeat: int, probes: Sequence[Probe]) -> SearchResult:
    """What the probes of a search show; ValueError of an entry that is none."""
    search = entry.search
    if search is None:
        msg = f"{entry.name} is not a search"
        raise ValueError(msg)
    if isinstance(search, Saturation):
        value, low, high, why = _knee(search, probes)
        states: Sequence[str] = saturation.statuses(search, probes)
        is_over = bool(probes) and saturation.next_level(search, probes) is None
    else:
        value, low, high, why = _goodput(search, slo, probes)
        states = [_kept(_share(slo), probes, probe) for probe in probes]
        is_over = bool(probes) and goodput.next_rate(search, _share(slo), probes) is None
    return SearchResult(
        search=entry.name,
        repeat=repeat,
        kind=search.kind,
        value=value,
        low=low,
        high=high,
        is_over=is_over,
        why=why if is_over else "the night ended before the search",
        probes=tuple(ProbeStatus(probe=one, status=state) for one, state in zip(probes, states, strict=True)),
    )


Found = tuple[float | None, float | None, float | None, str]


def _knee(search: Saturation, probes: Sequence[Probe]) -> Found:
    if not probes:
        return None, None, None, "no probe was run"
    ended, knee = saturation.ended(search, probes), saturation.knee_of(search, probes)
    lowest = min(one.load for one in probes)
    if ended == "failed":
        why = probes[0].reason or f"{probes[0].success_share:.0%} of its requests succeeded"
        return None, None, None, f"the lowest level, {lowest:g}, fails: {why}"
    reasons = {
        "failing": "a higher level fails",
        "saturated": "throughput no longer rises",
        "maximum": "the highest level is reached",
        None: "probes_max is reached",
    }
    if knee is None:
        return None, None, None, f"{reasons[ended]}, and too few levels work for a knee; {len(probes)} probes"
    states = saturation.statuses(search, probes)
    highest = max(one.load for one, state in zip(probes, states, strict=True) if state != "FAILING")
    if knee.high is None or (ended == "maximum" and knee.concurrency > highest):
        return None, knee.low, None, f"throughput still rises at the highest level that works, {highest:g}"
    return knee.concurrency, knee.low, knee.high, f"{reasons[ended]}; {len(probes)} probes"


def _goodput(search: Goodput, slo: Slo | None, probes: Sequence[Probe]) -> Found:
    if not probes:
        return None, None, None, "no probe was run"
    share = _share(slo)
    bracket = goodput.bracket_of(share, probes)
    low, high, count = bracket.low, bracket.high, f"{len(probes)} probes"
    match goodput.ending(search, share, probes):
        case "failed":
            return None, None, None, f"the first probe failed: {probes[0].reason}"
        case "none":
            lowest = min(probes, key=lambda one: one.load)
            within = (lowest.within_slo or 0) / lowest.request_count
            why = (
                f"no rate keeps the SLO ({slo}): at {lowest.load:g}/s, the lowest, {within:.0%} of the requests keep it"
            )
            return None, None, lowest.load, why
        case "at-least":
            return None, low, None, f"at least {low:g}/s, the highest rate of the search, keeps the SLO; {count}"
        case "precise":
            why = f"the interval is narrow enough; {count}"
        case _:
            why = f"probes_max is reached; {count}"
    value = None if low is None or high is None else float(f"{(low * high) ** 0.5:.4g}")
    return value, low, high, why


def _kept(share_min: float, probes: Sequence[Probe], probe: Probe) -> str:
    if probe.reason:
        return "FAILING"
    kept = goodput.keeps_slo(share_min, [one for one in probes if one.load == probe.load])
    return "UNSURE" if kept is None else "KEPT" if kept else "MISSED"


def _share(slo: Slo | None) -> float:
    return Slo.model_fields["share_min"].default if slo is None else slo.share_min


def _with_load(first: Scenario, label: str, **load: float) -> Scenario:
    """The scenario under another load; the first one itself where the load is its own."""
    workload = first.workload.model_copy(update=load)
    if workload == first.workload:
        return first
    return first.model_copy(update={"name": f"{first.name}/{label}", "workload": workload})


def longest_course(entry: ScenarioEntry, first: Scenario) -> list[Scenario]:
    """The probes of the longest course of a search, all that it may have: what a plan and a calibration expect.

    A sweep's throughput never stops rising; of a search's rates, only the lowest keeps the SLO.
    """
    search, course, probes = entry.search, list[Scenario](), list[Probe]()
    slo = search.slo if isinstance(search, Goodput) else None
    following: Scenario | None = first
    while following is not None:
        course.append(following)
        probes.append(_expected(following, is_within=following is first))
        following = next_probe(entry, slo, first, probes)
    missing = (0 if search is None else search.probes_max) - len(course)
    return course + [course[-1]] * missing


def loads_of(suite: Suite, scenario: Scenario) -> list[Scenario]:
    """The loads of one run in a plan: the scenario alone, or each probe of the longest course of its search."""
    entry = suite.search_of(scenario.name)
    return [scenario] if entry is None else longest_course(entry, scenario)


def _expected(scenario: Scenario, *, is_within: bool) -> Probe:
    work = scenario.workload
    return Probe.of(
        scenario,
        completed=work.request_count,
        within_slo=work.request_count if is_within else 0,
        output_throughput_tok_per_s=float(work.concurrency or 1),
        held_share=1.0,
    )
