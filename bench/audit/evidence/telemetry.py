"""Whether the telemetry of a run exists and covers its whole window and its GPUs."""

from bench import evidence_columns as ev
from bench.audit.claim import Claim, Device
from bench.audit.evidence.deployment import Deployment, deployment
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed, Subject
from bench.audit.evidence.memory import shares_prefixes
from bench.audit.evidence.rates import decoding, mean_context
from bench.metrics import ratio
from bench.physics import GIB, checkpoint_bytes, kv_elements
from bench.wording import counted


def telemetry_worth(claim: Claim, subject: Subject) -> EvidenceByColumn:
    """Evidence of the samples; empty without telemetry."""
    device = claim.device
    if device is None:
        return {}
    found: EvidenceByColumn = {}
    if device.was_asked:
        found[ev.TELEMETRY_EMPTY] = _empty(device)
    if device.begin_s is not None and device.end_s is not None:
        found |= _window(claim, device, device.begin_s, device.end_s)
    if device.largest_gap_s is not None and device.period_s:
        periods = device.largest_gap_s / device.period_s
        found[ev.TELEMETRY_GAP_PERIODS] = Observed(
            periods, f"{device.largest_gap_s:g} s without a sample, sampling period {device.period_s:g} s"
        )
    return found | _devices(claim, device) | _states(device) | _held(claim, subject, device)


def _empty(device: Device) -> Observed | MissingInput:
    if device.sample_count is None:
        return MissingInput("the number of telemetry samples is unknown")
    return Observed(float(device.sample_count == 0), f"{device.sample_count} samples")


def _window(claim: Claim, device: Device, begin_s: float, end_s: float) -> EvidenceByColumn:
    """Seconds of the run that no sample is of, and how much longer than the run the samples go."""
    start, end = device.load_s or (claim.said.started_at_s, claim.said.ended_at_s)
    found: EvidenceByColumn = {}
    if start is None or end is None:
        found[ev.TELEMETRY_UNCOVERED_S] = MissingInput("the start and end of the load are unknown")
    else:
        missed = max(begin_s - start, end - end_s, 0.0)
        note = f"samples from {begin_s - start:+.1f} s after the start to {end_s - end:+.1f} s after the end"
        # The first and the last sample may be one period away from the edges.
        found[ev.TELEMETRY_UNCOVERED_S] = Observed(max(0.0, missed - (device.period_s or 0.0)), note)
    longer = ratio(end_s - begin_s, claim.said.duration_s)
    if longer is not None and device.load_s is None:  # else they were cut to the load
        found[ev.TELEMETRY_OVER_RUN] = Observed(longer, f"{end_s - begin_s:.0f} s of samples")
    return found


def _devices(claim: Claim, device: Device) -> EvidenceByColumn:
    found: EvidenceByColumn = {}
    if device.blank_count is not None:
        found[ev.DEVICE_BLANK] = Observed(float(device.blank_count))
    if device.device_count is not None:
        count = claim.asked.gpu_count
        found[ev.DEVICE_COUNT_DIFF] = (
            MissingInput("the number of GPUs is unknown")
            if count is None
            else Observed(
                abs(device.device_count - count), f"{counted(device.device_count, 'device')}, {counted(count, 'GPU')}"
            )
        )
    return found


def _states(device: Device) -> EvidenceByColumn:
    """Temperatures, throttling, errors and foreign memory, as far as they were read."""
    hottest = [value for value in (device.temp_edge_max_c, device.temp_junction_max_c) if value is not None]
    swapped = device.edge_over_junction_c
    if swapped is None and device.temp_edge_max_c is not None and device.temp_junction_max_c is not None:
        swapped = device.temp_edge_max_c - device.temp_junction_max_c
    known = {
        ev.EDGE_OVER_JUNCTION_C: swapped,
        ev.TEMP_MAX_C: max(hottest, default=None),
        ev.THROTTLED_SHARE: device.throttled_share,
        ev.ECC_ERRORS: device.ecc_errors,
        ev.ECC_CORRECTED: device.ecc_corrected,
        ev.CLOCK_DROP_SHARE: device.clock_drop_share,
        ev.CLOCK_APART_SHARE: device.clock_apart_share,
        ev.FOREIGN_GIB: device.foreign_gib_at_start,
    }
    found: EvidenceByColumn = {column: Observed(float(value)) for column, value in known.items() if value is not None}
    if device.kernel_errors is not None:
        found[ev.GPU_KERNEL_ERRORS] = Observed(float(len(device.kernel_errors)), "; ".join(device.kernel_errors[:3]))
    return found


def _held(claim: Claim, subject: Subject, device: Device) -> EvidenceByColumn:
    """Memory in use over what weights and KV take at least."""
    if device.used_gib is None or claim.outcome != "measured":
        return {}
    on = deployment(claim, subject)
    if isinstance(on, MissingInput):
        return {ev.MEMORY_USED_SHARE: on}
    need = _needed_gib(claim, on)
    used = device.used_gib * on.gpu_count
    return {ev.MEMORY_USED_SHARE: Observed(used / need, f"{used:.1f} GiB in use, {need:.1f} GiB of weights and KV")}


def _needed_gib(claim: Claim, on: Deployment) -> float:
    running, context = decoding(claim), mean_context(claim)
    weights = checkpoint_bytes(on.model, on.group.precision) * on.replicas
    if running is None or context is None or shares_prefixes(claim):
        return weights / GIB
    return (weights + running * kv_elements(on.model, context) * on.group.kv_bytes * on.kv_copies) / GIB
