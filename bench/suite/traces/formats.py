"""The formats of traces by the name that a suite gives them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from bench.suite.traces import arrivals, azure, mooncake, weka
from bench.suite.traces.row import TraceRow

TraceFormat = Literal["arrivals", "azure", "mooncake", "aiperf", "weka"]
WITH_SESSIONS: frozenset[TraceFormat] = frozenset({"aiperf", "weka"})
WITHOUT_TIMES: frozenset[TraceFormat] = frozenset({"weka"})  # each session counts from its own begin

# Each reads the lines of a file, of any length, and raises SuiteError with the line that is not valid.
READERS: Mapping[TraceFormat, Callable[[Iterator[str], str], Iterator[TraceRow]]] = {
    "arrivals": arrivals.read,
    "azure": azure.read,
    "mooncake": mooncake.read,
    "aiperf": mooncake.read,
    "weka": weka.read,
}
