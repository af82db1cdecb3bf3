"""The environment of child processes: an allow-list, so that no child inherits this process's credentials."""

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
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

# Where systems keep the authorities that they trust, with those that a company added; a slim container has none.
SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
UV_SYSTEM_CERTS = ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS")  # uv 0.13 knows both, older ones only the second
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_DIRECT = ("127.0.0.1", "localhost", "::1")

NOTHING: Mapping[str, str] = MappingProxyType({})


def child_environment(own: Mapping[str, str] = NOTHING, also: Sequence[str] = ()) -> ChildEnvironment:
    """The variables of this process that a child gets, and `own`, which it gets whatever their names are.

    `also`: patterns of further names. A name that looks like a credential needs a pattern that looks like one.
    """
    patterns = (*ANY, *also)
    inherited = {name: value for name, value in os.environ.items() if _is_allowed(name, patterns)}
    return ChildEnvironment({**inherited, **own})


def installer_environment() -> ChildEnvironment:
    """The variables of uv: it trusts what this system trusts, unless the user has decided that or there is no bundle.

    uv's own authorities lack that of a company whose proxy signs every page again.
    """
    has_bundle = any(Path(bundle).is_file() for bundle in SYSTEM_BUNDLES)
    is_decided = any(name in os.environ for name in UV_SYSTEM_CERTS)
    trusted = dict.fromkeys(UV_SYSTEM_CERTS, "true") if has_bundle and not is_decided else {}
    return child_environment(trusted, also=INSTALLERS)


def use_no_proxy_here() -> None:
    """Let no request of this process and its children to this computer go through a proxy, such as to Prefect's server.

    Where a proxy is set, its addresses are added to NO_PROXY, which most libraries read.
    """
    if not any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES):
        return
    listed = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    known = [place.strip() for place in listed.split(",") if place.strip()]
    value = ",".join([*known, *(place for place in _DIRECT if place not in known)])
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = value


def _is_allowed(name: str, patterns: Sequence[str]) -> bool:
    is_secret = looks_secret(name)
    return any(fnmatchcase(name, one) and looks_secret(one) >= is_secret for one in patterns)
