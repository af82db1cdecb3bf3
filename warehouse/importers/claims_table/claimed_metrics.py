"""The field, factor and remark for a metric of a claims table, by its name and unit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from warehouse.importers.claims_table.vocabulary import LATENCIES, metric_of, nearest
from warehouse.importers.parsing.printed_units import Unit, split_unit, unit_of

COUNTS = frozenset({"completed", "failed", "total_input_tokens", "total_output_tokens", "total_tokens"})
# The dimensions of the units that each field may have; "" means without a unit.
_DIMENSIONS: Mapping[frozenset[str], frozenset[str]] = {
    frozenset({"duration_s"}): frozenset({"s"}),
    frozenset({"latency_per_token_s", *LATENCIES}): frozenset({"s", "s/tok"}),
    frozenset(
        {
            *("input_throughput_tok_per_s", "output_throughput_tok_per_s", "total_throughput_tok_per_s"),
            *("unstated_throughput_tok_per_s", "peak_output_tok_per_s"),
        }
    ): frozenset({"tok/s", "/s"}),
    frozenset({"output_per_gpu_tok_per_s", "total_per_gpu_tok_per_s", "train_tok_per_s_per_gpu"}): frozenset(
        {"tok/s/gpu", "tok/s"}
    ),
    frozenset({"per_user_tok_per_s"}): frozenset({"tok/s/user", "tok/s"}),
    frozenset({"request_throughput_per_s"}): frozenset({"req/s", "/s"}),
    frozenset({"train_tflops_per_gpu"}): frozenset({"tflop/s/gpu", "tflop/s"}),
    frozenset({"usd_per_hour"}): frozenset({"usd/h", "usd", ""}),
    frozenset({"weights_gib"}): frozenset({"gib"}),
    frozenset({"printed_kv_cache_tokens"}): frozenset({"count", ""}),
    frozenset({"printed_kv_max_concurrency"}): frozenset({"times", ""}),
    frozenset(f"usd_per_mtok_{which}" for which in ("input", "output", "total", "unstated")): frozenset(
        {"usd/mtok", "usd", ""}
    ),
    COUNTS: frozenset({"count", ""}),
}
DIMENSIONS = {name: dimensions for names, dimensions in _DIMENSIONS.items() for name in names}
# A unit can say more than the name: output tokens per second are those of one GPU if the unit says so.
_BY_UNIT = {
    ("output_throughput_tok_per_s", "tok/s/gpu"): ("output_per_gpu_tok_per_s",),
    ("total_throughput_tok_per_s", "tok/s/gpu"): ("total_per_gpu_tok_per_s",),
    ("unstated_throughput_tok_per_s", "tok/s/gpu"): ("output_per_gpu_tok_per_s", "total_per_gpu_tok_per_s"),
    ("unstated_throughput_tok_per_s", "tok/s/user"): ("per_user_tok_per_s",),
    ("output_throughput_tok_per_s", "tok/s/user"): ("per_user_tok_per_s",),
    ("unstated_throughput_tok_per_s", "req/s"): ("request_throughput_per_s",),
    ("output_throughput_tok_per_s", "req/s"): ("request_throughput_per_s",),
}
_ASKED = ("usd_per_hour", "weights_gib")
_REMARKS = {
    "unstated_throughput_tok_per_s": "tokens_ambiguous",
    "usd_per_mtok_unstated": "cost_denominator_unstated",
}


@dataclass(frozen=True)
class Slot:
    """The target of a number: part of the claim, field (`e2el.mean` in `latency`), and factor.

    `remark` is a code for an ambiguity of the name; with scale None the unit is unknown and the number is ignored.
    """

    part: Literal["said", "latency", "asked"]
    field: str
    scale: float | None = 1.0
    remark: str | None = None


@dataclass(frozen=True)
class NoSlot:
    """Why a metric has no field of ours; `unlisted` is its name, if no spelling lists it."""

    why: str
    unlisted: str | None = None

    @property
    def nearest(self) -> str | None:
        """The name that is nearest to it; computed on demand, since that takes a while."""
        return None if self.unlisted is None else nearest(self.unlisted, "metric")


@lru_cache(maxsize=4096)
def slot_of(metric: str, unit: str) -> Slot | NoSlot:
    """The target of this metric, or why it has none."""
    meaning = metric_of(metric, unit)
    if meaning is None:
        return NoSlot("its name is not in catalog/spellings.csv", metric)
    of_row = split_unit(unit)[1]
    stated = meaning.unit or of_row
    candidates = _by_unit(meaning.candidates, stated)
    name, is_ambiguous = _generous(candidates), len(candidates) > 1
    if name is None:
        return NoSlot(f"it may be {' or '.join(candidates)}")
    slot = _slot(name, stated, is_known=_is_clear(meaning.unit, of_row, unit))
    has_statistic = slot.part != "latency" or "." in name
    is_ambiguous = is_ambiguous or not has_statistic
    return replace(slot, remark="metric_ambiguous") if is_ambiguous and slot.scale else slot


def _generous(candidates: tuple[str, ...]) -> str | None:
    """The one reading; of a gap between tokens or a mean over them, the one that fewer rules hold; None of others."""
    if len(candidates) == 1:
        return candidates[0]
    return candidates[0] if {name.partition(".")[0] for name in candidates} == {"itl", "tpot"} else None


def _by_unit(candidates: tuple[str, ...], unit: Unit | None) -> tuple[str, ...]:
    if len(candidates) > 1 or unit is None:
        return candidates
    return _BY_UNIT.get((candidates[0], unit.dimension), candidates)


def _is_clear(of_name: Unit | None, of_row: Unit | None, text: str) -> bool:
    """Whether name and row state the same unit, or only one of them states one."""
    if of_name and of_row:
        return of_name.agrees(of_row)
    return of_row is not None or not text.strip() or (of_name is not None and unit_of(text) is not None)


def _slot(name: str, unit: Unit | None, *, is_known: bool) -> Slot:
    part: Literal["said", "latency", "asked"] = "asked" if name in _ASKED else "said"
    part = "latency" if name.partition(".")[0] in LATENCIES else part
    dimension = unit.dimension if unit else ""
    if not is_known or dimension not in DIMENSIONS[name.partition(".")[0]]:
        return Slot(part, name, None, "unit_unknown")
    return Slot(part, name, unit.factor if unit else 1.0, _REMARKS.get(name))
