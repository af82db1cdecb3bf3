"""Hold the rows of two files against each other: how many times faster, and on which terms.

A ratio says something only where all terms but one are equal: that one is what is compared.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.audit.claim import Claim, Metric
from bench.catalog.precisions import WEIGHT_BYTES

# Which way a term moves speed where it is larger; None: either way. In the order in which a reader asks for them.
_TERMS: Mapping[str, int | None] = {
    "model": None, "gpu": None, "gpu_count": 1, "tp_size": None, "pp_size": None, "dp_size": None, "ep_size": None,
    "precision": None, "kv_precision": None, "engine": None, "engine_version": None, "image": None,
    "isl": -1, "osl": None, "concurrency": 1, "batch": 1, "request_rate_per_s": 1, "request_count": None,
    "prefix_caching": 1, "has_distinct_prompts": -1, "is_speculative": 1, "spec_tokens_per_step": 1,
    "max_model_len": -1, "gpu_memory_utilization": 1,
}  # fmt: skip
_PRECISIONS = ("precision", "kv_precision")  # of which fewer bytes are faster
# Rows are of the same point of a sweep where these agree.
POINT = ("isl", "osl", "concurrency", "batch", "request_rate_per_s")
_RATES = (
    "output_throughput_tok_per_s", "total_throughput_tok_per_s", "input_throughput_tok_per_s",
    "unstated_throughput_tok_per_s", "request_throughput_per_s", "output_per_gpu_tok_per_s",
    "total_per_gpu_tok_per_s", "per_user_tok_per_s", "train_tflops_per_gpu", "train_tok_per_s_per_gpu",
)  # fmt: skip
_LATENCIES: tuple[Metric, ...] = ("ttft", "tpot", "itl", "e2el")


@dataclass(frozen=True)
class Difference:
    """A term that is not the same in both rows, or is stated in one of them only; `towards` is the row it speeds up."""

    term: str
    first: object
    second: object
    towards: str = ""

    @property
    def is_known(self) -> bool:
        """Whether both rows state it."""
        return self.first is not None and self.second is not None


@dataclass(frozen=True)
class Ratio:
    """A number that both rows state, and how many times the second's is the first's."""

    number: str
    first: float
    second: float

    @property
    def times(self) -> float:
        """The second over the first."""
        return self.second / self.first


@dataclass(frozen=True)
class Comparison:
    """Two rows side by side."""

    first: Claim
    second: Claim
    ratios: tuple[Ratio, ...]
    differences: tuple[Difference, ...]

    @property
    def stands(self) -> bool:
        """Whether one term at most differs and none is stated in one row only."""
        return len(self.differences) <= 1 and all(each.is_known for each in self.differences)


def compare(first: Sequence[Claim], second: Sequence[Claim]) -> list[Comparison]:
    """Each row of the first with the row of the second at the same point of the sweep, where both state a number.

    Rows of one model are paired before others; a single row of each is a pair, whatever its point.
    """
    return [each for one, other in _pairs(first, second) if (each := _compared(one, other)).ratios]


def _pairs(first: Sequence[Claim], second: Sequence[Claim]) -> Iterator[tuple[Claim, Claim]]:
    if len(first) == len(second) == 1:
        yield first[0], second[0]
        return
    left = list(second)
    for claim in first:
        same = [other for other in left if _point(other) == _point(claim)]
        if same:
            nearest = min(same, key=lambda other: len(differences(claim, other)))
            left.remove(nearest)
            yield claim, nearest


def _point(claim: Claim) -> tuple[Hashable, ...]:
    return tuple(getattr(claim.asked, name) for name in POINT)


def _compared(first: Claim, second: Claim) -> Comparison:
    return Comparison(first, second, tuple(_ratios(first, second)), tuple(differences(first, second)))


def _ratios(first: Claim, second: Claim) -> Iterator[Ratio]:
    others = numbers(second)
    for name, one in numbers(first).items():
        other = others.get(name)
        if one and other:
            yield Ratio(name, one, other)


def numbers(claim: Claim) -> dict[str, float]:
    """The rates and latencies that a row states, by name; latencies are seconds."""
    rates = {name: value for name in _RATES if (value := getattr(claim.said, name)) is not None}
    latencies = {
        f"{metric}_{statistic}_s": value
        for metric in _LATENCIES
        for statistic, value in claim.latency_s.get(metric, {}).items()
    }
    return rates | latencies


def differences(first: Claim, second: Claim) -> list[Difference]:
    """The terms that are not the same in both rows, or that only one of them states."""
    found = [_difference(name, getattr(first.asked, name), getattr(second.asked, name)) for name in _TERMS]
    one, other = first.said.interval_half_width_share, second.said.interval_half_width_share
    if (one is None) != (other is None):
        words = [("one run" if share is None else "mean of repeats") for share in (one, other)]
        found.append(Difference("repeats", *words))
    return [each for each in found if each is not None]


def _difference(term: str, first: object, second: object) -> Difference | None:
    if first == second:
        return None
    if isinstance(first, str) and isinstance(second, str) and first.lower() == second.lower():
        return None
    return Difference(term, first, second, _towards(term, first, second))


def _towards(term: str, first: object, second: object) -> str:
    """Which row the term is likely to speed up: `the first`, `the second`, or nothing where it may be either."""
    one, other = _size(term, first), _size(term, second)
    sign = -1 if term in _PRECISIONS else _TERMS[term]
    if one is None or other is None or sign is None or one == other:
        return ""
    return "the second" if (other > one) == (sign > 0) else "the first"


def _size(term: str, value: object) -> float | None:
    """How large a value is: the bytes of a weight of a precision, or a number itself; None of other words."""
    if term in _PRECISIONS:
        return WEIGHT_BYTES.get(str(value))
    return float(value) if isinstance(value, int | float) else None
