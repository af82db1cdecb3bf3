"""What a claim says of its tokens: how many a second, how long, and how many requests together."""

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, observed
from bench.audit.evidence.rounding import looseness
from bench.metrics import ratio


def mean_isl(claim: Claim) -> float | None:
    """Mean tokens of a prompt: as counted, else as requested."""
    return ratio(claim.said.total_input_tokens, claim.said.completed) or claim.said.mean_input_tokens or claim.asked.isl


def mean_osl(claim: Claim) -> float | None:
    """Mean tokens of an answer: as counted, else as requested."""
    return (
        ratio(claim.said.total_output_tokens, claim.said.completed) or claim.said.mean_output_tokens or claim.asked.osl
    )


def mean_context(claim: Claim) -> float | None:
    """Tokens that a sequence holds in the mean while it decodes: its prompt and half of its answer."""
    isl, osl = mean_isl(claim), mean_osl(claim)
    return None if isl is None or osl is None else isl + osl / 2


def stated_output_tok_per_s(claim: Claim) -> float | None:
    """Output tokens a second of the whole system as the claim states it, also of each GPU."""
    said = claim.said
    return _stated(said.output_throughput_tok_per_s, _whole(said.output_per_gpu_tok_per_s, claim))


def stated_total_tok_per_s(claim: Claim) -> float | None:
    """Prompt and output tokens a second of the whole system as the claim states them together, also of each GPU."""
    said = claim.said
    return _stated(said.total_throughput_tok_per_s, _whole(said.total_per_gpu_tok_per_s, claim))


def output_tok_per_s(claim: Claim) -> float | None:
    """Output tokens a second of the whole system; a total that is not divided is by the lengths."""
    said = claim.said
    stated = _stated(
        stated_output_tok_per_s(claim),
        ratio(said.total_output_tokens, said.duration_s),
        _of_requests(claim, mean_osl(claim)),
    )
    if stated is not None:
        return stated
    total, isl, osl = total_tok_per_s(claim), mean_isl(claim), mean_osl(claim)
    return None if total is None or isl is None or not osl else total * osl / (isl + osl)


def input_tok_per_s(claim: Claim) -> float | None:
    """Prompt tokens a second of the whole system."""
    said = claim.said
    stated = _stated(
        said.input_throughput_tok_per_s,
        ratio(said.total_input_tokens, said.duration_s),
        _of_requests(claim, mean_isl(claim)),
    )
    if stated is not None:
        return stated
    total, output = total_tok_per_s(claim), output_tok_per_s(claim)
    if total is not None and output is not None:
        return max(0.0, total - output)
    isl, osl = mean_isl(claim), mean_osl(claim)
    return None if output is None or isl is None or not osl else output * isl / osl


def total_tok_per_s(claim: Claim) -> float | None:
    """Prompt and output tokens a second of the whole system, if stated together.

    Tokens of an unstated kind count as the total, which is at least as many.
    """
    return _stated(stated_total_tok_per_s(claim), claim.said.unstated_throughput_tok_per_s)


def decoding(claim: Claim) -> float | None:
    """Requests that were being decoded in the mean, without those that waited: Little's law over that time."""
    batch = claim.asked.batch
    if batch is not None:
        return float(batch)
    output, tpot, osl = output_tok_per_s(claim), claim.latency("tpot", "mean"), mean_osl(claim)
    if output is None or tpot is None or not osl:
        return None
    return output * tpot * (osl - 1) / osl


def most_together(claim: Claim) -> int | None:
    """The most requests that can have been in flight: the requested concurrency, and at most their number."""
    asked = claim.asked
    known = [count for count in (asked.batch or asked.concurrency, asked.request_count) if count]
    return min(known, default=None)


def peak(claim: Claim) -> EvidenceByColumn:
    """The peak of the token rate over its mean; nothing where no peak is stated."""
    if claim.said.peak_output_tok_per_s is None:
        return {}
    peak_rate, mean = claim.said.peak_output_tok_per_s, claim.said.output_throughput_tok_per_s
    mean = ratio(claim.said.total_output_tokens, claim.said.duration_s) if mean is None else mean
    value = ratio(peak_rate, mean)
    loose = looseness(peak_rate, mean) + (1.0 / mean if mean else 0.0)  # a peak is counted in whole tokens
    note = f"peak {peak_rate:.6g} tok/s, mean {mean or 0:.6g} tok/s"
    return {
        ev.PEAK_OVER_MEAN: observed(None if value is None else value + loose, "the mean output tok/s is missing", note)
    }


def _of_requests(claim: Claim, tokens: float | None) -> float | None:
    """Tokens a second from requests a second, or from a batch that takes a known time."""
    rate = claim.said.request_throughput_per_s
    if rate is None and claim.asked.batch is not None:
        rate = ratio(claim.asked.batch, claim.latency("e2el", "mean") or claim.latency("e2el", "median"))
    return None if rate is None or tokens is None else rate * tokens


def _whole(per_gpu: float | None, claim: Claim) -> float | None:
    count = claim.asked.gpu_count
    return None if per_gpu is None or count is None else per_gpu * count


def _stated(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)
