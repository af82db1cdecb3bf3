"""A claim's model on its GPUs, as the rooflines need it, or the input that is missing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.audit.claim import Claim, ClaimedConfig
from bench.audit.evidence.evidence import MissingInput, Subject
from bench.catalog.precisions import WEIGHT_BYTES
from bench.catalog.rows import CatalogModel, Gpu
from bench.physics import Group

KV_LEAST_BYTES, KV_MOST_BYTES = 1.0, 2.0  # what engines store: at least 8 bits, and 16 by default


@dataclass(frozen=True)
class Deployment:
    """A model in `replicas` groups of GPUs that each hold all of it.

    If the precision of the KV cache is unknown, `group` has the lowest that engines use, so its memory is a lower
    bound.
    """

    model: CatalogModel
    group: Group
    replicas: float
    is_kv_known: bool
    kv_copies: float  # how often a group holds the KV of a sequence, at least

    @property
    def gpu_count(self) -> float:
        """GPUs of all groups."""
        return self.replicas * self.group.count

    @property
    def bytes_per_s(self) -> float:
        """Peak bandwidth of all groups."""
        return self.replicas * self.group.bytes_per_s

    @property
    def flops_per_s(self) -> float:
        """Dense peak of all groups."""
        return self.replicas * self.group.flops_per_s

    @property
    def at_most(self) -> Group:
        """The group with the widest KV elements that are possible, if their width is unknown."""
        return self.group if self.is_kv_known else replace(self.group, kv_bytes=KV_MOST_BYTES)


def deployment(claim: Claim, subject: Subject) -> Deployment | MissingInput:
    """Where the claim's model runs, or the missing input with the option that supplies it."""
    known = known_inputs(claim, subject)
    sizes = group_sizes(claim.asked)
    if isinstance(known, MissingInput):
        return known
    if isinstance(sizes, MissingInput):
        return sizes
    model, gpu, precision = known
    size, replicas = sizes
    kv_bytes = WEIGHT_BYTES.get(subject.kv_precision or "")
    group = Group(gpu, size, precision, kv_bytes or KV_LEAST_BYTES)
    return Deployment(model, group, replicas, kv_bytes is not None, _least_copies(model, claim.asked))


def known_inputs(claim: Claim, subject: Subject) -> tuple[CatalogModel, Gpu, str] | MissingInput:
    """Model, GPU and precision of the weights, or the first of them that is not known."""
    asked, model, gpu, precision = claim.asked, subject.model, subject.gpu, subject.precision
    if model is None:
        return unknown("model", asked.model)
    if gpu is None and subject.accelerator is not None:
        return MissingInput(f"the memory, bandwidth and peak of {subject.accelerator} are not in the catalogue")
    if gpu is None:
        return unknown("GPU", asked.gpu, subject.near_gpus)
    if precision is None:
        return unknown("precision", asked.precision)
    return model, gpu, precision


def unknown(what: str, said: str | None, near: Sequence[str] = ()) -> MissingInput:
    """The missing input where the claim names none, or one that the catalogue lacks."""
    nearest = f" (nearest: {', '.join(near)})" if near else ""
    why = "is unknown" if said is None else f"{said!r} is not in the catalogue{nearest}"
    return MissingInput(f"the {what} {why}: pass --{what.lower()}")


def group_sizes(asked: ClaimedConfig) -> tuple[int, float] | MissingInput:
    """GPUs of one group, and how many groups there are.

    If the tensor parallel size is unknown, all GPUs hold one copy: no other size allows more.
    """
    tensor = asked.tp_size or asked.gpu_count
    if tensor is None:
        return MissingInput("the number of GPUs per copy of the model is unknown: pass --tp")
    size = max(tensor * (asked.pp_size or 1), asked.ep_size or 1)
    count = asked.gpu_count or size * (asked.dp_size or 1)
    return size, max(1.0, count / size)


def _least_copies(model: CatalogModel, asked: ClaimedConfig) -> float:
    """KV heads cannot be cut, nor can MLA's latent; attention that is spread over the sequences needs no copies.

    Engines other than vLLM may spread MLA without a file that says so.
    """
    if (asked.dp_size or 1) > 1 or (asked.ep_size or 1) > 1:
        return 1.0
    if model.mla_kv_lora:
        is_spread = asked.dp_size is None and (asked.engine or "").lower() != "vllm"
        return 1.0 if is_spread else float(asked.tp_size or 1)
    return max(1.0, (asked.tp_size or 1) / model.n_kv_heads)
