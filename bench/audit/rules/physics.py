"""The limits of a GPU: its peak bandwidth and compute, its memory, and the prefill before a first token."""

from bench import evidence_columns as ev
from bench.audit.evidence.memory import SIZED_HIGH, SIZED_LOW
from bench.audit.rules.rule import ZERO, Range, Rule

_ABOVE: Range = (None, 1.0)
_NEARLY_FULL: Range = (None, 0.95)

ROOFLINE_RULES: tuple[Rule, ...] = (
    Rule(
        code="roofline_bandwidth",
        column=ev.MBU,
        family="physics",
        passing=(None, 0.90),
        tolerated=_ABOVE,
        sentence="the claim needs {value:.0%} of the memory bandwidth",
        origin=(
            "roofline arithmetic of docs/reference/physics.md with the dense peaks of catalog/gpus.csv: more"
            " than 100 % is impossible; single streams reached 81 % on MI300X and 93 % on H100 and B200 "
            "(secondary sources). Unknown batch sizes count as the largest that fits, unknown experts as "
            "those of one token"
        ),
    ),
    Rule(
        code="roofline_bandwidth",
        column=ev.MBU_AMD,
        family="physics",
        passing=(None, 0.85),
        tolerated=_ABOVE,
        sentence="the claim needs {value:.0%} of the memory bandwidth",
        origin=(
            "roofline arithmetic of docs/reference/physics.md with the dense peaks of catalog/gpus.csv: more"
            " than 100 % is impossible; single streams reached 81 % on MI300X and 93 % on H100 and B200 "
            "(secondary sources). Unknown batch sizes count as the largest that fits, unknown experts as "
            "those of one token"
        ),
    ),
    Rule(
        code="roofline_bandwidth",
        column=ev.MBU_EXPERTS,
        family="physics",
        passing=(None, 0.90),
        tolerated=None,
        sentence=("the claim needs {value:.0%} of the memory bandwidth if tokens choose their experts evenly"),
        origin=(
            "roofline arithmetic of docs/reference/physics.md with the dense peaks of catalog/gpus.csv: more"
            " than 100 % is impossible. Skewed routing reads fewer experts, so it only warns"
        ),
    ),
    Rule(
        code="roofline_compute",
        column=ev.MFU,
        family="physics",
        passing=(None, 0.80),
        tolerated=_ABOVE,
        sentence="the claim needs {value:.0%} of the dense compute",
        origin=(
            "roofline arithmetic of docs/reference/physics.md with the dense peaks of catalog/gpus.csv: more"
            " than 100 % is impossible; the highest output-only share in 322 closed MLPerf Inference v5.1 "
            "rows is 31 %"
        ),
    ),
    Rule(
        code="roofline_compute",
        column=ev.TRAIN_MFU,
        family="physics",
        passing=(None, 0.80),
        tolerated=_ABOVE,
        sentence="training needs {value:.0%} of the dense compute",
        origin=(
            "roofline arithmetic of docs/reference/physics.md with the dense peaks of catalog/gpus.csv: more"
            " than 100 % is impossible; six operations per parameter and token, with nothing computed twice"
        ),
    ),
    Rule(
        code="roofline_prefill",
        column=ev.PREFILL_SHARE,
        family="physics",
        passing=(None, 0.75),
        tolerated=_ABOVE,
        sentence="prefill alone needs {value:.0%} of the TTFT",
        origin=(
            "roofline arithmetic of docs/reference/physics.md with the dense peaks of catalog/gpus.csv: more"
            " than 100 % is impossible; Nightbench warns from three quarters of the peak"
        ),
    ),
    Rule(
        code="far_below_roofline",
        column=ev.BEST_OF_ROOFLINES,
        family="physics",
        passing=(0.10, None),
        tolerated=None,
        sentence="only {value:.1%} of the GPUs' limits is used: the client, the CPU, or a wrong unit",
        origin=(
            "chosen by Nightbench: a server that is kept busy uses more than a tenth of its bandwidth or of its compute"
        ),
    ),
    Rule(
        code="unit_suspect",
        column=ev.TRAIN_TFLOPS_OVER_PEAK,
        family="units",
        passing=_ABOVE,
        tolerated=_ABOVE,
        sentence="{value:.1f} times the dense peak in TFLOP/s is impossible, but fits tokens per second",
        scope="metric",
        withdraws=("train_tflops_per_gpu",),
        origin="roofline arithmetic of docs/reference/physics.md: six operations per parameter and token",
    ),
)
MEMORY_RULES: tuple[Rule, ...] = (
    Rule(
        code="memory_fit",
        column=ev.MEMORY_FIT,
        family="physics",
        passing=_NEARLY_FULL,
        tolerated=(None, 1.05),
        sentence="the claim needs {value:.0%} of the memory",
        origin=(
            "docs/reference/physics.md: weights plus KV cache of the requests that decode together, at their"
            " mean length, against the memory that the driver reports; 5 % for fragmentation and rounding, and "
            "activations need the last 5 %"
        ),
    ),
    Rule(
        code="memory_fit",
        column=ev.MEMORY_FIT_ASKED,
        family="physics",
        passing=(None, 1.05),
        tolerated=None,
        sentence="all requests together need {value:.0%} of the memory; above 100 % some of them waited",
        origin=(
            "docs/reference/physics.md: weights plus KV cache of the requests that decode together, at their"
            " mean length, against the memory that the driver reports. Where the number that decoded "
            "together is unknown it only warns"
        ),
    ),
    Rule(
        code="memory_fit",
        column=ev.MEMORY_FIT_LONGEST,
        family="physics",
        passing=(None, 1.0),
        tolerated=(None, 1.05),
        sentence="weights and one sequence of the maximum context need {value:.0%} of the memory",
        origin=(
            "vLLM does not start where its KV cache has no room for one sequence of the maximum context; 5 % for "
            "fragmentation and rounding"
        ),
    ),
    Rule(
        code="memory_fit",
        column=ev.MEMORY_FIT_PRINTED,
        family="physics",
        passing=(None, 1.0),
        tolerated=(None, 1.05),
        sentence="weights and the stated KV cache need {value:.0%} of the memory",
        origin="docs/reference/physics.md: KV bytes a token; 5 % for fragmentation and rounding",
    ),
    Rule(
        code="kv_capacity",
        column=ev.KV_CONCURRENCY_REL,
        family="physics",
        passing=(0.0, 0.005),
        tolerated=(0.0, 0.02),
        sentence="the stated maximum concurrency differs by {value:.1%} from KV cache over maximum context",
        origin="arithmetic: the engine divides the one by the other; whole blocks are left out",
    ),
    Rule(
        code="precision_conflict",
        column=ev.WEIGHT_BYTES_RATIO,
        family="feasibility",
        passing=(SIZED_LOW, SIZED_HIGH),
        tolerated=(SIZED_LOW, SIZED_HIGH),
        sentence="the weights have {value:.2f} times the size of the claimed precision",
        origin=(
            "parameters times bytes per weight; scales, embeddings and a quantization's exceptions stay "
            "within 0.85 to 1.25"
        ),
    ),
    Rule(
        code="precision_conflict",
        column=ev.WEIGHT_BYTES_RATIO_DEVICE,
        family="feasibility",
        passing=(SIZED_LOW, SIZED_HIGH),
        tolerated=None,
        sentence="memory in use is {value:.2f} times the weights of the claimed precision",
        origin=(
            "parameters times bytes per weight; scales, embeddings and a quantization's exceptions stay "
            "within 0.85 to 1.25. Memory in use holds more than weights, so it only warns"
        ),
    ),
    Rule(
        code="ctx_exceeds_max_len",
        column=ev.CONTEXT_OVER_MAX,
        family="feasibility",
        passing=_ABOVE,
        tolerated=_ABOVE,
        sentence="a request needs {value:.2f} times the context that the server accepts",
        origin="the engine refuses a request longer than max_model_len",
    ),
    Rule(
        code="ctx_exceeds_max_len",
        column=ev.CONTEXT_OVER_NATIVE,
        family="feasibility",
        passing=_ABOVE,
        tolerated=None,
        sentence="a request needs {value:.2f} times the model's native context",
        origin="the model's own configuration; extensions such as YaRN go beyond it, so it only warns",
    ),
    Rule(
        code="status_cause",
        column=ev.CAUSE_CONTRADICTED,
        family="feasibility",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the failure is blamed on a context that was long enough",
        origin="the engine refuses only requests longer than max_model_len",
    ),
    Rule(
        code="kv_capacity",
        column=ev.KV_TOKENS_OVER_ROOM,
        family="physics",
        passing=_ABOVE,
        tolerated=_ABOVE,
        sentence="{value:.2f} times the KV cache's capacity was in use without a preemption",
        origin=(
            "docs/reference/physics.md: mean length of the requests that decode together, against the KV "
            "tokens in the server's log"
        ),
    ),
    Rule(
        code="kv_capacity",
        column=ev.KV_TOKENS_OVER_ROOM_PREEMPTED,
        family="physics",
        passing=_ABOVE,
        tolerated=None,
        sentence="{value:.2f} times the KV cache's capacity was needed",
        origin=(
            "docs/reference/physics.md: mean length of the requests that decode together, against the KV "
            "tokens in the server's log. With preemptions, or where they were not counted, it only warns"
        ),
    ),
)
