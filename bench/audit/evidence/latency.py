"""Whether the latencies of a request, and their means, add up, each in the unit that its name says."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench import evidence_columns as ev
from bench.audit.claim import Claim, Metric
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed
from bench.audit.evidence.rounding import half_unit, looseness, rel
from bench.audit.evidence.successful import SuccessfulRequests

E2EL_TOLERANCE_S = 1e-3
E2EL_TOLERANCE_SHARE = 0.01
UNIT = 1000.0  # between s and ms, and ms and us
FITS = 0.25  # medians do not add: 12 % off in one public file in ten, 48 % in the worst


def e2el_identity(_claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """The share of requests whose TTFT and gaps are not their E2EL within 1 ms or 1 %.

    Where the client times TPOT by itself, its E2EL is that of the whole exchange: it may be longer.
    """
    ttft, e2el, gaps = answered.ttft_s, answered.e2el_s, answered.gap_sum_s
    if ttft is None or e2el is None or gaps is None or not len(e2el):
        return {ev.E2EL_BROKEN_SHARE: MissingInput("E2EL, TTFT or the gaps of each request are missing")}
    residual = ttft + gaps - e2el
    residual = np.abs(residual) if answered.series.tpot_s is None else np.maximum(residual, 0.0)
    # Not `residual > allowed`: that would let a good request without its times pass.
    broken = ~(residual <= np.maximum(E2EL_TOLERANCE_S, E2EL_TOLERANCE_SHARE * e2el))
    worst = int(np.nanargmax(np.where(np.isnan(residual), 0.0, residual)))
    note = f"request {worst}: {ttft[worst]:.6g} + {gaps[worst]:.6g} s, E2EL {e2el[worst]:.6g} s" if broken.any() else ""
    return {ev.E2EL_BROKEN_SHARE: Observed(float(broken.mean()), note)}


def sums_of_means(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """E2EL = TTFT + TPOT * (tokens - 1) of means, else of medians; a factor of 1000 is reported once, as a unit."""
    slip = _slip(claim, answered)
    found: EvidenceByColumn = {ev.UNIT_FACTOR: slip}
    if isinstance(slip, Observed) and slip.value != 1.0:
        return found
    return found | _tpot(claim, answered)


def _tpot(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    e2el, ttft, tpot = (answered.mean(metric) for metric in ("e2el", "ttft", "tpot"))
    osl = answered.mean_osl
    if osl is None or osl <= 1:
        return {ev.TPOT_REL: MissingInput("mean output tokens are unknown, or not above one")}
    if e2el is None or ttft is None or tpot is None:
        return _tpot_of_medians(answered, osl)
    implied = (e2el - ttft) / (osl - 1)
    # A stream may end with an event that brings no token; E2EL then holds one gap more.
    loose = 1 / (osl - 1) + looseness(tpot) + _loose_sum(e2el, ttft)
    apart = max(0.0, rel(implied, tpot) - loose)
    note = f"({e2el:.6g} - {ttft:.6g}) / {osl - 1:.6g} = {implied:.6g} s, {tpot:.6g} s stated"
    outside = _outside(claim, implied, loose)
    if answered.tpot_s is not None and answered.series.tpot_s is None and not answered.has_equal_lengths:
        # The TPOT of each request is known, and the mean is held against these: means add only roughly.
        return outside
    is_exact = answered.has_equal_lengths and answered.tpot_s is None
    found: EvidenceByColumn = {ev.TPOT_REL if is_exact else ev.TPOT_LOOSE_REL: Observed(apart, note)}
    return found | outside


def _loose_sum(e2el: float, ttft: float) -> float:
    return (half_unit(e2el) + half_unit(ttft)) / abs(e2el - ttft) if e2el != ttft else 0.0


def _tpot_of_medians(answered: SuccessfulRequests, osl: float) -> EvidenceByColumn:
    e2el, ttft, tpot = (answered.median(metric) for metric in ("e2el", "ttft", "tpot"))
    if e2el is None or ttft is None or tpot is None:
        return {ev.TPOT_REL: MissingInput("no statistic has E2EL, TTFT and TPOT")}
    whole = ttft + (osl - 1) * tpot
    note = f"medians: {ttft:.6g} + {osl - 1:.6g} * {tpot:.6g} = {whole:.6g} s, {e2el:.6g} s stated"
    return {ev.TPOT_LOOSE_REL: Observed(rel(whole, e2el), note)}


def _outside(claim: Claim, implied: float, loose: float) -> EvidenceByColumn:
    """A token-weighted mean lies between the least and the largest."""
    least, most = claim.latency("tpot", "min"), claim.latency("tpot", "max")
    if least is None or most is None:
        return {}
    beyond = max(least - implied, implied - most, 0.0) / max(abs(implied), 1e-12)
    note = f"{implied:.6g} s from the means, {least:.6g} to {most:.6g} s stated"
    return {ev.TPOT_OUTSIDE: Observed(max(0.0, beyond - loose), note)}


def _slip(claim: Claim, answered: SuccessfulRequests) -> Observed | MissingInput:
    """What one latency must be multiplied by for its identity to hold; 1 where it holds, or where nothing helps."""
    sides = [*_sums(answered), *_of_batches(claim, answered), *_restated(claim, answered)]
    if not sides:
        return MissingInput("E2EL and TPOT of one statistic, or the mean output tokens, are missing")
    found = [
        (by, f"{side.note}; they agree once {name} is multiplied by {by:g}")
        for side in sides
        for name, by in side.slips
    ]
    return Observed(*found[0]) if found else Observed(1.0)


@dataclass(frozen=True)
class _Side:
    """A whole and its parts, in seconds."""

    note: str
    whole: tuple[str, float]
    parts: dict[str, float]
    scalable: tuple[str, ...]

    @property
    def slips(self) -> list[tuple[str, float]]:
        """Which of them times or over 1000 mends a sum that is broken; the one that mends it best, or none."""
        if self._apart("", 1.0) <= FITS:
            return []
        tried = [(self._apart(name, by), name, by) for name in self.scalable for by in (UNIT, 1 / UNIT)]
        apart, name, by = min(tried)
        return [(name, by)] if apart <= FITS else []

    def _apart(self, scaled: str, by: float) -> float:
        name, whole = self.whole
        whole *= by if scaled == name else 1.0
        return rel(whole, sum(value * (by if scaled == part else 1.0) for part, value in self.parts.items()))


def _sums(answered: SuccessfulRequests) -> Iterator[_Side]:
    """TTFT + TPOT * (tokens - 1) = E2EL, of means and, where there are none, of medians; without TTFT it is 0."""
    osl = answered.mean_osl
    if osl is None or osl <= 1:
        return
    for name, of in (("mean", answered.mean), ("median", answered.median)):
        e2el, ttft, tpot = of("e2el"), of("ttft"), of("tpot")
        if e2el is None or tpot is None:
            continue
        parts = {"TTFT": ttft or 0.0, "TPOT": tpot * (osl - 1)}
        note = f"{name} E2EL {e2el:.6g} s, TTFT {ttft or 0:.6g} s, TPOT {tpot:.6g} s * {osl - 1:.6g}"
        # A median TTFT is so small a part that a chance gap of medians could be filled with it.
        scalable = ("E2EL", "TPOT") if ttft is None or name == "median" else ("E2EL", "TPOT", "TTFT")
        yield _Side(note, ("E2EL", e2el), parts, scalable)
        return


def _of_batches(claim: Claim, answered: SuccessfulRequests) -> Iterator[_Side]:
    """A batch's latency, against what is stated of it for each token of an answer."""
    e2el, each, osl = answered.mean("e2el"), claim.said.latency_per_token_s, claim.asked.osl
    if e2el is None or each is None or osl is None:
        return
    note = f"latency {e2el:.6g} s, and {each:.6g} s a token * {osl:.6g} tokens"
    yield _Side(note, ("latency", e2el), {"latency a token": each * osl}, ("latency", "latency a token"))


def _restated(claim: Claim, answered: SuccessfulRequests) -> Iterator[_Side]:
    """A mean that is stated, against that of the arrays."""
    metrics: tuple[Metric, ...] = ("ttft", "tpot", "itl", "e2el")
    for metric in metrics:
        stated, samples = claim.latency(metric, "mean"), answered.samples(metric)
        if stated is None or samples is None or not len(samples):
            continue
        counted = float(samples.mean())
        name = f"mean {metric.upper()}"
        yield _Side(
            f"{name} {stated:.6g} s stated, {counted:.6g} s in the arrays", (name, stated), {"": counted}, (name,)
        )
