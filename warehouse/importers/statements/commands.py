"""Launch commands and container images in a text: engine, model, flags and versions.

A command begins with the word that starts a server and goes on over lines that end with a backslash. Nothing is run:
the words are split and looked at. A word with a shell variable states nothing.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from bench.catalog.precisions import WEIGHT_BYTES
from bench.engines.config import memory_share, parallel_sizes, parse_flags, whole_number
from warehouse.importers.parsing.printed import printed_precision
from warehouse.importers.statements.stated import Stated

_STARTS = re.compile(
    r"(?P<vllm>\bvllm serve\b|\bvllm\.entrypoints\.openai\.api_server\b)"
    r"|(?P<sglang>\bsglang\.launch_server\b|\bsglang serve\b)|(?P<trtllm>\btrtllm-serve\b)|(?P<llama>\bllama-server\b)"
)
_ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm", "llama": "llama.cpp"}
# Behind any of these the words belong to another command or to prose.
_ENDS = re.compile(r"\s(?:&&|\|\|?|;|>|2>&1|#)\s?")
_WORDS_MAX = 200
_VARIABLE = re.compile(r"\$|<[A-Za-z_ -]+>|\{\{?")
_LENGTHS = ("--max-model-len", "--context-length", "--max-seq-len", "--ctx-size")
_SIZES = {"tp_size": ("tensor", "tp"), "pp_size": ("pipeline", "pp"), "dp_size": ("data", "dp")}
# `--dtype` is that of the activations where the weights are quantised, and says nothing of them.
_PRECISIONS = {"precision": "--quantization", "kv_precision": "--kv-cache-dtype"}
_MODELS = ("--model", "--model-path", "--hf-repo")
_IMAGE = re.compile(
    r"(?<![\w./-])(?P<image>(?:nvcr\.io/[\w./-]+|rocm/[\w.-]+|vllm/vllm-[\w-]+|lmsysorg/sglang[\w-]*|ghcr\.io/ggml-org/llama\.cpp"
    r"|ghcr\.io/huggingface/text-generation-inference):(?P<tag>[\w.-]{1,120}))(?:@sha256:[0-9a-f]{64})?"
)
_IN_NAME = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "tensorrt-llm", "trtllm": "tensorrt-llm"}
_VERSION_OF = re.compile(r"(?<![\d.])v?(\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?)(?![\d.])")
_NAMED_VERSION = re.compile(r"(vllm|sglang)[_-]v?(\d+\.\d+\.\d+(?:\.?(?:post|rc)\d+)?)")


def commands(text: str) -> Iterator[Stated]:
    """What every launch command of a text states."""
    for line, command in _joined(text):
        start = _STARTS.search(command)
        if start is None:
            continue
        words = _words(_ENDS.split(command[start.end() :], maxsplit=1)[0])
        # A sentence may name a command; without a flag or a repository it is none.
        if not any(word.startswith("--") for word in words) and not any("/" in word for word in words[:1]):
            continue
        yield from _of_words(_ENGINES[start.lastgroup or ""], words, f"command in line {line}")


def images(text: str) -> Iterator[Stated]:
    """The engine and its version, where the tag of an image names them."""
    for number, line in enumerate(text.splitlines(), start=1):
        if ":" not in line:
            continue
        for found in _IMAGE.finditer(line):
            where = f"image in line {number}"
            yield from _of_tag(found["image"].rpartition(":")[0], found["tag"], where)


def _of_tag(name: str, tag: str, where: str) -> Iterator[Stated]:
    """`rocm/vllm:rocm6.4.1_vllm_0.9.1_20250702` names versions in its tag, `vllm/vllm-openai:v0.9.2` has its own."""
    named = _NAMED_VERSION.search(tag.lower())
    engine = next((engine for word, engine in _IN_NAME.items() if word in name.lower()), None)
    if named is not None:
        yield Stated("engine", named[1], where)
        yield Stated("engine_version", named[2], where)
    elif engine is not None and not name.startswith(("rocm/", "nvcr.io/")):
        yield Stated("engine", engine, where)
        version = _VERSION_OF.match(tag.lower())
        if version is not None:
            yield Stated("engine_version", version[1], where)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with those that a backslash continues, each with the number of its first."""
    parts: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        parts.append(line.rstrip().removesuffix("\\"))
        if line.rstrip().endswith("\\") and len(parts) < _WORDS_MAX:
            continue
        yield number - len(parts) + 1, " ".join(parts)
        parts = []
    if parts:
        yield len(text.splitlines()) - len(parts) + 1, " ".join(parts)


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command.replace("`", " "))
    except ValueError:
        words = command.replace("`", " ").split()
    return words[:_WORDS_MAX]


def _of_words(engine: str, words: Sequence[str], where: str) -> Iterator[Stated]:
    flags = {name: value for name, value in parse_flags(words).items() if not _VARIABLE.search(value)}
    yield Stated("engine", engine, where)
    model = _model(words, flags)
    if model is not None:
        yield Stated("model", model, where)
    sizes = parallel_sizes(flags)
    for field, (long, short) in _SIZES.items():
        if {f"--{long}-parallel-size", f"--{short}-size", f"--{short}"} & flags.keys():
            yield Stated(field, getattr(sizes, field), where)
    length = next((number for name in _LENGTHS if (number := whole_number(flags, name))), None)
    if length is not None:
        yield Stated("max_model_len", length, where)
    share = memory_share(flags)
    if share is not None:
        yield Stated("gpu_memory_utilization", share, where)
    for field, name in _PRECISIONS.items():
        precision = printed_precision(flags.get(name))
        if precision in WEIGHT_BYTES:
            yield Stated(field, precision, where)


def _model(words: Sequence[str], flags: Mapping[str, str]) -> str | None:
    named = next((flags[name] for name in _MODELS if flags.get(name)), None)
    first = words[0] if words and not words[0].startswith("-") and not _VARIABLE.search(words[0]) else None
    name = named or first
    return name if name is not None and re.fullmatch(r"[\w./@+-]{2,150}", name) else None
