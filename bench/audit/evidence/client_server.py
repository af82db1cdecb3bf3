"""Whether the client was slow, and whether the server's own counters agree with it."""

from bench import evidence_columns as ev
from bench.audit.claim import Claim, ServerCounters
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed
from bench.audit.evidence.rounding import beyond, looseness
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


def client_server(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """Counters, latencies, cache and preemptions; without server counters one missing input."""
    server = claim.server
    if server is None:
        return {ev.SERVER_CLIENT_TOKENS_RATIO: MissingInput("the server's counters are missing")}
    return {
        **_counted(claim, server),
        **_latencies(answered, server),
        **_cache(claim, server),
        **_preempted(server),
    }


def _counted(claim: Claim, server: ServerCounters) -> EvidenceByColumn:
    said = claim.said
    pairs = {
        ev.SERVER_CLIENT_TOKENS_RATIO: (server.generated_tokens, said.total_output_tokens, 0),
        ev.SERVER_CLIENT_PROMPT_RATIO: (server.prompt_tokens, said.total_input_tokens, said.completed or 0),
        ev.SERVER_CLIENT_REQUESTS_RATIO: (server.requests, said.completed, 0),
    }
    found: EvidenceByColumn = {}
    for column, (seen, own, free) in pairs.items():
        if seen is not None and own:
            found[column] = _ratio(claim, seen, own, free)
    return found or {ev.SERVER_CLIENT_TOKENS_RATIO: MissingInput("server and client have no count in common")}


def _ratio(claim: Claim, seen: float, own: int, free: int) -> Observed:
    """Server over client; a known warm-up may be in the server's count, and one token in front of each prompt."""
    warm = 1 + (claim.asked.warmup_count or 0) / (claim.said.completed or 1)
    value = min((seen / own, seen / own / warm), key=lambda each: abs(each - 1))
    if value > 1:
        value = max(1.0, value - free / own)
    return Observed(value, f"server {seen:.0f}, client {own}")


def _latencies(answered: SuccessfulRequests, server: ServerCounters) -> EvidenceByColumn:
    ttft, tpot = answered.mean("ttft"), answered.mean("tpot")
    found: EvidenceByColumn = {}
    over = ratio(ttft, server.ttft_mean_s)
    if over is not None:
        note = f"mean TTFT {ttft:.6g} s at the client, {server.ttft_mean_s:.6g} s at the server"
        found[ev.TTFT_OVER_SERVER] = Observed(over * (1 + looseness(ttft, server.ttft_mean_s)), note)
    if tpot is not None and server.tpot_mean_s:
        note = f"mean TPOT {tpot:.6g} s at the client, {server.tpot_mean_s:.6g} s at the server"
        loose = looseness(tpot, server.tpot_mean_s)
        found[ev.CLIENT_SERVER_TPOT_REL] = Observed(beyond(tpot, server.tpot_mean_s, loose), note)
    return found or {
        ev.CLIENT_SERVER_TPOT_REL: MissingInput("the server's or the client's mean TTFT or TPOT is missing")
    }


def _cache(claim: Claim, server: ServerCounters) -> EvidenceByColumn:
    """Hits where there should be none; a cache that is declared is part of the scenario."""
    asked = claim.asked
    if asked.prefix_caching is not False and not asked.has_distinct_prompts:
        meant = asked.prefix_caching is True or asked.has_distinct_prompts is False
        return {} if meant else {ev.PREFIX_HIT_SHARE: MissingInput("it is unknown whether the prompts were distinct")}
    share = 0.0 if server.prefix_queries == 0 else ratio(server.prefix_hits, server.prefix_queries)
    if share is None:
        return {ev.PREFIX_HIT_SHARE: MissingInput("the server's prefix cache counters are missing")}
    return {
        ev.PREFIX_HIT_SHARE: Observed(
            share, f"{server.prefix_hits or 0:.0f} of {server.prefix_queries:.0f} tokens hit, none was planned"
        )
    }


def _preempted(server: ServerCounters) -> EvidenceByColumn:
    return {} if server.preemptions is None else {ev.PREEMPTIONS: Observed(float(server.preemptions))}
