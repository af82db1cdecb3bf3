"""Requests for embeddings: a vector of each prompt, without output tokens."""

from collections.abc import Mapping
from typing import Any

EMBED = "embed"
_FORMS = ("tokens", "text")
_PROMPTS = ("random", "shared-prefix", "sharegpt", "written")


def without_answer(values: object) -> object:
    """What a suite gives for embeddings has no `osl`; 1 stands in its place, and no row has it."""
    if not isinstance(values, dict) or values.get("task") != EMBED:
        return values
    if values.get("osl", 1) != 1:
        msg = "an embedding has no output tokens: leave osl out"
        raise ValueError(msg)
    return values | {"osl": 1}


def require_embeddable(driver: str, prompts: Any, kinds: Mapping[str, object]) -> None:
    """Raise ValueError where a load cannot be one of embeddings; `kinds` are settings that need answers in words."""
    given = next((name for name, value in kinds.items() if value), None)
    if driver != "meter" or given is not None:
        msg = f"embeddings need the meter, and have no text: leave {given or 'driver'} out"
        raise ValueError(msg)
    if prompts.kind not in _PROMPTS or prompts.form not in _FORMS:
        msg = f"embeddings are of prompts as tokens or text, of the kinds {', '.join(_PROMPTS)}"
        raise ValueError(msg)
