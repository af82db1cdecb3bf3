import pytest

from bench.suite.secret_names import looks_secret
from tests.planted import NAMES


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in NAMES if name.isupper() and not name.startswith(("SSH", "PREFECT_API_DATABASE"))),
        *(
            "S3_ACCESS_KEY_ID",
            "GITHUB_TOKEN_2",
            "HF_TOKEN_PATH",
            "AUTHTOKEN",
            "DB_PWD",
            "openai_api_key",
            "OPENAI_APIKEY",
        ),
        *("GOOGLE_APPLICATION_CREDENTIALS", "CLIENT_SECRET", "MY-PASSWORD", "LICENSE_KEY", "PIP_INDEX_PASSWORD"),
    ],
)
def test_a_name_with_the_word_of_a_credential_looks_secret(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        # Every such name of vLLM 0.32.0's envs.py that has one of the words in it.
        *("VLLM_ENABLE_PREGRAD_PASSES", "VLLM_MAX_BAD_WORDS_TOTAL_TOKENS", "VLLM_MAX_TOKENS_PER_EXPERT_FP4_MOE"),
        *("VLLM_MULTI_STREAM_GEMM_TOKEN_THRESHOLD", "VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD"),
        *("VLLM_USE_FASTOKENS", "VLLM_USE_V1", "VLLM_ROCM_USE_AITER", "VLLM_CPU_KVCACHE_SPACE"),
        *("TOKENIZERS_PARALLELISM", "PWD", "OLDPWD", "NCCL_IB_PKEY", "KEYBOARD", "MONKEYS", "SECRETARY", "PATH", ""),
    ],
)
def test_a_name_that_only_resembles_a_credential_does_not_look_secret(name: str) -> None:
    assert not looks_secret(name)
