"""The cost of a token from the stated price and throughput, and units that are not stated."""

import math
from collections.abc import Mapping, Sequence

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed, Subject
from bench.audit.evidence.rates import input_tok_per_s, output_tok_per_s, total_tok_per_s
from bench.audit.evidence.roofline import computed_share
from bench.audit.evidence.rounding import half_unit
from bench.catalog.precisions import WEIGHT_BYTES
from bench.metrics import ratio
from bench.physics import least_flops

MTOK, HOUR_S = 1e6, 3600.0
COST_LOW, COST_HIGH = 0.98, 1.02
# Per thousand for per million, cents in thousandths, per token: what a unit slips by.
SLIPS = (1e3, 1e6, 1e-3, 1e-6)
SLIP_TOLERANCE = 0.1


def cost_identity(claim: Claim, subject: Subject) -> EvidenceByColumn:
    """Stated cost per million tokens over price divided by throughput; empty if no cost is stated."""
    said = claim.said
    stated = {
        "input": said.usd_per_mtok_input,
        "output": said.usd_per_mtok_output,
        "total": said.usd_per_mtok_total,
    }
    of_which = {which: usd for which, usd in stated.items() if usd is not None}
    if claim.outcome != "measured" or (not of_which and said.usd_per_mtok_unstated is None):
        return {}
    if claim.asked.usd_per_hour is None:
        lacking = MissingInput("the rental price is unknown: pass --usd-per-hour")
        return {ev.COST_RATIO: lacking} | _unstated(claim, {})
    computed = _computed(claim, claim.asked.usd_per_hour)
    if computed:
        return _unstated(claim, computed) | _identity(of_which, computed)
    lowest = min([*of_which.values(), *([] if said.usd_per_mtok_unstated is None else [said.usd_per_mtok_unstated])])
    return _beyond_peak(claim, subject, lowest) | _unstated(claim, computed)


def _computed(claim: Claim, usd_per_hour: float) -> dict[str, float]:
    """USD a million tokens by which tokens, as far as their throughput is known."""
    output, given = output_tok_per_s(claim), input_tok_per_s(claim)
    total = total_tok_per_s(claim)
    if total is None and output is not None and given is not None:
        total = output + given
    rates = {"input": given, "output": output, "total": total}
    return {which: usd_per_hour / (rate * HOUR_S) * MTOK for which, rate in rates.items() if rate}


def _identity(stated: Mapping[str, float], computed: Mapping[str, float]) -> EvidenceByColumn:
    if not stated:
        return {}
    known = {which: (usd, computed[which]) for which, usd in stated.items() if which in computed}
    if not known:
        return {ev.COST_RATIO: MissingInput(f"the throughput of {' or '.join(stated)} tokens is unknown")}
    which = max(known, key=lambda name: abs(nearest(*known[name]) - 1))
    usd, own = known[which]
    share = nearest(usd, own)
    note = f"{usd:g} USD per million {which} tokens stated, {own:.4g} from price over throughput"
    slip = next((factor for factor in SLIPS if abs(share / factor - 1) <= SLIP_TOLERANCE), None)
    if slip is None:
        return {ev.COST_RATIO: Observed(share, note)}
    return {ev.COST_UNIT_RATIO: Observed(share, f"{note}: a unit is off by {slip:g}")}


def _beyond_peak(claim: Claim, subject: Subject, usd: float) -> EvidenceByColumn:
    """Without a stated throughput: the cost over the least that price and peak arithmetic allow, if below that."""
    gpu, model, price = subject.gpu, subject.model, claim.asked.usd_per_hour
    lacking = MissingInput("the throughput of these tokens is unknown")
    if gpu is None or model is None or price is None or usd <= 0 or computed_share(claim) != 1.0:
        return {ev.COST_RATIO: lacking}
    # Whatever its precision is.
    peak = max(gpu.flops_per_s(precision) for precision in WEIGHT_BYTES) * (claim.asked.gpu_count or 1)
    rate, most = price / HOUR_S / usd * MTOK, peak / least_flops(model)
    if rate <= most:
        return {ev.COST_RATIO: lacking}
    note = (
        f"{price:g} USD/h at {usd:g} USD per million tokens is {rate:.0f} tok/s, above the {most:.0f} tok/s that "
        f"{gpu.gpu} can compute for {model.model}; per thousand tokens it would be {rate / 1e3:.3g} tok/s"
    )
    return {ev.COST_UNIT_RATIO: Observed(most / rate, note)}


