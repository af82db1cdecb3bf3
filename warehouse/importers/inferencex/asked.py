"""The configuration in a row of InferenceX, in its three schema versions."""

from bench.audit.claim import ClaimedConfig
from warehouse.importers.parsing.fields import NOTHING, Fields
from warehouse.importers.parsing.printed import engine_of, printed_precision


def read_asked(fields: Fields) -> ClaimedConfig:
    """The requested configuration; booleans may be text."""
    spec = fields.raw("spec_decoding")
    is_speculative = spec if isinstance(spec, bool) else None
    if isinstance(spec, str):
        is_speculative = spec.strip().lower() not in (*NOTHING, "false", "off", "no")
    return ClaimedConfig(
        model=fields.text("model", "infmax_model_prefix"),
        precision=printed_precision(fields.text("precision")),
        gpu=fields.text("hw", "device"),
        gpu_count=gpu_count(fields),
        tp_size=fields.integer("tp"),
        pp_size=fields.integer("pp"),
        ep_size=fields.integer("ep"),
        engine=engine_of(fields.text("framework")),
        image=fields.text("image"),
        isl=fields.positive("isl"),
        osl=fields.positive("osl"),
        concurrency=fields.integer("conc"),
        is_speculative=is_speculative,
    )


def gpu_count(fields: Fields) -> int | None:
    """GPUs of the whole system, prefill plus decode if disaggregated; None if unknown."""
    prefill, decode = fields.integer("num_prefill_gpu"), fields.integer("num_decode_gpu")
    if prefill and decode:
        return prefill + decode
    tp = fields.integer("tp")
    # The first version of the schema had no `disagg` and counted tensor times expert parallel; since then experts lie
    # on the GPUs of the tensor parallel group, and only pipeline and prefill context multiply.
    others = ("pp", "pcp_size") if "disagg" in fields else ("ep",)
    if tp is None or fields.flag("disagg"):
        return None
    for name in others:
        tp *= fields.integer(name) or 1
    return tp
