"""The kinds of workload: which keys ask for one, what it gives, what judges it, and which test ran it for real.

Each is a row of docs/reference/workloads.md.
"""

from dataclasses import dataclass

# Engines whose answers to prompts of token ids and counters of the prefix cache the meter can read.
OPENAI_ENGINES = ("vllm", "sglang", "llama.cpp", "endpoint")


# One night of traces, sessions and shared prefixes: each token and each hit of the cache as planned.
REPLAYED = ("tests/flows/test_replay_real.py::test_every_token_and_hit_of_a_replay_is_as_planned_on_the_real_engine",)


@dataclass(frozen=True)
class WorkloadKind:
    """A kind of workload. `metrics` are columns as `table.column`, `rules` are codes of the audit.

    `runs` are the tests that ran it on a real engine, as `file::test`; none: it was not run for real.
    """

    name: str
    keys: tuple[str, ...]  # of a suite
    engines: tuple[str, ...]
    metrics: tuple[str, ...]
    rules: tuple[str, ...]
    runs: tuple[str, ...] = ()


KINDS: tuple[WorkloadKind, ...] = (
    WorkloadKind(
        name="LoRA adapters",
        keys=("adapters", "adapter_zipf", "model.source"),
        engines=("vllm", "endpoint"),
        metrics=(
            *("measurements.adapters_used", "measurements.adapter_top_share"),
            "measurements.adapters_like_base",
        ),
        rules=("adapter_missing",),
        runs=("tests/flows/test_real_workloads.py::test_generated_adapters_change_the_answers_of_the_real_engine",),
    ),
    WorkloadKind(
        name="cancelled requests",
        keys=("cancel.share", "cancel.after_s"),
        engines=OPENAI_ENGINES,
        metrics=("measurements.cancelled", "measurements.cancel_overrun_share"),
        rules=("cancel_ignored", "server_errors"),
        runs=("tests/flows/test_real_workloads.py::test_the_real_engine_frees_what_is_cancelled",),
    ),
    WorkloadKind(
        name="embeddings",
        keys=('task = "embed"', "engine.flags"),
        engines=("vllm", "endpoint"),
        metrics=(
            *("measurements.embedding_dimensions", "measurements.input_throughput_tok_per_s"),
            *("measurements.request_throughput_per_s", "measurements.usd_per_mtok_input"),
        ),
        rules=("embeddings_unusable", "prompt_count_drift"),
        runs=("tests/flows/test_real_embeddings.py::test_every_prompt_token_is_counted_on_the_real_engine",),
    ),
    WorkloadKind(
        name="a tier behind the KV cache",
        keys=("variants", "engine.flags"),
        engines=("vllm",),
        metrics=(
            *("measurements.kv_offload_backend", "measurements.kv_tier_hit_share"),
            *("measurements.server_kv_tier_load_bytes", "measurements.server_kv_tier_store_bytes"),
        ),
        rules=("kv_offload_idle", "prefix_cache_contamination"),
        runs=("tests/flows/test_real_kv_tier.py::test_the_real_engine_counts_what_it_finds_in_the_tier",),
    ),
    WorkloadKind(
        name="prefill and decode on servers of their own",
        keys=(
            *("engine.disaggregated.connector", "engine.disaggregated.connector_config"),
            *("engine.disaggregated.prefill_flags", "engine.disaggregated.decode_flags"),
        ),
        engines=("vllm",),
        metrics=(
            *("measurements.kv_connector", "measurements.prefill_mean_ms", "measurements.handover_mean_ms"),
            *("measurements.kv_transfer_mean_ms", "measurements.kv_computed_again_share"),
        ),
        rules=("prefill_bypassed", "kv_computed_again"),
        runs=(
            "tests/flows/test_real_disaggregated.py::test_prompts_are_computed_by_one_server_and_answers_by_another",
        ),
    ),
    WorkloadKind(
        name="images",
        keys=('prompts.kind = "images"', "prompts.width", "prompts.height", "prompts.images"),
        engines=OPENAI_ENGINES,
        metrics=(
            *("measurements.images_sent", "measurements.server_images_read"),
            "measurements.image_cache_hit_share",
        ),
        rules=("images_not_read", "images_cached"),
        runs=("tests/flows/test_real_images.py::test_the_real_engine_reads_every_image",),
    ),
    WorkloadKind(
        name="structured output and tool calls",
        keys=("answers.json_schema", "answers.grammar", "answers.tool"),
        engines=OPENAI_ENGINES,
        metrics=(
            *("measurements.valid_answer_share", "measurements.first_use_ttft_ms"),
            "answer_overheads.ratio",
        ),
        rules=("answers_invalid",),
        runs=(
            "tests/flows/test_real_workloads.py::test_every_answer_has_the_demanded_form_on_the_real_engine",
            "tests/flows/test_real_workloads.py::test_a_grammar_that_the_real_engine_refuses_is_a_sentence",
        ),
    ),
    WorkloadKind(
        name="tool calls scored by BFCL",
        keys=("quality.lm_eval.tasks",),
        engines=("vllm", "sglang", "llama.cpp"),
        metrics=("quality_scores.value", "quality_scores.stderr", "quality_scores.fall_se"),
        rules=("quality_below_floor", "quality_below_tasks"),
        runs=("tests/flows/test_real_bfcl.py::test_bfcl_scores_the_tool_calls_of_the_real_engine",),
    ),
    WorkloadKind(
        name="one prompt again and again",
        keys=('prompts.kind = "repeated"',),
        engines=OPENAI_ENGINES,
        metrics=("measurements.repeated_generation_share", "measurements.repeated_ttft_share"),
        rules=("cached_outputs", "cached_prompts", "cached_answers"),
        runs=("tests/flows/test_real_workloads.py::test_a_repeated_prompt_is_computed_each_time_on_the_real_engine",),
    ),
    WorkloadKind(
        name="speculation",
        keys=("engine.flags", 'prompts.kind = "written"', "random_speculation"),
        engines=("vllm", "sglang", "llama.cpp"),
        metrics=(
            *("measurements.spec_acceptance_length", "measurements.spec_acceptance_rate"),
            "measurements.spec_acceptance_1",
        ),
        rules=("speculation_on_random_prompts", "speculation_idle", "acceptance_impossible"),
        runs=("tests/flows/test_real_workloads.py::test_n_grams_are_accepted_on_the_real_engine",),
    ),
    WorkloadKind(
        name="start-up by phase",
        keys=("engine.flags", "ready_timeout_s"),
        engines=("vllm", "sglang", "llama.cpp"),
        metrics=(
            *("measurements.start_import_s", "measurements.start_weights_s", "measurements.start_warmup_s"),
            *("measurements.cold_startup_s", "measurements.warm_compilation_s", "start_phases.duration_s"),
        ),
        rules=("start_longer_than_measured",),
        runs=("tests/flows/test_real_engine.py::test_a_night_on_the_real_engine_is_measured_counted_and_audited",),
    ),
    WorkloadKind(
        name="recorded arrivals",
        keys=('arrivals = "trace"', "trace"),
        engines=OPENAI_ENGINES,
        metrics=("measurements.dispatch_delay_p99_ms",),
        rules=("late_replay", "dispatch_late", "rate_not_offered"),
        runs=(
            "tests/flows/test_real_token_counts.py::test_every_token_of_every_kind_is_as_requested_on_the_real_engine",
        ),
    ),
    WorkloadKind(
        name="recorded lengths and prefix blocks",
        keys=("trace_format", "trace_speed", "trace_from_s"),
        engines=OPENAI_ENGINES,
        metrics=(
            "measurements.dispatch_delay_p99_ms",
            "measurements.planned_prefix_cache_hits",
            "measurements.server_prefix_cache_hits",
        ),
        rules=("late_replay", "isl_mismatch", "osl_not_reached", "prefix_cache_contamination"),
        runs=REPLAYED,
    ),
    WorkloadKind(
        name="agent sessions",
        keys=('arrivals = "sessions"', "prompts.pause_s", "trace_format"),
        engines=OPENAI_ENGINES,
        metrics=(
            "sessions.e2e_s",
            "measurements.sessions_done",
            "measurements.session_e2e_p50_s",
            "measurements.session_p50_tok_per_s",
            "measurements.usd_per_session",
            "measurements.planned_cache_hit_share",
            "measurements.server_cache_hit_share",
        ),
        rules=("late_replay", "sessions_not_held", "prefix_cache_contamination"),
        runs=REPLAYED,
    ),
    WorkloadKind(
        name="shared prefixes",
        keys=('prompts.kind = "shared-prefix"',),
        engines=OPENAI_ENGINES,
        metrics=("measurements.planned_prefix_cache_hits", "measurements.server_prefix_cache_hits"),
        rules=("prefix_cache_contamination", "cached_tokens_drift"),
        runs=REPLAYED,
    ),
)
