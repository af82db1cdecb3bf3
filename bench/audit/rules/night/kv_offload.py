"""Whether the tier behind the KV cache that a suite asks for is used at all."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

KV_OFFLOAD_RULES: tuple[Rule, ...] = (
    Rule(
        code="kv_offload_idle",
        column=ev.KV_OFFLOAD_IDLE,
        family="asked-found",
        passing=ZERO,
        tolerated=None,
        sentence="the flags ask for a tier behind the KV cache, where the server looked nothing up and stored nothing",
        is_required=False,
        only_where="kv_offload_backend",
        origin="definition; a load that fits the device's cache needs no tier, so it only warns",
    ),
)
