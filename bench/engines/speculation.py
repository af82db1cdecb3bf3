"""Speculative decoding as an engine's flags ask for it: the method, the draft model and the tokens of a draft."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.engines.config import parse_flags, whole_number

POSITIONS = 8  # of a draft, whose acceptance is kept position by position
NO_DRAFT_MODEL = frozenset({"ngram", "ngram_gpu", "suffix", "lookahead"})  # these propose from the text itself
WITH_DRAFT_MODEL = frozenset({"draft_model", "eagle", "eagle3", "medusa", "standalone"})
_VLLM = "--speculative-config"
_LLAMA_DRAFTS = ("--model-draft", "-md")


@dataclass(frozen=True)
class Speculation:
    """What flags ask for; None for what they leave to the engine.

    `draft_model` is a repository of the hub or a folder. `problem` says why the engine would refuse the flags.
    """

    method: str | None = None  # ngram, draft_model, eagle3, mtp and so on, in lower case
    tokens_max: int | None = None  # proposed per step
    draft_model: str | None = None
    problem: str | None = None

    @property
    def is_own_head(self) -> bool:
        """Whether the model drafts for itself, by layers for multi-token prediction in its own checkpoint."""
        return self.method is not None and (self.method.endswith("mtp") or self.method == "nextn")


def speculation_of(words: Sequence[str]) -> Speculation | None:
    """What the flags of vLLM, SGLang or llama.cpp ask for; None without speculative decoding."""
    flags = parse_flags(words)
    return speculation_in(flags)


def speculation_in(flags: Mapping[str, str]) -> Speculation | None:
    """The same of flags that are parsed already."""
    if any(name.partition(".")[0] in (_VLLM, "-sc") for name in flags):
        return _of_vllm(flags)
    if "--speculative-algorithm" in flags:
        method = flags["--speculative-algorithm"].lower() or None
        tokens = whole_number(flags, "--speculative-num-draft-tokens")
        return Speculation(method, tokens, flags.get("--speculative-draft-model-path"))
    draft = next((flags[name] for name in _LLAMA_DRAFTS if name in flags), None)
    if draft is None:
        return None
    tokens = whole_number(flags, "--draft-max") or whole_number(flags, "--draft")
    return Speculation("draft_model", tokens, draft)


def _of_vllm(flags: Mapping[str, str]) -> Speculation:
    """VLLM takes one JSON object, or its members as `--speculative-config.method ngram`."""
    text = flags.get(_VLLM) or flags.get("-sc") or "{}"
    try:
        given = json.loads(text)
    except ValueError as error:
        return Speculation(problem=f"{_VLLM} is not JSON: {error}")
    if not isinstance(given, dict):
        return Speculation(problem=f"{_VLLM} is not a JSON object")
    given |= {name.partition(".")[2].replace("-", "_"): value for name, value in flags.items() if "." in name}
    model, method, tokens = (given.get(key) for key in ("model", "method", "num_speculative_tokens"))
    # Without a method vLLM takes a model for a draft model.
    method = str(method).lower() if method else "draft_model" if model else None
    count = int(str(tokens)) if str(tokens or 0).strip("0").isdigit() else None
    problem = None
    if method is None:
        problem = f"{_VLLM} names no method and no model"
    elif method in WITH_DRAFT_MODEL and not model:
        problem = f"{_VLLM}: method {method} names no draft model"
    elif count is None and method in NO_DRAFT_MODEL:
        problem = f"{_VLLM}: method {method} says no num_speculative_tokens"
    return Speculation(method, count, str(model) if model else None, problem)
