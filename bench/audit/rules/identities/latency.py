"""Whether the latencies of a file add up, in tokens and in the right unit."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import EXACT_ONE, Rule

LATENCY_RULES: tuple[Rule, ...] = (
    Rule(
        code="tpot_identity",
        column=ev.TPOT_REL,
        family="arithmetic",
        passing=(0.0, 0.02),
        tolerated=(0.0, 0.10),
        sentence=(
            "mean TPOT differs by {value:.1%} from the TPOT of mean E2EL and mean TTFT, although all answers"
            " are equally long"
        ),
        origin=(
            "identity TPOT = (E2EL - TTFT) / (tokens - 1); in 205 public result files of `vllm bench` shared"
            " chunks explained 0.3 to 1.7 %"
        ),
    ),
    Rule(
        code="tpot_identity",
        column=ev.TPOT_LOOSE_REL,
        family="arithmetic",
        passing=(0.0, 0.25),
        tolerated=None,
        sentence="TPOT differs by {value:.0%} from the TPOT that the other latencies imply",
        origin=(
            "identity TPOT = (E2EL - TTFT) / (tokens - 1), only approximate for medians and for answers of "
            "unequal length: in 205 public result files of `vllm bench` medians were off by 1.7 % (p50), 12 "
            "% (p90) and 48 % (max). It only warns"
        ),
    ),
    Rule(
        code="tpot_identity",
        column=ev.TPOT_OUTSIDE,
        family="arithmetic",
        passing=(0.0, 0.001),
        tolerated=(0.0, 0.001),
        sentence=("the TPOT implied by the mean latencies lies {value:.1%} outside the stated minimum and maximum"),
        origin="arithmetic: a weighted mean lies between the minimum and the maximum; 0.1 % for rounding",
    ),
    Rule(
        code="unit_suspect",
        column=ev.UNIT_FACTOR,
        family="units",
        passing=EXACT_ONE,
        tolerated=EXACT_ONE,
        sentence="a latency is in another unit than its name states, by a factor of {value:g}",
        origin="the latency identity holds only after one side is multiplied by 1000",
    ),
    Rule(
        code="chunk_token_ratio",
        column=ev.CHUNK_TOKEN_RATIO_IMPLIED,
        family="arithmetic",
        passing=(0.9, 1.1),
        tolerated=(0.67, 1.5),
        sentence=(
            "mean time per token is {value:.2f} times the mean gap of the stream; far from 1 its events are "
            "not single tokens"
        ),
        scope="metric",
        withdraws=("itl",),
        origin=("chosen by Nightbench: wider than the bounds for data of each request, since only means are compared"),
    ),
    Rule(
        code="chunked_stream",
        column=ev.TOKENS_PER_CHUNK,
        family="arithmetic",
        passing=(None, 1.5),
        tolerated=(None, 1.5),
        sentence="{value:.2f} tokens share one stream event; above 1 the times between tokens are unknown",
        scope="metric",
        withdraws=("itl",),
        origin=("chosen by Nightbench: at 1.5 tokens an event at least a third of the token times is missing"),
    ),
    Rule(
        code="bursty_stream",
        column=ev.BURST_SHARE,
        family="arithmetic",
        passing=(0.0, 0.2),
        tolerated=None,
        sentence=(
            "{value:.0%} of the gaps are under 0.1 ms: a buffer between engine and client, or a client that stalls"
        ),
        scope="metric",
        withdraws=("itl",),
        origin=("chosen by Nightbench: gaps this short are reads of buffered data, not the pace of an engine"),
    ),
    Rule(
        code="usage_mismatch",
        column=ev.USAGE_REL,
        family="client-server",
        passing=(0.0, 0.01),
        tolerated=(0.0, 0.10),
        sentence="the server's token usage and the client's tokenizer differ by {value:.1%}",
        origin="aiperf flags a difference above 10 %; up to 1 % is special tokens",
    ),
)
