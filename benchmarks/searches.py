"""Probes and time of sweeps and searches for a known knee and goodput, beside plain doubling to the same error.

`python -m benchmarks searches` measures hundreds of searches of simulated servers; nothing is served. The plain way
doubles the load until the server is full, then halves the interval until it is as narrow as that of ours.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from bench.search.goodput import bracket_of, keeps_slo
from bench.search.probe import Probe
from bench.search.saturation import knee_of
from bench.suite.search import Goodput, Saturation
from benchmarks.bars import Bar, Benchmark, Measured
from tests.bench.search.servers import KneeServer, LawServer, search, sweep

SERVERS = 100  # of each kind
SHARE, BOUND_S, REQUESTS = 0.99, 0.5, 400
SWEEP, SEARCH = (
    Saturation(concurrency_max=1024),
    Goodput(request_rate_per_s_min=0.25, request_rate_per_s_max=64),
)
KNEE = Bar("searches.knee_error", "largest error of a known knee", "", 0.05, is_portable=True)
GOODPUT = Bar("searches.goodput_error", "largest error of a known goodput", "", 0.05, is_portable=True)
PROBES = Bar("searches.probes", "most probes of one sweep or search", "", 12, is_portable=True)
FEWER = Bar("searches.fewer_probes", "probes, plain doubling / ours", "x", 1.0, "at least", is_portable=True)
SOONER = Bar(
    "searches.less_time", "time of goodput probes, plain doubling / ours", "x", 1.0, "at least", is_portable=True
)


def doubling(low: float, full: Callable[[float], bool], width: float) -> int:
    """How many probes plain doubling takes until two loads, of which one is too much, are within a factor."""
    load, count = low, 1
    while not full(load):
        load, count = 2 * load, count + 1
    high, kept = load, load / 2
    while high / kept > width:
        middle = (high + kept) / 2
        high, kept = (middle, kept) if full(middle) else (high, middle)
        count += 1
    return count


def measure() -> Mapping[str, Measured]:
    """Search servers with drawn knees and goodputs."""
    knees, goodputs, counts, plain, seconds = [], [], list[int](), list[int](), np.zeros(2)
    for seed in range(SERVERS):
        drawn = np.random.default_rng(seed)
        knee = math.exp(drawn.uniform(math.log(6), math.log(300)))
        probes = sweep(SWEEP, KneeServer(knee, drawn.choice([math.inf, 4.0, 2.0, 1.0]), seed=seed))
        found = knee_of(SWEEP, probes)
        knees.append(math.inf if found is None else abs(found.concurrency / knee - 1))
        counts.append(len(probes))
        plain.append(doubling(1, lambda level, most=knee: level > most, 1 + 2 * SWEEP.precision))  # type: ignore[misc]
        server = LawServer(math.exp(drawn.uniform(math.log(2), math.log(50))), seed=seed)
        error, ours, theirs = _search(server)
        goodputs.append(error)
        counts.append(len(ours))
        plain.append(len(theirs))
        seconds += [sum(_seconds(server, one) for one in each) for each in (theirs, ours)]
    return {
        KNEE.name: Measured(max(knees)),
        GOODPUT.name: Measured(max(goodputs)),
        PROBES.name: Measured(float(max(counts))),
        FEWER.name: Measured(sum(plain) / sum(counts)),
        SOONER.name: Measured(float(seconds[0] / seconds[1])),
    }


def _search(server: LawServer) -> tuple[float, list[Probe], list[Probe]]:
    """The error of the goodput, the probes of ours, and those of plain doubling."""
    truth, probe = server.goodput_per_s(BOUND_S, SHARE), partial(server.probe, bound_s=BOUND_S)
    ours = search(SEARCH, SHARE, probe, REQUESTS)
    bracket, theirs = bracket_of(SHARE, ours), list[Probe]()

    def is_full(rate: float) -> bool:
        theirs.append(probe(rate, REQUESTS))
        return not keeps_slo(SHARE, [theirs[-1]] * 3)  # the point decides

    doubling(SEARCH.request_rate_per_s_min, is_full, (1 + SEARCH.precision) / (1 - SEARCH.precision))
    if bracket.low is None or bracket.high is None:
        return math.inf, ours, theirs
    return abs(math.sqrt(bracket.low * bracket.high) / truth - 1), ours, theirs


def _seconds(server: LawServer, probe: Probe) -> float:
    return probe.request_count / min(probe.load, server.capacity_per_s)


BENCHMARK = Benchmark("searches", (KNEE, GOODPUT, PROBES, FEWER, SOONER), measure, is_slow=False)
