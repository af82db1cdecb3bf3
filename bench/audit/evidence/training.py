"""Training throughput against the compute of the GPU, and a wrong unit."""

from collections.abc import Iterable

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.deployment import unknown
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed, Subject
from bench.catalog.rows import CatalogModel, Gpu
from bench.loadgen.drivers.command import CommandMetric
from bench.physics import training_flops

SHARE_IF_TOKENS_MAX = 1.0


def training_shares(claim: Claim, subject: Subject) -> EvidenceByColumn:
    """Share of the dense peak that training reaches; nothing for a claim that trains nothing."""
    said, gpu = claim.said, subject.gpu
    if claim.outcome != "measured" or (said.train_tflops_per_gpu is None and said.train_tok_per_s_per_gpu is None):
        return {}
    if gpu is None:
        return {ev.TRAIN_MFU: unknown("GPU", claim.asked.gpu, subject.near_gpus)}
    if subject.precision is None:
        return {ev.TRAIN_MFU: unknown("precision", claim.asked.precision)}
    peak = gpu.flops_per_s(subject.precision) / 1e12
    if said.train_tflops_per_gpu is not None:
        return _tflops(said.train_tflops_per_gpu, peak, subject.model, gpu)
    if subject.model is None:
        return {ev.TRAIN_MFU: unknown("model", claim.asked.model)}
    return {ev.TRAIN_MFU: _tokens(said.train_tok_per_s_per_gpu or 0.0, peak, subject.model, claim.asked.isl)}


def command_share(metrics: Iterable[CommandMetric], gpu: Gpu | None, gpu_count: int) -> EvidenceByColumn:
    """The highest share that a command's metrics in TFLOP/s reach; empty without one or a known GPU.

    The precision of a command is unknown, so its peak is the GPU's highest.
    """
    if gpu is None:
        return {}
    shares: list[Observed] = []
    for one in metrics:
        gpus = {"TFLOP/s/GPU": 1, "TFLOP/s": gpu_count}.get(one.unit)
        if gpus is not None:
            peak = gpus * gpu.highest_flops_per_s / 1e12
            note = f"{one.name}: {one.value:g} of {peak:.1f} dense TFLOP/s of {gpus} x {gpu.gpu}"
            shares.append(Observed(one.value / peak, note))
    return {ev.TRAIN_MFU: max(shares, key=lambda share: share.value)} if shares else {}


def _tflops(stated: float, peak: float, model: CatalogModel | None, gpu: Gpu) -> EvidenceByColumn:
    """Above the peak it may be tokens a second that stand under TFLOP/s: then the unit is named and nothing else."""
    share = Observed(stated / peak, f"{stated:g} of {peak:.1f} dense TFLOP/s of one {gpu.gpu}")
    if stated / peak <= 1.0:
        return {ev.TRAIN_TFLOPS_OVER_PEAK: Observed(stated / peak), ev.TRAIN_MFU: share}
    if model is None:
        return {ev.TRAIN_MFU: share}
    as_tokens = training_flops(model, 0.0) * stated / 1e12
    if as_tokens / peak > SHARE_IF_TOKENS_MAX:
        return {ev.TRAIN_MFU: share}
    note = (
        f"{stated:g} is {stated / peak:.1f} times the peak; as tokens per second per GPU it is {as_tokens:.0f} TFLOP/s"
    )
    return {ev.TRAIN_TFLOPS_OVER_PEAK: Observed(stated / peak, note)}


def _tokens(tok_per_s: float, peak: float, model: CatalogModel, length: float | None) -> Observed | MissingInput:
    tflops = training_flops(model, length or 0.0) * tok_per_s / 1e12
    return Observed(tflops / peak, f"{tok_per_s:g} tok/s per GPU are {tflops:.0f} of {peak:.1f} dense TFLOP/s")