def nearest(stated: float, computed: float) -> float:
    """Stated over computed, at the value nearest to the computed one that is still printed so.

    Infinite over 0, which a throughput near the largest number makes.
    """
    half = half_unit(stated)
    near = min(max(computed, stated - half), stated + half)
    return near / computed if computed else math.inf


def _unstated(claim: Claim, computed: Mapping[str, float]) -> EvidenceByColumn:
    """A cost that does not say of which tokens: those whose cost it is, or how far it is from the nearest."""
    usd = claim.said.usd_per_mtok_unstated
    if usd is None:
        return {}
    stated = f"{usd:g} USD per million tokens"
    fits = [which for which, own in computed.items() if COST_LOW <= nearest(usd, own) <= COST_HIGH]
    if fits:
        told = Observed(1.0, f"{stated}: price over throughput makes it {_line(claim, computed, fits)}")
        return {ev.COST_DENOMINATOR_FITS: told, ev.REMARKED_COST_DENOMINATOR_UNSTATED: Observed(0.0)}
    remark: EvidenceByColumn = {
        ev.REMARKED_COST_DENOMINATOR_UNSTATED: Observed(1.0, f"{stated}: it fits no known throughput")
    }
    if not computed:
        return remark
    # Prompts may be unknown, and then so is the cost of all tokens together, which is less than that of the answers.
    if "total" not in computed and usd < computed.get("output", 0.0):
        return remark
    each = sorted(computed, key=lambda name: abs(math.log(max(nearest(usd, computed[name]), 1e-9))))
    found = [_identity({which: usd}, {which: computed[which]}) for which in each]
    return remark | next((one for one in found if ev.COST_UNIT_RATIO in one), found[0])


def _line(claim: Claim, computed: Mapping[str, float], fits: Sequence[str]) -> str:
    """The tokens whose cost it is, each with the arithmetic that shows it."""
    price = claim.asked.usd_per_hour or 0.0
    rates = {which: price * MTOK / HOUR_S / computed[which] for which in fits}
    return " or ".join(
        f"that of {which} tokens ({price:g} USD/h / ({rate:.6g} tok/s x 3600 s) x 1e6 = {computed[which]:.4g})"
        for which, rate in rates.items()
    )


def token_units(claim: Claim, _subject: Subject) -> EvidenceByColumn:
    """Rates whose tokens or users are not what they are called."""
    found: EvidenceByColumn = {}
    said = claim.said
    if said.unstated_throughput_tok_per_s is not None:
        note = f"{said.unstated_throughput_tok_per_s:g} tokens per second, generated or total"
        found[ev.REMARKED_TOKENS_AMBIGUOUS] = Observed(1.0, note)
    if said.per_user_tok_per_s is not None and claim.outcome == "measured":
        found[ev.PER_USER_TIMES_TPOT] = _per_user(claim, said.per_user_tok_per_s)
    return found


def _per_user(claim: Claim, stated: float) -> Observed | MissingInput:
    """Tokens a second a user times the time a token takes: 1, by the mean or by the median."""
    paces = [pace for pace in (claim.latency("tpot", "mean"), claim.latency("tpot", "median")) if pace]
    if not paces:
        return MissingInput("TPOT is unknown")
    product = min((stated * pace for pace in paces), key=lambda value: abs(value - 1))
    share = ratio(output_tok_per_s(claim), claim.asked.concurrency)
    shared = share is not None and abs(share - stated) <= (COST_HIGH - 1) * stated
    why = f"; {share:.4g} is throughput over concurrency" if shared else ""
    return Observed(product, f"{stated:g} tok/s per user stated, TPOT {1e3 * min(paces):.4g} ms{why}")
