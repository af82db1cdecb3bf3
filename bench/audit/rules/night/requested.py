"""Whether the server did what the suite requests: lengths, version and a stream of single tokens."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

REQUESTED_RULES: tuple[Rule, ...] = (
    Rule(
        code="osl_not_reached",
        column=ev.OSL_RATIO,
        family="asked-found",
        needs_tokens=True,
        is_of_batches=True,
        passing=(0.99, 1.01),
        tolerated=(0.9, 1.1),
        sentence="answers have {value:.3f} times the requested output length",
        origin=(
            "with ignore_eos a server generates exactly the requested tokens; 1 % for special tokens and retokenization"
        ),
    ),
    Rule(
        code="isl_mismatch",
        column=ev.ISL_RATIO,
        family="asked-found",
        passing=(0.99, 1.01),
        tolerated=(0.9, 1.1),
        sentence="prompts have {value:.3f} times the requested input length",
        needs_exact_prompts=True,
        origin=(
            "with ignore_eos a server generates exactly the requested tokens; 1 % for special tokens and retokenization"
        ),
    ),
    Rule(
        code="engine_version_conflict",
        column=ev.ENGINE_VERSION_CONFLICT,
        family="asked-found",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the server runs another version than the suite requests",
        origin="definition: another release is another server",
    ),
    Rule(
        code="chunk_token_ratio",
        column=ev.CHUNK_TOKEN_RATIO,
        family="arithmetic",
        needs_tokens=True,
        passing=(0.99, 1.01),
        tolerated=(0.9, 1.1),
        sentence=(
            "the stream has {value:.3f} events per counted token; far from 1 the times between tokens are unknown"
        ),
        scope="metric",
        withdraws=("itl",),
        origin=("in 205 public result files of `vllm bench` about 1 % of the requests had several tokens in one event"),
    ),
)
