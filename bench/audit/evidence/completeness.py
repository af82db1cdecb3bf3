"""Whether every request was answered, and whether the stated values are possible."""

from collections.abc import Iterator

import numpy as np

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed, observed
from bench.audit.evidence.rounding import looseness
from bench.audit.evidence.successful import SuccessfulRequests
from bench.metrics import Floats, Ints, ratio

CLASS_MIN = 5  # this many answers do not end at the same event by chance
TWO_CLASSES_MIN = 2 * CLASS_MIN
SHORT = 0.75  # of the usual length
ALMOST_ALL = 0.9  # of the answers are of the two lengths
DURATION_S = 60.0  # a measured window; LoadGen asks for ten times that


def completeness(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """Shares of failed, answered and completed requests, and the length of the window."""
    said, asked = claim.said, claim.asked
    failed = said.failed
    if failed is None and answered.series.is_ok is not None:
        failed = int((~answered.series.is_ok).sum())
    done = None if said.completed is None else said.completed + (failed or 0)
    found: EvidenceByColumn = {
        ev.FAILURE_SHARE: observed(
            None if failed is None or done is None else ratio(failed, done),
            "the numbers of completed and failed requests are unknown",
            f"{failed} of {done}",
        ),
        ev.ANSWERED_SHARE: observed(
            ratio(done, asked.request_count),
            "the numbers of planned and answered requests are unknown",
            f"{done} of {asked.request_count}",
        ),
        ev.DURATION_OVER_REQUIRED: _duration(answered),
    }
    if failed:
        found[ev.COMPLETED_SHARE] = observed(
            ratio(said.completed, asked.request_count),
            "the planned number of requests is unknown",
            f"{said.completed} of {asked.request_count}",
        )
    return found | _nothing(claim)


def _duration(answered: SuccessfulRequests) -> Observed | MissingInput:
    duration, iterations = answered.claim.said.duration_s, answered.series.iteration_s
    if duration is None and iterations is not None:
        duration = float(iterations.sum())
    return observed(
        ratio(duration, DURATION_S), "the duration is unknown", f"{duration or 0:.6g} s of {DURATION_S:g} s"
    )


def _nothing(claim: Claim) -> EvidenceByColumn:
    counted = {"requests completed": claim.said.completed, "output tokens": claim.said.total_output_tokens}
    none = [name for name, count in counted.items() if count == 0]
    if not none and all(count is None for count in counted.values()):
        return {ev.NOTHING_MEASURED: MissingInput("the numbers of completed requests and output tokens are unknown")}
    return {ev.NOTHING_MEASURED: Observed(float(len(none)), " and ".join(f"0 {name}" for name in none))}


def cut_short(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """Errors inside streams with status 200, which a client may count as answers; empty if no file shows them."""
    found: EvidenceByColumn = {}
    completed, without = claim.said.completed, claim.said.without_usage
    share = ratio(without, completed)
    if share is not None:
        found[ev.ANSWERS_WITHOUT_USAGE] = Observed(share, f"{without} of {completed}")
    events = answered.event_count
    if events is not None and len(events) >= TWO_CLASSES_MIN:
        found[ev.SHORT_ANSWERS] = _short_class(events)
    return found


def _short_class(events: Ints) -> Observed:
    """The share of the answers that all end at one event, where almost all others end at one that is far later."""
    lengths, counts = np.unique(events, return_counts=True)
    usual = int(counts.argmax())
    below = np.flatnonzero(lengths <= SHORT * lengths[usual])
    short = int(below[counts[below].argmax()]) if len(below) else usual
    together = (counts[usual] + counts[short]) / len(events)
    if short == usual or counts[short] < CLASS_MIN or together < ALMOST_ALL:
        return Observed(0.0)
    note = f"{counts[short]} of {len(events)} end at event {lengths[short]}, {counts[usual]} at {lengths[usual]}"
    return Observed(float(counts[short] / len(events)), note)


def cancelled(claim: Claim) -> EvidenceByColumn:
    """Whether the client reports a cancelled run; empty where it reports neither."""
    said = claim.said.is_cancelled
    return {} if said is None else {ev.CANCELLED: Observed(float(said))}


def impossible(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """How many times, counts and rates are below zero or infinite; a negative deviation is percentile_order's."""
    named = {**_numbers("", vars(claim.said)), **_numbers("asked ", vars(claim.asked))}
    named |= _numbers("server ", {} if claim.server is None else vars(claim.server))
    for metric, values in claim.latency_s.items():
        named |= _numbers(f"{metric} ", {name: value for name, value in values.items() if name != "std"})
    below = [f"{name} {value:g}" for name, value in named.items() if value < 0]
    good, all_of_them = claim.said.goodput_per_s, answered.request_rate_per_s
    is_too_good = good is not None and all_of_them is not None and good > all_of_them * (1 + looseness(good))
    if is_too_good:
        below.append(f"goodput {good:g} requests/s is above all {all_of_them:g}")
    arrays = dict(_arrays(answered))
    below += [f"{count} of {name}" for name, array in arrays.items() if (count := _outside(array))]
    entries = sum(_outside(array) for array in arrays.values())
    stated = sum(value < 0 for value in named.values()) + is_too_good
    return {ev.IMPOSSIBLE_VALUES: Observed(float(stated + entries), ", ".join(below))}


def _numbers(prefix: str, values: dict[str, object]) -> dict[str, float]:
    return {
        f"{prefix}{name}": float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _arrays(answered: SuccessfulRequests) -> Iterator[tuple[str, Floats | Ints]]:
    for name in ("input_tokens", "output_tokens", "ttft_s", "e2el_s", "gap_s", "iteration_s"):
        array = getattr(answered.series, name)
        if array is not None:
            yield name, array


def _outside(array: Floats | Ints) -> int:
    """One pass where there is nothing to find: series are long."""
    if not len(array) or (np.nanmin(array) >= 0 and np.nanmax(array) < np.inf):
        return 0
    return int((array < 0).sum() + np.isinf(array).sum())
