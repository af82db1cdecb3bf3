"""Evidence: a number with the arithmetic behind it, or the input that is missing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.catalog.rows import CatalogModel, Gpu


@dataclass(frozen=True)
class Observed:
    """One evidence number; `note` is the arithmetic behind it, for a person.

    `withholds` are columns that it removes from every view for comparison, whatever its status.
    """

    value: float
    note: str = ""
    withholds: tuple[str, ...] = ()


@dataclass(frozen=True)
class MissingInput:
    """Why a number could not be computed: which input is missing."""

    what: str


# By evidence column. An absent column does not apply to the claim.
EvidenceByColumn = dict[str, Observed | MissingInput]


def is_beside_others(evidence: EvidenceByColumn) -> bool:
    """Whether other processes or a hypervisor took more of the host during the load than its suite allows."""
    found = (evidence.get(column) for column in (ev.OTHER_CPU_OVER_ALLOWED, ev.STEAL_OVER_ALLOWED))
    return any(isinstance(one, Observed) and one.value > 1 for one in found)


@dataclass(frozen=True)
class Subject:
    """The catalogue's rows of a claim; None where it names none, or an unknown one."""

    gpu: Gpu | None = None
    model: CatalogModel | None = None
    precision: str | None = None  # of the weights, a key of bench.catalog.precisions.WEIGHT_BYTES
    kv_precision: str | None = None  # of the KV cache, likewise
    gpus: tuple[Gpu, ...] = ()  # where the name could be any of these, `gpu` is None
    precisions: tuple[str, ...] = ()  # likewise
    near_gpus: tuple[str, ...] = ()  # the nearest names, where the catalogue has no GPU of this one
    accelerator: str | None = None  # of which the catalogue has nothing but this name


RowEvidence = Callable[[Claim, Subject], EvidenceByColumn]
GroupEvidence = Callable[[Sequence[Claim]], Sequence[EvidenceByColumn]]


def observed(value: float | None, lacking: str, note: str = "") -> Observed | MissingInput:
    """The number, or what is missing for it."""
    return MissingInput(lacking) if value is None else Observed(value, note)
