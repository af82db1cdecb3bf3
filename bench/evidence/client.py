"""Whether it was the client that was slow."""

from bench.claim import Claim
from bench.evidence.answered import Answered
from bench.evidence.exhibit import Exhibits, Lacking, Observed
from bench.metrics import ratio


def client(claim: Claim, answered: Answered) -> Exhibits:
    """How busy the client was, and how late it sent; what it does not say of these is asked for once."""
    found: Exhibits = {}
    if claim.said.client_cpu_share is not None:
        found["ev_client_cpu_share"] = Observed(claim.said.client_cpu_share)
    ttft = answered.mean("ttft")
    late = ratio(claim.said.send_delay_p99_s, ttft)
    if late is not None:
        note = f"p99 of the delay {claim.said.send_delay_p99_s:.6g} s, mean TTFT {ttft:.6g} s"
        found["ev_send_delay_over_ttft"] = Observed(late, note)
    return found or {"ev_client_cpu_share": Lacking("how busy the client was, or how late it sent")}
