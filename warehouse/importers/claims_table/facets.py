"""What a header, a caption or a heading states beside a number: GPU, how many, model, precision, load and lengths."""

import re
from collections.abc import Mapping
from functools import lru_cache

from catalog.read import read_names
from warehouse.importers.claims_table.words import engine_in

_LENGTH = r"(\d[\d,.]*\s?k?)"
# By column of the claims table; each takes its words out of the text.
_STATED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (column, re.compile(pattern, re.IGNORECASE))
    for column, pattern in (
        ("isl", rf"\b(?:isl|input(?:[ _-]?(?:len(?:gth)?|tokens?))?|in)\s*[=:]?\s*{_LENGTH}(?!\w)"),
        ("osl", rf"\b(?:osl|output(?:[ _-]?(?:len(?:gth)?|tokens?))?|out)\s*[=:]?\s*{_LENGTH}(?!\w)"),
        ("batch", r"\b(?:batch(?:[ _-]?size)?|bs|bsz)\s*[=:]?\s*(\d{1,6})(?!\w)"),
        ("concurrency", r"\b(?:concurrency|conc|concurrent requests)\s*[=:@]?\s*(\d{1,6})(?!\w)"),
        ("concurrency", r"@\s*(\d{1,6})(?![\w.])"),
        ("concurrency", r"\b(\d{1,6})\s*(?:concurrent\s+)?(?:users|clients|streams)\b"),
        ("request_rate", r"\b(?:qps|request rate)\s*[=:]?\s*(\d[\d.]*)(?!\w)"),
        ("request_rate", r"(?<![\w.])(\d[\d.]*)\s*(?:qps)\b"),
        ("tp", r"\b(?:tp|tensor[ _-]parallel(?:ism)?(?:[ _-]size)?)\s*[=:-]?\s*(\d{1,3})(?!\w)"),
        ("gpu_count", r"(?<![\w.])(\d{1,4})\s*[x\u00d7*]?\s*(?:gpus?|cards?)\b"),
    )
)
_PAIR = re.compile(r"(?<![\w./])(\d+(?:\.\d+)?k?)\s*(?:/|->|→)\s*(\d+(?:\.\d+)?k?)(?![\w./])", re.IGNORECASE)
# `Prompt (2048) tok/sec`: whose tokens the rate counts, and how many each request has; the word stays.
_COUNTED = re.compile(
    r"\b(?:(?P<isl>prompt|prefill|input)|(?P<osl>generation|decode|output))\s*\(\s*(?P<count>\d[\d,]*k?)"
    r"(?:\s*tok(?:en)?s?)?\s*\)",
    re.IGNORECASE,
)
_PRECISION = re.compile(
    r"(?<![a-z0-9])(?:bf16|fp16|f16|fp32|f32|bfloat16|float16|float32|fp8|fp4|nvfp4|mxfp4|int8|int4|w4a16|w8a8|awq|gptq|i?q\d(?:_[a-z0-9]+)*)(?![a-z0-9_])",
    re.IGNORECASE,
)
_SIZE = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?b(?![a-z0-9])", re.IGNORECASE)
_COUNT_OF = re.compile(r"\s*(?:[x\u00d7*]\s*\d{1,4}|\d{1,4}\s*[x\u00d7*])\s*")

# llama.cpp's name of a test: so many prompt tokens, or so many generated ones, behind a context that is not timed.
_LLAMA_TEST = re.compile(r"(pp|tg)\s?(\d{1,7})(?:\s*@\s*d\s?(\d{1,7}))?", re.IGNORECASE)

Facets = tuple[Mapping[str, str], str]


@lru_cache(maxsize=4096)
def facets_of(text: str) -> Facets:
    """The columns that this text states with their cells, and the words that are left.

    A text that states one column twice, such as two precisions, states none of it.
    """
    found, rest = _named(text)
    counted = _COUNTED.search(rest)
    rest = _COUNTED.sub(lambda each: each["isl"] or each["osl"], rest)
    for column, pattern in _STATED:
        found.setdefault(column, []).extend(_thousands(one) for one in pattern.findall(rest))
        rest = pattern.sub(" ", rest)
    if counted:
        found["isl" if counted["isl"] else "osl"].append(_thousands(counted["count"]))
    if not found["isl"] and not found["osl"]:
        pairs = _PAIR.findall(rest)
        found["isl"], found["osl"] = ([_thousands(pair[side]) for pair in pairs] for side in (0, 1))
        rest = _PAIR.sub(" ", rest)
    found["precision"] = _PRECISION.findall(rest)
    rest = _PRECISION.sub(" ", rest)
    if "model" not in found:
        found["model"] = _SIZE.findall(rest)
        rest = _SIZE.sub(" ", rest)
    once = {column: values[0].strip() for column, values in found.items() if len(set(values)) == 1}
    return once, " ".join(rest.split())


def _named(text: str) -> tuple[dict[str, list[str]], str]:
    """The GPU with its count, the model and the engine that a text names, and the text without them."""
    found: dict[str, list[str]] = {}
    rest = text
    gpu = read_names().gpu_in(rest)
    if gpu:
        rest = rest.replace(gpu, " ", 1)
        found["gpu"] = [gpu + " " + " ".join(count) if (count := _COUNT_OF.findall(rest)) else gpu]
        rest = _COUNT_OF.sub(" ", rest)
    model = read_names().model_in(rest)
    if model:
        found["model"] = [model]
        rest = rest.replace(model, " ", 1)
    engine = engine_in(rest)
    if engine:
        found["framework"] = [engine]
        rest = rest.replace(engine, " ")
    return found, rest


def _thousands(text: str) -> str:
    """A length as a plain number: `8k` is 8192, as context lengths are meant; `1,024` is 1024."""
    plain = text.replace(",", "").strip().lower()
    if plain.endswith("k"):
        return f"{float(plain[:-1] or 0) * 1024:.0f}"
    return plain.rstrip(".")


def llama_test(text: str) -> tuple[str, dict[str, str]] | None:
    """The metric of a test of llama-bench and its lengths: `pp512` is input throughput; None for other text."""
    found = _LLAMA_TEST.fullmatch(text.strip())
    if found is None:
        return None
    if found[1].lower() == "pp":
        return "input_throughput", {"isl": found[2]}
    return "output_throughput", {"osl": found[2], "isl": found[3] or "0"}
