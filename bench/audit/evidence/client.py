"""Whether the client was slow."""

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed
from bench.audit.evidence.successful import SuccessfulRequests
from bench.metrics import ratio


def client(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """The p99 send delay over the mean TTFT."""
    ttft = answered.mean("ttft")
    late = ratio(claim.said.send_delay_p99_s, ttft)
    if late is None:
        return {ev.SEND_DELAY_OVER_TTFT: MissingInput("the send delay is unknown")}
    note = f"p99 send delay {claim.said.send_delay_p99_s:.6g} s, mean TTFT {ttft:.6g} s"
    return {ev.SEND_DELAY_OVER_TTFT: Observed(late, note)}
