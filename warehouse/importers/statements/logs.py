"""The start of an engine's log, and captures of nvidia-smi, amd-smi and rocm-smi: what ran, and on what.

Texts as vLLM 0.6 to 0.32, SGLang 0.4, TensorRT-LLM 1.0 and llama.cpp print them; the engines' own modules read what a
night of ours reads too.
"""

import re
from collections.abc import Iterator

from bench.catalog.precisions import WEIGHT_BYTES
from bench.engines.by_name import ENGINES
from catalog.read import read_names
from warehouse.importers.parsing.printed import printed_precision
from warehouse.importers.statements.stated import Stated

_INTEGER = r"(\d[\d,]*)"
_OF = r"[=:]\s*'?"
# By engine: the line that only its log has, then fields with the pattern of their value.
_ENGINE_LINES = {
    "vllm": re.compile(r"vLLM API server version|Initializing (?:a V1|an) LLM engine \(v|GPU KV cache size:"),
    "sglang": re.compile(r"server_args=ServerArgs\(|max_total_num_tokens=\d|The server is fired up and ready to roll"),
    "tensorrt-llm": re.compile(r"\[TensorRT-LLM\]|\[TRT-LLM\]"),
    "llama.cpp": re.compile(r"llama_model_loader: loaded meta data|llama_context: n_ctx|llama_kv_cache"),
}
_TEXTS = {
    "engine_version": re.compile(r"(?:LLM engine \(v|API server version |TensorRT[- ]LLM version: ?)([\d.]+[\w.+-]*)"),
    "model": re.compile(rf"(?:\bmodel|\bmodel_path){_OF}([\w./@+-]{{2,150}})'?"),
}
_NUMBERS = {
    "tp_size": re.compile(rf"\b(?:tensor_parallel_size|tp_size){_OF}(\d+)"),
    "pp_size": re.compile(rf"\b(?:pipeline_parallel_size|pp_size){_OF}(\d+)"),
    "dp_size": re.compile(rf"\b(?:data_parallel_size|dp_size){_OF}(\d+)"),
    "max_model_len": re.compile(rf"\b(?:max_model_len|max_seq_len|context_length|n_ctx)\s*{_OF}(\d+)"),
}
_PRECISIONS = {
    "precision": re.compile(rf"\bquantization{_OF}([\w-]+)"),
    "kv_precision": re.compile(rf"\bkv_cache_dtype{_OF}([\w-]+)"),
}
_ROOM = re.compile(rf"Maximum concurrency for {_INTEGER} tokens per request: (\d+(?:\.\d+)?)x")
_PREEMPTED = re.compile(r"\bis preempted\b|\bPreempting\b|Retract(?:ed)? requests?", re.IGNORECASE)

_NVIDIA_ROW = re.compile(r"^\|\s+\d+\s+(NVIDIA [\w ./-]+?|Tesla [\w-]+)\s+(?:On|Off)?\s*\|", re.MULTILINE)
_NVIDIA_LIST = re.compile(r"^GPU \d+: (.+?) \(UUID", re.MULTILINE)
_AMD_NAME = re.compile(
    r"(?:MARKET_NAME|Card series|Card Series|Device Name|Marketing Name)\s*:\s*(.+?)\s*$", re.MULTILINE
)


def logs(text: str) -> Iterator[Stated]:
    """What an engine's log states; nothing of another text."""
    engine = next((name for name, line in _ENGINE_LINES.items() if line.search(text)), None)
    if engine is None:
        return
    where = f"{engine}'s log"
    yield Stated("engine", engine, where)
    for field, pattern in _TEXTS.items():
        found = pattern.search(text)
        if found is not None:
            yield Stated(field, found[1], where)
    for field, pattern in _NUMBERS.items():
        found = pattern.search(text)
        if found is not None and int(found[1]):
            yield Stated(field, int(found[1]), where)
    for field, pattern in _PRECISIONS.items():
        found = pattern.search(text)
        precision = printed_precision(found[1]) if found is not None else None
        if precision in WEIGHT_BYTES:
            yield Stated(field, precision, where)
    yield from _of_cache(engine, text, where)


def _of_cache(engine: str, text: str, where: str) -> Iterator[Stated]:
    """The room of the KV cache, the attention backend, and requests that lost theirs."""
    module = ENGINES.get(engine)
    if module is not None:
        tokens, backend = module.kv_cache_tokens(text), module.attention_backend(text)
        found = {"kv_cache_tokens": tokens, "attention_backend": backend}
        yield from (Stated(field, value, where) for field, value in found.items() if value is not None)
    room = _ROOM.search(text)
    if room is not None:
        yield Stated("kv_max_concurrency", float(room[2]), where)
    preempted = len(_PREEMPTED.findall(text))
    if preempted:
        yield Stated("preemptions", preempted, where)


def captures(text: str) -> Iterator[Stated]:
    """The GPUs that a capture of their maker's tool lists, if all are of one sort."""
    for tool, pattern in (("nvidia-smi", _NVIDIA_ROW), ("nvidia-smi -L", _NVIDIA_LIST), ("amd-smi", _AMD_NAME)):
        listed = [name.rstrip(".") for name in pattern.findall(text)]
        known = [name for name in listed if read_names().gpus_called(name)]
        if known and len(set(known)) == 1:
            yield Stated("gpu", known[0], tool)
            yield Stated("gpu_count", len(known), tool)
            return
