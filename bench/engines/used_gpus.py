"""Which GPUs of its host an engine uses, by its ranks and by the variables that hide GPUs from it.

A rank takes one GPU, in the order of those that are visible. The runtime is taken to count GPUs as their tool does.
"""

from collections.abc import Mapping, Sequence

from bench.engines.config import parallel_sizes, parse_flags
from bench.host import HostFacts

ROCR, HIP, CUDA = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"
VISIBLE = (ROCR, HIP, CUDA)
RANKED = ("vllm", "sglang")


def used_gpus(
    engine: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    host: HostFacts,
    prefill_argv: Sequence[str] = (),
) -> tuple[int, ...] | None:
    """The indices of the GPUs that an engine uses; None where a variable names one by an id that is not known here.

    An engine without ranks, such as llama.cpp, takes all that it sees. `prefill_argv` is that of its other server.
    """
    visible = _visible(environment, host)
    if visible is None or engine not in RANKED:
        return visible
    servers = (argv, prefill_argv) if prefill_argv else (argv,)
    return visible[: sum(parallel_sizes(parse_flags(words)).gpu_count for words in servers)]


def names_of(indices: Sequence[int], host: HostFacts) -> frozenset[str]:
    """What tools call these GPUs: the index, and the UUID where it is known."""
    uuids = (host.gpu_details[at].uuid for at in indices if at < len(host.gpu_details))
    return frozenset((*map(str, indices), *(uuid for uuid in uuids if uuid)))


def _visible(environment: Mapping[str, str], host: HostFacts) -> tuple[int, ...] | None:
    """The GPUs in the engine's order. HIP counts those that ROCR leaves, and reads CUDA's variable too."""
    is_nvidia = any("nvidia" in name.lower() for name in host.gpus)
    rocr, hip, cuda = (environment.get(name) for name in VISIBLE)
    # Ray wants both of AMD's to be equal, and then they are one choice.
    chosen = [cuda] if is_nvidia else [rocr, (None if hip == rocr else hip) if hip is not None else cuda]
    left: tuple[int, ...] | None = tuple(range(len(host.gpus)))
    for value in chosen:
        if value is not None and left is not None:
            left = _picked(value, left, host)
    return left


def _picked(value: str, among: tuple[int, ...], host: HostFacts) -> tuple[int, ...] | None:
    """The GPUs that a list names; the first number without a GPU ends it, as in CUDA and HIP."""
    picked: list[int] = []
    for word in (one.strip() for one in value.split(",")):
        if word.isdigit() and int(word) < len(among):
            picked.append(among[int(word)])
        elif not word or word.lstrip("-").isdigit():
            break
        else:
            named = [at for at in among if at < len(host.gpu_details) and _is_named(word, host.gpu_details[at].uuid)]
            if len(named) != 1:
                return None
            picked += named
    return tuple(picked)


def _is_named(word: str, uuid: str | None) -> bool:
    """Whether this is a GPU's id, or its begin, as CUDA takes it."""
    return uuid is not None and uuid.lower().startswith(word.lower())
