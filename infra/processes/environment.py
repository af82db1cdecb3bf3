"""The environment of child processes: an allow-list, so that no child inherits this process's credentials."""

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NewType

from bench.suite.secret_names import looks_secret

ChildEnvironment = NewType("ChildEnvironment", dict[str, str])  # made by child_environment alone

# What any program may need: the user's session, the loader and the allocator, compilers that run at run time, ...
_SESSION = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM")
_FOLDERS = ("TMPDIR", "TMP", "TEMP", "XDG_*")
_LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_*", "TCMALLOC_*", "PYTHON*")
_COMPILERS = ("CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "MAX_JOBS", "NVCC_*")
# ... GPUs and their libraries, threads, the engine and the model libraries, and our own marks.
_GPUS = ("CUDA_*", "NVIDIA_*", "HIP_*", "ROCR_*", "ROCM_*", "HSA_*", "GPU_*", "AMD_*", "MIOPEN_*", "AITER_*")
_COLLECTIVES = ("NCCL_*", "RCCL_*", "UCX_*", "GLOO_*")
_THREADS = ("OMP_*", "KMP_*", "GOMP_*", "MKL_*", "DNNL_*", "ONEDNN_*", "OPENBLAS_*")
_ENGINES = (
    "VLLM_*",
    "TORCH*",
    "PYTORCH_*",
    "TRITON_*",
    "FLASHINFER_*",
    "HF_*",
    "TRANSFORMERS_*",
    "TOKENIZERS_*",
    "LLAMA_*",
    "GGML_*",
    "SGLANG_*",
)
_QUIET = ("DO_NOT_TRACK",)
_MARKS = ("NIGHTBENCH_LEASE", "NIGHTBENCH_OWNER")
ANY = (*_SESSION, *_FOLDERS, *_LOADER, *_COMPILERS, *_GPUS, *_COLLECTIVES, *_THREADS, *_ENGINES, *_QUIET, *_MARKS)

# What programs need that reach the network; a proxy's address may hold its password.
NETWORK = ("*_proxy", "*_PROXY", "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
INSTALLERS = (*NETWORK, "UV_*", "UV_INDEX_*_PASSWORD", "PIP_*")
TOOLS = (*NETWORK, "DOCKER_*", "DOCKER_AUTH_CONFIG")  # docker, apt-get and the tools of a machine

NOTHING: Mapping[str, str] = MappingProxyType({})


def child_environment(own: Mapping[str, str] = NOTHING, also: Sequence[str] = ()) -> ChildEnvironment:
    """The variables of this process that a child gets, and `own`, which it gets whatever their names are.

    `also`: patterns of further names. A name that looks like a credential needs a pattern that looks like one.
    """
    patterns = (*ANY, *also)
    inherited = {name: value for name, value in os.environ.items() if _is_allowed(name, patterns)}
    return ChildEnvironment({**inherited, **own})


def _is_allowed(name: str, patterns: Sequence[str]) -> bool:
    is_secret = looks_secret(name)
    return any(fnmatchcase(name, one) and looks_secret(one) >= is_secret for one in patterns)
