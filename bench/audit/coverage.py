"""Which numbers of a claim were held against arithmetic or physics, and what is missing for the rest.

A rule whose evidence could be computed checks the numbers listed for its column. Rules about the configuration alone,
such as whether the model fits in memory, check no number, and neither does the rule that no number is negative.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from bench import evidence_columns as ev
from bench.audit.claim import Claim, ClaimedTotals
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed
from bench.audit.evidence.roofline import OF_EACH

# Names that a rule needs together; a name that ends with `_` is every statistic of that metric.
Together = tuple[str, ...]
# The first of these of which every name was read is what the rule used.
FirstOf = tuple[Together, ...]

_NOT_RESULTS = {"started_at_s", "ended_at_s", "has_trimmed_rates", "is_cancelled", "stated_cause"}
_NOT_RESULTS |= {
    "mean_input_tokens",
    "mean_output_tokens",
    "osl_mismatch_count",
}  # as counted: they describe the requests, not the speed
_RESULTS = tuple(each.name for each in fields(ClaimedTotals) if each.name not in _NOT_RESULTS)

_REQUEST_RATE: FirstOf = (
    ("completed", "duration_s"),
    ("request_throughput_per_s",),
    ("output_throughput_tok_per_s",),
)
_TOTAL: FirstOf = (
    ("total_throughput_tok_per_s",),
    ("total_per_gpu_tok_per_s",),
    ("unstated_throughput_tok_per_s",),
)
_OUTPUT: FirstOf = (
    ("output_throughput_tok_per_s",),
    ("output_per_gpu_tok_per_s",),
    ("total_output_tokens", "duration_s"),
    ("request_throughput_per_s",),
    ("e2el_mean",),
    ("e2el_median",),
    *_TOTAL,
)
_TPOT: FirstOf = (("tpot_mean",), ("tpot_median",))
_MEDIAN: FirstOf = (("e2el_median",), ("ttft_median", "tpot_median"))
_MEAN: FirstOf = (("e2el_mean",), ("ttft_mean", "tpot_mean"), *_MEDIAN)
_SUM: FirstOf = (
    ("e2el_mean", "ttft_mean", "tpot_mean"),
    ("e2el_median", "ttft_median", "tpot_median"),
    ("e2el_mean", "tpot_mean"),
    ("e2el_median", "tpot_median"),
    ("e2el_mean", "latency_per_token_s"),
)
_DERIVED: tuple[FirstOf, ...] = (
    (("request_throughput_per_s", "completed", "duration_s"),),
    (("input_throughput_tok_per_s", "total_input_tokens", "duration_s"),),
    (("goodput_per_s", "good_count", "duration_s"),),
    (("total_throughput_tok_per_s", "total_input_tokens", "total_output_tokens", "duration_s"),),
    (("output_per_gpu_tok_per_s", "output_throughput_tok_per_s"),),
    (("total_per_gpu_tok_per_s", "total_throughput_tok_per_s"),),
    (("input_throughput_tok_per_s", "output_throughput_tok_per_s", "total_throughput_tok_per_s"),),
    (("input_throughput_tok_per_s", "e2el_mean"), ("total_throughput_tok_per_s", "e2el_mean")),
)
_THROUGHPUT: FirstOf = (
    ("output_throughput_tok_per_s", "total_output_tokens", "duration_s"),
    ("output_throughput_tok_per_s", "e2el_mean"),
)
# Only in a fixed batch does a rate follow from the latency.
_OF_BATCH = frozenset((f"{which}_throughput_tok_per_s", "e2el_mean") for which in ("input", "output", "total"))
_STATISTICS: tuple[FirstOf, ...] = ((("ttft_",),), (("tpot_",),), (("itl_",),), (("e2el_",),))
_COSTS: tuple[FirstOf, ...] = (
    (("usd_per_mtok_input",),),
    (("usd_per_mtok_output",),),
    (("usd_per_mtok_total",),),
)
_TRAINED: FirstOf = (("train_tflops_per_gpu",), ("train_tok_per_s_per_gpu",))

# Physics first: for a single number it is the input that helps most.
CHECKS: Mapping[str, tuple[FirstOf, ...]] = {
    ev.MBU: (_OUTPUT, _TPOT),
    ev.MBU_AMD: (_OUTPUT, _TPOT),
    ev.MFU: (_OUTPUT,),
    ev.PREFILL_SHARE: (tuple((f"ttft_{name}",) for name in ("mean", *OF_EACH)),),
    ev.TRAIN_MFU: (_TRAINED,),
    ev.TRAIN_TFLOPS_OVER_PEAK: (_TRAINED,),
    ev.THROUGHPUT_REL: (_THROUGHPUT,),
    ev.DERIVED_REL: _DERIVED,
    ev.TRIMMED_RATE_REL: (_THROUGHPUT, *_DERIVED),
    ev.TOKEN_SUM_DIFF: ((("total_output_tokens",),),),
    ev.INPUT_SUM_DIFF: ((("total_input_tokens",),),),
    ev.ARRAY_LENGTH_DIFF: ((("completed",),),),
    ev.STAT_REL: _STATISTICS,
    ev.PERCENTILE_DISORDER: _STATISTICS,
    ev.WINDOW_REL: ((("duration_s",),),),
    ev.LONGEST_OVER_DURATION: ((("e2el_", "duration_s"),),),
    ev.PEAK_OVER_MEAN: ((("peak_output_tok_per_s",),),),
    ev.UNIT_FACTOR: (_SUM,),
    ev.TPOT_REL: (_SUM,),
    ev.TPOT_LOOSE_REL: (_SUM,),
    ev.TPOT_OUTSIDE: (_SUM,),
    ev.E2EL_BROKEN_SHARE: (),
    ev.PER_USER_TIMES_TPOT: ((("per_user_tok_per_s",),), _TPOT),
    ev.LITTLE_OVER_ASKED: (_MEAN, _REQUEST_RATE),
    ev.LITTLE_LOOSE_OVER_ASKED: (_MEAN, _REQUEST_RATE),
    ev.IMPLIED_OVER_MEDIAN_E2EL: ((("e2el_median",),), _REQUEST_RATE),
    ev.IMPLIED_OVER_MEDIAN_SUM: (_MEDIAN, _REQUEST_RATE),
    ev.MEMORY_FIT_PRINTED: ((("printed_kv_cache_tokens",),),),
    ev.MEMORY_BUDGET_WRONG: ((("memory_",),),),
    ev.KV_CONCURRENCY_REL: ((("printed_kv_cache_tokens", "printed_kv_max_concurrency"),),),
    ev.COST_RATIO: _COSTS,
    ev.COST_DENOMINATOR_FITS: ((("usd_per_mtok_unstated",),),),
    ev.COST_UNIT_RATIO: (*_COSTS, (("usd_per_mtok_unstated",),)),
}

# Only these hold a range, a limit or a rough number.
_OF_BOUNDS = frozenset({ev.MBU, ev.MBU_AMD, ev.MFU, ev.PREFILL_SHARE, ev.TRAIN_MFU, ev.TRAIN_TFLOPS_OVER_PEAK})
# Of telemetry; they check a claim only if it states no other number.
_DEVICE_CHECKS = frozenset(
    {
        *(ev.POWER_OVER_CAP, ev.POWER_MEAN_OVER_CAP, ev.TEMP_MAX_C, ev.EDGE_OVER_JUNCTION_C),
        *(ev.ENERGY_REL, ev.ENERGY_PER_TOKEN_REL),
    }
)


@dataclass(frozen=True)
class Coverage:
    """How far a claim could be checked; `needs` are the missing inputs, as the findings name them.

    `is_checked` also counts checks of single requests' data, which have no name.
    """

    read: tuple[str, ...] = ()
    checked: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    is_checked: bool = False

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The numbers that were read and held against nothing."""
        return tuple(name for name in self.read if name not in self.checked)


