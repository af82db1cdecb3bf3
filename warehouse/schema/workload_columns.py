"""The columns of `measurements` that only some kinds of workload have; NULL in the rows of the others."""

from bench.engines.speculation import POSITIONS
from warehouse.schema.column import Column

SPECULATION_ASKED = (
    Column("is_speculative", "flag", "whether flags ask for speculative decoding, or counters show it; NULL: neither"),
    Column("spec_method", "text", "requested speculative decoding: ngram, draft_model, eagle3, mtp and so on"),
    Column("spec_tokens_max", "integer", "requested tokens of a draft", "tokens", low=1),
    Column("spec_draft_model", "text", "requested draft model"),
)
KV_OFFLOAD_ASKED = (
    Column("kv_offload_backend", "text", "requested tier behind the KV cache: native, lmcache or a connector's name"),
    Column("kv_offload_gib", "number", "requested size of that tier; NULL: left to it", "GiB", low=0),
)
DISAGGREGATED_ASKED = (
    Column("kv_connector", "text", "what hands the KV cache from the prefill to the decode server; NULL: one server"),
    Column("prefill_flags", "texts", "flags of the prefill server beside the engine's"),
    Column("decode_flags", "texts", "flags of the decode server beside the engine's"),
)
ANSWERS_ASKED = (
    Column("task", "text", "what requests ask for: embed is a vector of each prompt; NULL: text"),
    Column("adapters", "texts", "LoRA adapters that requests ask for, the most popular first; NULL: none"),
    Column("adapter_zipf", "number", "exponent of Zipf's law by which they are popular", low=0),
    Column("answer_form", "text", "form that each answer must have: json_schema, grammar or tool; NULL: any"),
    Column("valid_share_min", "number", "least share of valid answers that the suite demands", "share"),
)
_ANSWERS = (
    Column("valid_answer_share", "number", "share of the complete answers that have the demanded form", "share"),
    Column("first_use_ttft_ms", "number", "TTFT of the first warm-up request, which compiles a mask", "ms", low=0),
)
_ADAPTERS = (
    Column("adapters_used", "integer", "adapters that measured requests were for", low=0),
    Column("adapter_top_share", "number", "share of the measured requests for the adapter with most of them", "share"),
    Column("adapters_like_base", "texts", "adapters that answer as the base model does; NULL: not compared"),
)
_CANCELLED = (
    Column(
        "cancelled",
        "integer",
        "requests that the client cancelled, as the suite demands, not counted as failed",
        low=0,
    ),
    Column(
        "cancel_overrun_share",
        "number",
        "tokens that the server computed and no client got, over those that cancelled requests had left",
        "share",
    ),
)
_IMAGES = (
    Column(
        "images_sent", "integer", "images of the answered requests, warm-up included; NULL: prompts have none", low=0
    ),
    # No bounds: counters that fell are judged by server_restarted.
    Column("server_images_read", "integer", "increase of the server's counter of images that it looked up"),
    Column("image_cache_hit_share", "number", "images that the server had in its cache, over those read", "share"),
)
_KV_OFFLOAD = (
    # No bounds: counters that fell are judged by server_restarted.
    Column("server_kv_tier_queries", "integer", "prompt tokens that the server looked up in the tier", "tokens"),
    Column("server_kv_tier_hits", "integer", "of these, tokens that the tier had", "tokens"),
    Column("kv_tier_hit_share", "number", "tokens that the tier had, over those looked up there", "share"),
    Column("server_kv_tier_load_bytes", "integer", "bytes that the server loaded from the tier", "bytes"),
    Column("server_kv_tier_store_bytes", "integer", "bytes that the server stored in the tier", "bytes"),
)
_DISAGGREGATED = (
    Column("prefill_mean_ms", "number", "mean time from a request to the end of its prefill", "ms", low=0),
    Column(
        "handover_mean_ms",
        "number",
        "mean time from there to the first token of the decode server, with the transfer of the KV cache",
        "ms",
        low=0,
    ),
    Column("kv_transfer_mean_ms", "number", "mean time of a transfer by NIXL's own counters", "ms", low=0),
    Column("kv_transfer_bytes", "integer", "bytes that NIXL handed over", "bytes"),
    Column("server_kv_received_tokens", "integer", "prompt tokens that the decode server received", "tokens"),
    Column("server_prefill_prompt_tokens", "integer", "prompt tokens that the prefill server read", "tokens"),
    Column("kv_computed_again_share", "number", "prompt tokens computed on both servers, over all", "share"),
)
_EMBEDDINGS = (
    Column("embedding_dimensions", "integer", "numbers in most vectors; NULL: requests ask for text", low=1),
    Column("input_throughput_tok_per_s", "number", "prompt tokens of embeddings over the window", "tok/s", low=0),
    Column("usd_per_mtok_input", "number", "cost of embedding a million prompt tokens at this rate", "USD", low=0),
)
_SPECULATION = (
    Column("spec_acceptance_length", "number", "mean tokens of a step with a draft: 1 + accepted / drafts", "tokens"),
    Column("spec_acceptance_rate", "number", "accepted tokens over proposed ones", "share"),
    *(
        Column(f"spec_acceptance_{place}", "number", f"share of the drafts accepted up to their token {place}", "share")
        for place in range(1, POSITIONS + 1)
    ),
    # No bounds: counters that fell are judged by server_restarted.
    Column("server_spec_drafts", "integer", "increase of the server's counter of drafts"),
    Column("server_spec_draft_tokens", "integer", "increase of the server's counter of proposed tokens", "tokens"),
    Column("server_spec_accepted_tokens", "integer", "increase of the server's counter of accepted tokens", "tokens"),
)
_REPETITION = (
    Column("repeated_e2el_p50_ms", "number", "p50 of E2EL of the one prompt that is sent again and again", "ms", low=0),
    Column("distinct_e2el_p50_ms", "number", "p50 of E2EL of the distinct prompts between them", "ms", low=0),
    Column("repeated_ttft_share", "number", "p50 of TTFT of the repeated prompt over that of the distinct ones", low=0),
    Column(
        "repeated_generation_share", "number", "the same of the time from the first token to the last", "share", low=0
    ),
)
WORKLOAD_COLUMNS = (
    *_ANSWERS,
    *_ADAPTERS,
    *_CANCELLED,
    *_IMAGES,
    *_KV_OFFLOAD,
    *_DISAGGREGATED,
    *_EMBEDDINGS,
    *_SPECULATION,
    *_REPETITION,
)
# Those that have a series of their own and are judged each night: not counts.
WORKLOAD_METRICS = tuple(column.name for column in WORKLOAD_COLUMNS if column.type == "number")
