"""What evidence is made of: a number with the arithmetic behind it, or the name of what is missing for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.audit.claim import Claim
from bench.catalog.rows import CatalogModel, Gpu


@dataclass(frozen=True)
class Observed:
    """One evidence number; `note` is the arithmetic behind it, for a person.

    `withholds` are columns that this number takes out of every view for comparison, whatever the rule says of it.
    """

    value: float
    note: str = ""
    withholds: tuple[str, ...] = ()


@dataclass(frozen=True)
class MissingInput:
    """Why a number could not be computed: which input is missing."""

    what: str


# By evidence column. A column that is absent does not apply to the claim; one that applies and lacks an input says so.
EvidenceByColumn = dict[str, Observed | MissingInput]


@dataclass(frozen=True)
class Subject:
    """The catalogue's rows that a claim is about; None where it names none that is known."""

    gpu: Gpu | None = None
    model: CatalogModel | None = None
    precision: str | None = None  # of the weights, a key of bench.catalog.precisions.WEIGHT_BYTES
    kv_precision: str | None = None  # of the KV cache, likewise


RowEvidence = Callable[[Claim, Subject], EvidenceByColumn]
GroupEvidence = Callable[[Sequence[Claim]], Sequence[EvidenceByColumn]]


def observed(value: float | None, lacking: str, note: str = "") -> Observed | MissingInput:
    """The number, or what is missing for it."""
    return MissingInput(lacking) if value is None else Observed(value, note)