def coverage_of(claim: Claim, evidence: EvidenceByColumn) -> Coverage:
    """How far these numbers of evidence check the claim."""
    read = tuple(_numbers(claim))
    rules = CHECKS.keys() if read else CHECKS.keys() | _DEVICE_CHECKS
    known = {column for column in rules if _is_known(evidence.get(column))}
    exact = tuple(name for name in read if name not in _names_of_bounds(claim))
    checked = frozenset(
        name
        for column in known
        for first in CHECKS.get(column, ())
        for name in _used(first, read if column in _OF_BOUNDS else exact, is_batch=bool(claim.asked.batch))
    )
    lacking = [each.what for column in CHECKS if isinstance(each := evidence.get(column), MissingInput)]
    is_complete = checked.issuperset(read)
    return Coverage(read, checked, () if is_complete else tuple(dict.fromkeys(lacking)), bool(known))


def _numbers(claim: Claim) -> Iterator[str]:
    """The results that were read: the stated totals and rates, and each statistic of a latency."""
    of_bounds = _names_of_bounds(claim)
    yield from (name for name in _RESULTS if getattr(claim.said, name) is not None and name not in of_bounds)
    names = (f"{metric}_{statistic}" for metric, known in claim.latency_s.items() for statistic in known)
    yield from (name for name in names if name not in of_bounds)
    yield from of_bounds
    yield from dict.fromkeys(name for line in claim.budget for name in line.names)


def _names_of_bounds(claim: Claim) -> tuple[str, ...]:
    return tuple(bound.name.replace(".", "_") for bound in claim.bounds)


def _is_known(evidence: Observed | MissingInput | None) -> bool:
    return isinstance(evidence, Observed) and not math.isnan(evidence.value)


def _used(first: FirstOf, read: tuple[str, ...], *, is_batch: bool) -> Iterator[str]:
    for together in (each for each in first if is_batch or each not in _OF_BATCH):
        found = [[name for name in read if _is_named(name, wanted)] for wanted in together]
        if all(found):
            yield from (name for names in found for name in names)
            return


def _is_named(name: str, wanted: str) -> bool:
    return name.startswith(wanted) if wanted.endswith("_") else name == wanted
