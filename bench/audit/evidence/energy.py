"""Power and energy of a run, against each other, the GPU's limits and the tokens."""

from bench import evidence_columns as ev
from bench.audit.claim import Claim, Device
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed, Subject
from bench.audit.evidence.rates import stated_output_tok_per_s, stated_total_tok_per_s
from bench.metrics import ratio


def energy_identities(claim: Claim, subject: Subject) -> EvidenceByColumn:
    """Evidence of the stated power and energy; empty without telemetry."""
    device = claim.device
    if device is None:
        return {}
    return {**_power(claim, subject, device), **_energies(claim, device)}


def _power(claim: Claim, subject: Subject, device: Device) -> EvidenceByColumn:
    mean_w = device.power_mean_w if device.power_mean_w is not None else _mean_of_energy(claim, device)
    highest_w = max((watts for watts in (device.power_max_w, mean_w) if watts is not None), default=None)
    if highest_w is None:
        return {}
    cap = device.power_cap_w or (subject.gpu.tdp_w if subject.gpu else None)
    if not cap:
        return {ev.POWER_OVER_CAP: MissingInput("the power cap and the GPU are unknown: pass --gpu")}
    found: EvidenceByColumn = {
        ev.POWER_OVER_CAP: Observed(highest_w / cap, f"{highest_w:.0f} W of one GPU, cap {cap:.0f} W")
    }
    if mean_w is not None:
        found[ev.POWER_MEAN_OVER_CAP] = Observed(mean_w / cap, f"mean power of one GPU {mean_w:.0f} W, cap {cap:.0f} W")
    return found


def _mean_of_energy(claim: Claim, device: Device) -> float | None:
    """Of one GPU, from the energy of the run's own GPUs."""
    if device.energy_scope != "gpus":
        return None
    return ratio(ratio(device.energy_j, claim.said.duration_s), claim.asked.gpu_count)


def _energies(claim: Claim, device: Device) -> EvidenceByColumn:
    stated, counted = device.energy_j, device.energy_counter_j
    known = [joules for joules in (stated, counted) if joules is not None]
    if not known:
        return {}
    bad = [joules for joules in known if joules <= 0]
    found: EvidenceByColumn = {
        ev.ENERGY_NOT_POSITIVE: Observed(float(len(bad)), ", ".join(f"{joules:g} J" for joules in bad))
    }
    if device.energy_scope is None:
        found[ev.ENERGY_UNATTRIBUTED] = Observed(1.0, "the file names neither the GPUs of the run nor the whole node")
    if bad:
        return found
    if stated is not None and counted is not None:
        note = f"{stated:.0f} J from the samples, {counted:.0f} J from the device's counter"
        found[ev.ENERGY_REL] = Observed(abs(stated - counted) / max(stated, counted), note)
    return found | _per_token(claim, device, known)


def _per_token(claim: Claim, device: Device, known: list[float]) -> EvidenceByColumn:
    """Energy over tokens against what is printed: that of the samples, of the counter or by power, what is nearest."""
    said, power_w = claim.said, _whole_power(claim, device)
    total = None
    if said.total_input_tokens is not None and said.total_output_tokens is not None:
        total = said.total_input_tokens + said.total_output_tokens
    rels = []
    for printed, count, rate in (
        (device.joules_per_output_token, said.total_output_tokens, stated_output_tok_per_s(claim)),
        (device.joules_per_total_token, total, stated_total_tok_per_s(claim)),
    ):
        by_count = [ratio(joules, count) for joules in known]
        computed = [own for own in (*by_count, ratio(power_w, rate)) if own]
        if computed and printed:
            rel, own = min((abs(printed - own) / max(printed, own), own) for own in computed)
            rels.append((rel, f"{printed:g} J per token stated, {own:.4g} from the totals"))
    return {ev.ENERGY_PER_TOKEN_REL: Observed(*max(rels))} if rels else {}


def _whole_power(claim: Claim, device: Device) -> float | None:
    """Mean power of the run's GPUs together, where the energy is theirs."""
    count = claim.asked.gpu_count
    known = device.energy_scope == "gpus" and device.power_mean_w is not None and count is not None
    return (device.power_mean_w or 0.0) * (count or 0) if known else None
