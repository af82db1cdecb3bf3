"""What a known-truth server wrote and when, and how far a load client's report of the same run is from it.

Error = what the client says - the truth of that same run. Source of the method: a server that stamps each chunk just
before it writes it, on the host of the client, so that both read one clock.
"""

import json
import math
from dataclasses import dataclass

import numpy as np

from bench.errors import UnreadableResultError
from bench.metrics import Floats, Ints

REQUEST = np.dtype([("id", "S64"), ("arrived_ns", "<i8"), ("prompt_tokens", "<i4"), ("asked_tokens", "<i4")])
EVENT = np.dtype([("request", "<u4"), ("tokens", "<u4"), ("due_ns", "<i8"), ("written_ns", "<i8")])
MIDDLE = (0.2, 0.8)  # of the measured window: ramp and drain are left out of what should be constant


@dataclass(frozen=True)
class Truth:
    """One run of the truth server; times are CLOCK_MONOTONIC nanoseconds.

    `ids`, `arrived_ns`, `asked_tokens`: a value a request, in order of arrival. `at`: (requests + 1,), each request's
    place in `written_ns`, `late_ns` and `tokens`, which hold a value a write, request after request.
    """

    ids: tuple[str, ...]
    arrived_ns: Ints
    asked_tokens: Ints
    at: Ints
    written_ns: Ints
    late_ns: Ints
    tokens: Ints
    cpu_s: float

    @property
    def count(self) -> Ints:
        """Writes of each request."""
        return np.diff(self.at)

    @property
    def ended_ns(self) -> Ints:
        """The last write of each request; its arrival where nothing was written."""
        return np.where(self.count > 0, self.written_ns[self.at[1:] - 1], self.arrived_ns)


def read_truth(text: bytes) -> Truth:
    """Read the log of infra/loadgen/truth/server.c; raises UnreadableResultError where it is none or was cut."""
    header, _newline, body = text.partition(b"\n")
    try:
        said = json.loads(header)
        request_bytes = said["requests"] * REQUEST.itemsize
        if len(body) != request_bytes + said["events"] * EVENT.itemsize:
            raise UnreadableResultError(f"the truth server's log holds {len(body)} bytes, not the number in its header")
        requests = np.frombuffer(body[:request_bytes], dtype=REQUEST)
        events = np.frombuffer(body[request_bytes:], dtype=EVENT)
        cpu_s = float(said["cpu_s"])
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableResultError(f"the truth server's log cannot be read: {error!r}") from error
    events = events[np.argsort(events["request"], kind="stable")]
    counts = np.bincount(events["request"], minlength=len(requests))
    return Truth(
        ids=tuple(name.decode() for name in requests["id"]),
        arrived_ns=requests["arrived_ns"],
        asked_tokens=requests["asked_tokens"].astype(np.int64),
        at=np.concatenate(([0], np.cumsum(counts))),
        written_ns=events["written_ns"],
        late_ns=events["written_ns"] - events["due_ns"],
        tokens=events["tokens"].astype(np.int64),
        cpu_s=cpu_s,
    )


@dataclass(frozen=True)
class ClientTimes:
    """What a client says of some requests: ids, times in nanoseconds of its own clock, and each token event's time.

    `at`: (requests + 1,), each request's place in `event_ns`.
    """

    ids: tuple[str, ...]
    send_ns: Ints
    at: Ints
    event_ns: Ints

    @property
    def ttft_ms(self) -> Floats:
        """Time to first token of each request with a token."""
        has = np.diff(self.at) > 0
        return np.asarray(self.event_ns[self.at[:-1][has]] - self.send_ns[has]) / 1e6

    @property
    def gaps_ms(self) -> Floats:
        """Every gap between two token events of one request."""
        return _gaps(self.event_ns, self.at)


def _gaps(times_ns: Ints, at: Ints) -> Floats:
    within = np.ones(max(len(times_ns) - 1, 0), dtype=np.bool_)
    borders = at[1:-1] - 1
    within[borders[(borders >= 0) & (borders < len(within))]] = False
    return np.asarray(np.diff(times_ns)[within]) / 1e6


def select(truth: Truth, ids: tuple[str, ...]) -> ClientTimes:
    """The truth of these requests, as a perfect client would have seen it; raises KeyError for one it never saw."""
    place = {name: index for index, name in enumerate(truth.ids)}
    return at_places(truth, np.array([place[name] for name in ids], dtype=np.int64))


def at_places(truth: Truth, places: Ints) -> ClientTimes:
    """The truth of the requests at these places in the order of arrival; for clients that send no ids."""
    counts = truth.count[places]
    at = np.concatenate(([0], np.cumsum(counts)))
    events = np.repeat(truth.at[places] - at[:-1], counts) + np.arange(at[-1])
    return ClientTimes(
        tuple(truth.ids[place] for place in places), truth.arrived_ns[places], at, truth.written_ns[events]
    )


def nearest_rank(values: Floats, share: float) -> float:
    """The smallest value with at least this share of all at or below it; NaN of nothing."""
    if len(values) == 0:
        return math.nan
    return float(np.sort(values)[max(math.ceil(share * len(values)) - 1, 0)])


def mean_live(truth: Truth, begin_ns: float, end_ns: float) -> float:
    """Streams alive between two moments, weighted by time."""
    overlap = np.minimum(truth.ended_ns, end_ns) - np.maximum(truth.arrived_ns, begin_ns)
    return float(np.maximum(overlap, 0).sum() / (end_ns - begin_ns))


def middle_of(seen: ClientTimes) -> tuple[float, float]:
    """The middle of the window in which these requests ran, nanoseconds."""
    begin, end = float(seen.send_ns.min()), float(seen.event_ns.max())
    return begin + MIDDLE[0] * (end - begin), begin + MIDDLE[1] * (end - begin)
