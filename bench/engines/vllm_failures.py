"""The failures of vLLM's server as its log shows them.

Texts of vLLM 0.32.0 unless a source says otherwise. The order matters within one line: a line that states how much KV
cache is missing is `oom_kv_len`, also if it mentions memory in general.
"""

from bench.engines.failures import FailureClass

_SEEN = "seen in the log of vLLM 0.32.0 on CPU"
_READ = "read in the source of vLLM 0.32.0"

FAILURES = (
    FailureClass(
        name="oom_kv_len",
        patterns=(
            r"To serve at least one request .*KV cache is needed, which is larger than the available KV cache memory",
            r"max seq len \(\d+\) is larger than the maximum number of tokens that can be stored in KV cache",
        ),
        remedy="lower max_model_len to the length that the line names, or give the KV cache more memory",
        retry="ladder",
        source=_SEEN,
    ),
    FailureClass(
        name="oom_kv",
        patterns=(r"No available memory for the cache blocks", r"Available KV cache memory: -"),
        remedy="raise gpu_memory_utilization, lower max_model_len, or use FP8 weights or an FP8 KV cache",
        retry="ladder",
        source=_SEEN,
    ),
    FailureClass(
        name="oom_hsa",
        patterns=(r"HSA_STATUS_ERROR_OUT_OF_RESOURCES: Available Free mem : 0 MB",),
        remedy="lower gpu_memory_utilization, and set HSA_NO_SCRATCH_RECLAIM=1 where MEC firmware is older than 177",
        retry="ladder",
        source="InferenceX pull request 1403",
    ),
    FailureClass(
        name="oom_cpu",
        patterns=(
            r"DefaultCPUAllocator: can't allocate memory",
            r"on kv cache allocation is less than requested memory for kv",
        ),
        remedy="lower --kv-cache-memory-bytes or VLLM_CPU_KVCACHE_SPACE",
        retry="ladder",
        source=_SEEN,
    ),
    FailureClass(
        name="oom_busy",
        patterns=(r"Free memory on device .* on startup is less than desired GPU memory utilization",),
        remedy="end the processes that hold the GPU's memory, or lower gpu_memory_utilization",
        retry="ladder",
        source=_READ,
    ),
    FailureClass(
        name="oom_weights",
        patterns=(r"Failed to load model - not enough GPU memory",),
        remedy="use more GPUs or smaller weights: no setting of the KV cache helps",
        retry="never",
        source=_READ,
    ),
    FailureClass(
        name="oom_runtime",
        patterns=(r"(?:HIP|CUDA)(?: error:)? out of memory", r"torch\.(?:cuda\.)?OutOfMemoryError"),
        remedy="lower max_num_seqs, max_num_batched_tokens or gpu_memory_utilization",
        retry="ladder",
        source="PyTorch's allocator, in public issues of vLLM and ROCm",
    ),
    FailureClass(
        name="memory_moved",
        patterns=(r"Error in memory profiling\. Initial free memory",),
        remedy="end the other processes on the GPU: one of them freed memory during the start",
        retry="same",
        source=_READ,
    ),
    FailureClass(
        name="config_len",
        patterns=(r"User-specified max_model_len \(\d+\) is greater than the derived max_model_len",),
        remedy="lower max_model_len in the suite",
        retry="never",
        source=_SEEN,
    ),
    FailureClass(
        name="config_lora_rank",
        patterns=(r"LoRA rank \d+ is greater than max_lora_rank \d+",),
        remedy="add --max-lora-rank to engine.flags, with at least the rank of the adapter",
        retry="never",
        source=_SEEN,
    ),
    FailureClass(
        name="config_kv_offload",
        patterns=(r"CPU Offloading is currently only supported on",),
        remedy="remove --kv-offloading-size: only GPUs can offload their KV cache",
        retry="never",
        source=_SEEN,
    ),
    FailureClass(
        name="config_mla",
        patterns=(r"KeyError: 'model\.layers\.\d+\.self_attn\.indexer\.k_cache'",),
        remedy="set --block-size 1 and no KV offload for a model with latent attention",
        retry="never",
        source="AMD's optimization guide for vLLM",
    ),
    FailureClass(
        name="gpu_fault",
        patterns=(r"Memory access fault by GPU node-\d+ \(Agent handle: 0x[0-9a-f]+\) on address \S+\. Reason: ",),
        remedy="start once more; where it comes again, switch AITER off and use another machine",
        retry="replace_machine",
        source="vLLM issues 16840, 35169, 43605 and 48266",
    ),
    FailureClass(
        name="gpu_hang",
        patterns=(r"HW Exception by GPU node-\d+ .*[Rr]eason ?: ?GPU Hang",),
        remedy="use another machine",
        retry="replace_machine",
        source="AMD's optimization guide for vLLM",
    ),
    FailureClass(
        name="arch_mismatch",
        patterns=(r"hipErrorNoBinaryForGpu: Unable to find code object for all current devices",),
        remedy="use an image that is built for this GPU",
        retry="never",
        source="public issues of vLLM on ROCm",
    ),
    FailureClass(
        name="auth",
        patterns=(r"OSError: You are trying to access a gated repo",),
        remedy="set a hub token whose account has accepted the model's terms",
        retry="never",
        source="the text of huggingface_hub",
    ),
    FailureClass(
        name="disk",
        patterns=(r"No space left on device",),
        remedy="free space on the machine's disk, or use another machine",
        retry="replace_machine",
        source="the kernel's text of ENOSPC",
    ),
    FailureClass(
        name="docker",
        patterns=(r"permission denied while trying to connect to the docker API",),
        remedy="use another machine: docker does not work for this user",
        retry="replace_machine",
        source="docker's client",
    ),
    FailureClass(
        name="killed",
        patterns=(r"died unexpectedly \(exit code: -9\)", r"Failed core proc\(s\): \{[^}]*'EngineCore[^']*': -9\b"),
        remedy="look in the kernel's log for an OOM kill, and lower --kv-cache-memory-bytes where there is one",
        retry="ladder",
        source=_SEEN,
    ),
    FailureClass(
        name="rccl",
        patterns=(r"NCCL WARN hipIpcGetMemHandle failed", r"NCCL WARN Cuda failure"),
        remedy="check --ipc=host, the size of shared memory and the IOMMU",
        retry="never",
        source="ROCm/vllm issue 390",
        weight="hint",
    ),
    FailureClass(
        name="hang_collective",
        patterns=(r"No available shared memory broadcast block found in 60 seconds",),
        remedy="leave out NCCL_MIN_NCHANNELS, and give compiled kernels the time they need",
        retry="same",
        source="vLLM 0.6.3 on eight MI300X",
        weight="hint",
    ),
    FailureClass(
        name="bad_configuration",
        patterns=(
            r".*unrecognized arguments",
            r"(?:pydantic\S* )?Value error,",
            # At the start of its line: a healthy start warns of "errors like `OSError: [Errno 24] …`".
            r"(?:[\w.]+\.)?(?:Value|Validation|FileNotFound|OS|Safetensor|ModuleNotFound)Error: ",
        ),
        remedy="mend the setting that the line names in the suite",
        retry="never",
        source=_SEEN,
        weight="hint",
        at_line_start=True,
    ),
    FailureClass(
        name="killed_unseen",
        patterns=(r"RuntimeError: cancelled$",),
        remedy="look in the kernel's log for an OOM kill: a killed worker leaves only this line",
        retry="ladder",
        source=_SEEN,
        weight="echo",
        at_line_start=True,
    ),
    FailureClass(
        name="worker_died",
        patterns=(r"Worker proc \S+ died unexpectedly", r"EngineDeadError", r"Failed core proc\(s\): \{'"),
        remedy="read the first error above this line in the log",
        retry="never",
        source=_SEEN,
        weight="echo",
    ),
    FailureClass(
        name="jit_stuck",
        patterns=(r"\[aiter\] waiting for baton release at",),
        remedy="delete the lock and the cache of AITER's kernels that the line names, and unset AITER_JIT_DIR",
        retry="never",
        source="AITER issues 1162 and 3635",
        weight="echo",
    ),
    FailureClass(
        name="engine_timeout",
        patterns=(
            r"Engine core initialization failed\. See root cause above\. Failed core proc\(s\): \{\}",
            r"Waiting for 1 local, 0 remote core engine proc\(s\) to start",
        ),
        remedy="raise ready_timeout_s in the suite",
        retry="longer",
        source="vLLM issues 48031 and 34113",
        weight="echo",
    ),
)
