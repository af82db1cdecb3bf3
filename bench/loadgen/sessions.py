"""The sessions of a load: when each was open, how long it waited for its answers, and what it got."""

from dataclasses import dataclass

import numpy as np

from bench.metrics import UNKNOWN, Bools, Floats, Ints


@dataclass(frozen=True)
class Turns:
    """What is known of each request, warm-up included; times in seconds, NaN where it never got that far."""

    session: Ints  # UNKNOWN: it has none
    send_s: Floats
    done_s: Floats
    output_tokens: Ints
    is_ok: Bools
    is_measured: Bools


@dataclass(frozen=True)
class Sessions:
    """One value a session; `waited_s` is the sum of its requests' times, so without its pauses."""

    begin_s: Floats
    end_s: Floats
    waited_s: Floats
    output_tokens: Floats
    is_done: Bools  # every turn of it was answered
    is_measured: Bools  # no turn of it was warm-up

    def __len__(self) -> int:
        """How many there were."""
        return len(self.begin_s)

    @property
    def chosen(self) -> Bools:
        """Those that count: measured and answered."""
        return self.is_done & self.is_measured

    @property
    def e2e_s(self) -> Floats:
        """From the first request to the last answer, pauses included, of those that count."""
        found: Floats = (self.end_s - self.begin_s)[self.chosen]
        return found

    @property
    def tok_per_s(self) -> Floats:
        """Output tokens over the time that the session waited for them, of those that count."""
        found: Floats = (self.output_tokens / self.waited_s)[self.chosen]
        return found

    @property
    def open_mean(self) -> float | None:
        """The mean number that were open until the last one began; None if they all began at once."""
        begin, end = float(self.begin_s.min()), float(self.begin_s.max())
        if not end > begin:
            return None
        inside = np.minimum(self.end_s, end) - np.maximum(self.begin_s, begin)
        return float(np.maximum(inside, 0.0).sum() / (end - begin))


def sessions_of(turns: Turns) -> Sessions | None:
    """The sessions of these requests; None if no request belongs to one."""
    known = (turns.session != UNKNOWN) & ~np.isnan(turns.send_s)
    if not known.any():
        return None
    ids, at = np.unique(turns.session[known], return_inverse=True)
    begin_s, end_s = np.full(len(ids), np.inf), np.full(len(ids), -np.inf)
    send_s, done_s = turns.send_s[known], np.where(np.isnan(turns.done_s), turns.send_s, turns.done_s)[known]
    np.minimum.at(begin_s, at, send_s)
    np.maximum.at(end_s, at, done_s)
    return Sessions(
        begin_s,
        end_s,
        _sums(at, done_s - send_s),
        _sums(at, np.maximum(turns.output_tokens[known], 0)),
        # Also of turns that were never sent, since they could not connect.
        ~np.isin(ids, turns.session[~turns.is_ok]),
        ~np.isin(ids, turns.session[~turns.is_measured]),
    )


def _sums(at: Ints, values: Floats | Ints) -> Floats:
    return np.bincount(at, values).astype(np.float64)
