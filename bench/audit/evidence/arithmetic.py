"""Whether the totals, rates and statistics of a file follow from one another."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bench import evidence_columns as ev
from bench.audit.claim import Claim, Metric
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed
from bench.audit.evidence.rates import stated_output_tok_per_s, stated_total_tok_per_s
from bench.audit.evidence.rounding import beyond, half_unit, looseness, rel, whole_multiple
from bench.audit.evidence.statistics import quantile
from bench.audit.evidence.successful import SuccessfulRequests
from bench.metrics import Floats, ratio
from bench.percentiles import of_ranks

SLIP = 0.99  # as far are numbers apart whose units are
FIRST_GAPS = 5.0  # mean gaps: an exponential first one is longer in one run of 150


def sums(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """Compare the arrays with their stated totals, and their length with the requested number."""
    together = _together(claim) | _slices(claim)
    if not answered.lengths:
        return {ev.TOKEN_SUM_DIFF: MissingInput("the data of each request is missing")} | together
    found: EvidenceByColumn = together | {ev.ARRAY_LENGTH_DIFF: _lengths(claim, answered)}
    if answered.series.is_ok is None and claim.said.failed:
        return found | {ev.TOKEN_SUM_DIFF: MissingInput("the file does not name the failed requests")}
    of = {ev.TOKEN_SUM_DIFF: "output", ev.INPUT_SUM_DIFF: "input"}
    for column, side in of.items():
        tokens = answered.output_tokens if side == "output" else answered.input_tokens
        stated = claim.said.total_output_tokens if side == "output" else claim.said.total_input_tokens
        if tokens is not None and stated is not None:
            counted = int(tokens.sum())
            found[column] = Observed(float(counted - stated), f"{counted} {side} tokens in the array, {stated} stated")
    return found


def _together(claim: Claim) -> EvidenceByColumn:
    """The total of all tokens against its two parts; nothing where one of the three is not stated."""
    said = claim.said
    parts = _both(said.total_input_tokens, said.total_output_tokens)
    if said.total_tokens is None or parts is None:
        return {}
    note = f"{said.total_input_tokens} in and {said.total_output_tokens} out, {said.total_tokens} stated together"
    return {ev.TOTAL_SUM_DIFF: Observed(said.total_tokens - parts, note)}


def _slices(claim: Claim) -> EvidenceByColumn:
    """The total that the time slices of a run miss most; nothing where a run has none."""
    if claim.sliced is None:
        return {}
    names = {"completed": "requests", "total_input_tokens": "prompt tokens", "total_output_tokens": "output tokens"}
    pairs = [(name, getattr(claim.sliced, field), getattr(claim.said, field)) for field, name in names.items()]
    known = [(inside - whole, name, inside, whole) for name, inside, whole in pairs if None not in (inside, whole)]
    if not known:
        return {ev.SLICE_SUM_DIFF: MissingInput("the totals of the time slices or of their run are missing")}
    off, name, inside, whole = max(known, key=lambda each: abs(each[0]))
    return {ev.SLICE_SUM_DIFF: Observed(float(off), f"{inside} {name} in the time slices, {whole} stated")}


def _lengths(claim: Claim, answered: SuccessfulRequests) -> Observed | MissingInput:
    """How many entries the array that is furthest off has too many or too few; some tools keep only good requests."""
    completed, failed = claim.said.completed, claim.said.failed
    tried = completed + failed if completed is not None and failed else None
    right = [count for count in (claim.asked.request_count, completed, tried) if count is not None]
    if not right:
        return MissingInput("the planned number of requests is unknown")
    off = {name: min((length - count for count in right), key=abs) for name, length in answered.lengths.items()}
    if not any(off.values()) and not answered.is_even:
        return Observed(
            float(max(answered.lengths.values()) - min(answered.lengths.values())), "the arrays have different lengths"
        )
    name = max(off, key=lambda each: abs(off[each]))
    return Observed(float(off[name]), f"{answered.lengths[name]} entries of {name}, {right[0]} requests")


Values = Mapping[str, tuple[float, ...]]  # by statistic: what each way to compute it gives


@dataclass(frozen=True)
class _Rate:
    name: str
    stated: float
    expected: float
    loose: float  # what printing explains

    @property
    def apart(self) -> float:
        return beyond(self.stated, self.expected, self.loose)

    @property
    def note(self) -> str:
        apart = f"{self.name} {self.stated:.6g} stated, {self.expected:.6g} computed, {rel(*self.both):.2%} apart"
        return apart + whole_multiple(self.stated, self.expected, self.loose)

    @property
    def both(self) -> tuple[float, float]:
        return self.stated, self.expected


def rates(claim: Claim) -> EvidenceByColumn:
    """Rates and mean lengths against totals, rates of a GPU against those of the system, and their sum."""
    stated = list(_rates(claim))
    if claim.said.has_trimmed_rates:
        return {ev.TRIMMED_RATE_REL: _worst(stated)}
    output = [rate for rate in stated if rate.name == "output tok/s"]
    rest = [rate for rate in stated if rate.name != "output tok/s"]
    found: EvidenceByColumn = {ev.THROUGHPUT_REL: _worst(output)}
    return found | ({ev.DERIVED_REL: _worst(rest)} if rest else {})


def _worst(of: list[_Rate]) -> Observed | MissingInput:
    if not of:
        return MissingInput("the duration, a total or a stated rate is missing")
    worst = max(of, key=lambda each: each.apart)
    return Observed(worst.apart, worst.note)


def _rates(claim: Claim) -> Iterator[_Rate]:
    said, gpus = claim.said, claim.asked.gpu_count
    total = said.total_tokens or _both(said.total_input_tokens, said.total_output_tokens)
    over_duration = (
        ("output tok/s", said.output_throughput_tok_per_s, said.total_output_tokens),
        ("requests/s", said.request_throughput_per_s, said.completed),
        ("goodput", said.goodput_per_s, said.good_count),
        ("input tok/s", said.input_throughput_tok_per_s, said.total_input_tokens),
        ("total tok/s", said.total_throughput_tok_per_s, total),
    )
    for name, rate, count in over_duration:
        if rate is not None and count and said.duration_s:
            yield _Rate(name, rate, count / said.duration_s, looseness(rate, said.duration_s))
    for name, mean, count in (
        ("mean output tokens", said.mean_output_tokens, said.total_output_tokens),
        ("mean prompt tokens", said.mean_input_tokens, said.total_input_tokens),
    ):
        if mean is not None and count and said.completed:
            yield _Rate(name, mean, count / said.completed, looseness(mean))
    yield from _of_lengths(claim)
    of_a_gpu = (
        ("output tok/s per GPU", said.output_per_gpu_tok_per_s, said.output_throughput_tok_per_s),
        ("total tok/s per GPU", said.total_per_gpu_tok_per_s, said.total_throughput_tok_per_s),
    )
    for name, rate, system in of_a_gpu:
        if rate is not None and system is not None and gpus:
            yield _Rate(name, rate, system / gpus, looseness(rate, system))
    parts = (said.input_throughput_tok_per_s, stated_output_tok_per_s(claim))
    together, whole = _both(*parts), stated_total_tok_per_s(claim)
    if together is not None and whole is not None:
        yield _Rate("total tok/s", whole, together, looseness(*parts, whole))
    yield from _of_batches(claim)


def _of_lengths(claim: Claim) -> Iterator[_Rate]:
    """Requests and prompts a second against output tokens a second, by the lengths that the totals give."""
    said, output = claim.said, stated_output_tok_per_s(claim)
    answer, prompts = ratio(said.total_output_tokens, said.completed), said.total_input_tokens
    if output is None or not answer or said.duration_s:
        return
    if said.request_throughput_per_s:
        rate = said.request_throughput_per_s
        yield _Rate("requests/s", rate, output / answer, looseness(rate, output))
    if said.input_throughput_tok_per_s and prompts and said.total_output_tokens:
        rate = said.input_throughput_tok_per_s
        yield _Rate("input tok/s", rate, output * prompts / said.total_output_tokens, looseness(rate, output))


def _of_batches(claim: Claim) -> Iterator[_Rate]:
    """The stated time of a batch for each token of an answer, and its rates; another check reports a wrong unit."""
    asked, said, e2el = claim.asked, claim.said, claim.latency("e2el", "mean")
    each, osl = said.latency_per_token_s, asked.osl
    if each and e2el and osl and rel(each, e2el / osl) < SLIP:
        yield _Rate("seconds per token", each, e2el / osl, looseness(each, e2el))
    if not e2el or not asked.batch or not asked.has_fixed_lengths or said.duration_s:
        return
    for name, rate, tokens in (
        ("output tok/s", said.output_throughput_tok_per_s, osl),
        ("input tok/s", said.input_throughput_tok_per_s, asked.isl),
        ("total tok/s", said.total_throughput_tok_per_s, _both(asked.isl, osl)),
    ):
        if rate is not None and tokens:
            yield _Rate(name, rate, asked.batch * tokens / e2el, looseness(rate, e2el))


def _both(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def statistics_again(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """Every statistic that is stated against the same one of the arrays; the one that is furthest off."""
    found = [each for metric, stated in claim.latency_s.items() for each in _again(answered, metric, dict(stated))]
    if not found:
        return {ev.STAT_REL: MissingInput("stated statistics or the times of each request are missing")}
    apart, note = max(found)
    return {ev.STAT_REL: Observed(apart, note)}


def _again(answered: SuccessfulRequests, metric: Metric, stated: dict[str, float]) -> Iterator[tuple[float, str]]:
    samples = answered.samples(metric)
    if samples is None or not len(samples):
        return
    # A number that ends with a zero hides how finely it was printed; its neighbours do not.
    half = min((half_unit(value) for value in stated.values() if value), default=0.0)
    quantiles = {name: q for name in stated if (q := quantile(name)) is not None}
    found = _moments(samples) | _percentiles(samples, quantiles)
    for name, values in (_by_token(answered, found, samples, quantiles) if metric == "tpot" else found).items():
        if name not in stated:
            continue
        nearest = min(values, key=lambda value: abs(value - stated[name]))
        apart = beyond(stated[name], nearest, half / max(abs(nearest), half) if half else 0.0)
        yield apart, f"{metric} {name} {stated[name]:.6g} s stated, {nearest:.6g} s computed from the requests"


def _moments(samples: Floats) -> dict[str, tuple[float, ...]]:
    """Each with the estimators in use: of the population or a sample."""
    with np.errstate(over="ignore", invalid="ignore"):  # a number too large to be squared has an infinite deviation
        mean, spread = float(samples.mean()), float(samples.std())
    several = len(samples) / max(1, len(samples) - 1)
    return {
        "mean": (mean,),
        "std": (spread, spread * several**0.5),
        "min": (float(samples.min()),),
        "max": (float(samples.max()),),
    }


def _by_token(
    answered: SuccessfulRequests, by_request: Values, samples: Floats, quantiles: Mapping[str, float]
) -> Values:
    """The statistics of TPOT by request, and beside each the one in which a request counts once for each token."""
    tokens = answered.output_tokens
    if tokens is None or (tokens > 1).sum() != len(samples):
        return by_request
    weights = tokens[tokens > 1] - 1
    order = np.argsort(samples)
    ordered, upto = samples[order], np.cumsum(weights[order])
    mean = float(np.average(samples, weights=weights))
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(np.average((samples - mean) ** 2, weights=weights)) ** 0.5
    ranks = {name: int(np.searchsorted(upto, q / 100 * upto[-1])) for name, q in quantiles.items()}
    weighted = {"mean": mean, "std": spread} | {name: float(ordered[rank]) for name, rank in ranks.items()}
    return {name: (*values, *((weighted[name],) if name in weighted else ())) for name, values in by_request.items()}


def _percentiles(samples: Floats, quantiles: dict[str, float]) -> dict[str, tuple[float, ...]]:
    """Each between its two nearest ranks, and at either of them."""
    if not quantiles:
        return {}
    asked = list(quantiles.values())
    ranks = np.asarray(asked) / 100 * (len(samples) - 1)
    below, above = np.floor(ranks).astype(np.int64), np.ceil(ranks).astype(np.int64)
    places, where = np.unique(np.concatenate((below, above)), return_inverse=True)
    low, high = of_ranks(samples, places)[where].reshape(2, -1)
    linear = low + (high - low) * (ranks - below)
    return {name: (float(linear[i]), float(low[i]), float(high[i])) for i, name in enumerate(quantiles)}


def window(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """First sending to last end against the duration, and the longest request against it."""
    duration, start, e2el = claim.said.duration_s, answered.start_s, answered.e2el_s
    found: EvidenceByColumn = {}
    longest = _longest(claim, answered)
    if longest is not None and duration:
        note = f"{longest:.6g} s in a window of {duration:.6g} s"
        found[ev.LONGEST_OVER_DURATION] = Observed(longest / duration, note)
    if duration is None or start is None or e2el is None or not len(start):
        return found | {ev.WINDOW_REL: MissingInput("the send time or latency of each request is missing")}
    seen = float(np.nanmax(start + e2el) - np.nanmin(start))
    loose = looseness(duration)
    if seen < duration:
        loose += _before_first(claim, answered) / duration
    # A failed request may have been the last.
    apart = 0.0 if seen < duration and claim.said.failed else beyond(seen, duration, loose)
    note = f"first send to last end {seen:.6g} s, duration {duration:.6g} s"
    return found | {ev.WINDOW_REL: Observed(apart, note)}


def _before_first(claim: Claim, answered: SuccessfulRequests) -> float:
    """An open loop waits before it sends its first request."""
    rate = claim.asked.request_rate_per_s
    return FIRST_GAPS / rate if answered.is_open_loop and rate else 0.0


def _longest(claim: Claim, answered: SuccessfulRequests) -> float | None:
    known = [value for name, value in claim.latency_s.get("e2el", {}).items() if name != "std"]
    samples = answered.samples("e2el")
    if samples is not None and len(samples):
        known.append(float(samples.max()))
    return max(known, default=None)
