"""Each wording of an error that means too little memory, beside healthy lines that resemble it."""

import pytest

from bench.engines.by_name import ENGINES


@pytest.mark.parametrize(
    ("engine", "line", "kind", "retry"),
    [
        ("vllm", "torch.OutOfMemoryError: CUDA out of memory.", "oom_runtime", "ladder"),
        ("vllm", "torch.AcceleratorError: CUDA error: out of memory", "oom_runtime", "ladder"),
        ("vllm", "RuntimeError: HIP error: out of memory", "oom_runtime", "ladder"),
        ("sglang", "Exception: Capture cuda graph failed: CUDA error: out of memory", "oom_runtime", "ladder"),
        ("sglang", "RuntimeError: Decode out of memory. Try to lower your batch size.", "oom_runtime", "ladder"),
        ("sglang", "RuntimeError: Out of memory. Try to lower your batch size.", "oom_runtime", "ladder"),
        ("llama.cpp", "CUDA error: out of memory", "oom_runtime", "ladder"),
        ("llama.cpp", "ROCm error: out of memory", "oom_runtime", "ladder"),
        ("vllm", "Failed core proc(s): {'EngineCore_DP0': -9, 'EngineCore_DP1': -9}", "killed", "ladder"),
        ("vllm", "Failed core proc(s): {'EngineCore_DP0': 1, 'EngineCore_DP1': -9}", "killed", "ladder"),
    ],
)
def test_an_error_of_memory_is_known_by_each_of_its_wordings(engine: str, line: str, kind: str, retry: str) -> None:
    found = ENGINES[engine].find_failure(f"INFO starts\n{line}\n")

    assert found is not None
    assert (found.kind, found.is_a.retry) == (kind, retry)


def test_a_request_that_sglang_puts_back_is_no_failure() -> None:
    line = "Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.98"

    assert ENGINES["sglang"].find_failure(line) is None
