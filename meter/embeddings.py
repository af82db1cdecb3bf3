"""Embeddings: one JSON answer to each request, which is a vector and has neither a stream nor output tokens."""

import math
from typing import Any

PATH = "/v1/embeddings"
KIND = "embedding"  # of the one event of an answer


def request_body(model: str, parts: dict[str, Any]) -> dict[str, Any]:
    """The body that asks for the vector of a prompt, which is ids or text."""
    return {"model": model, "input": parts["prompt"]}


def vector_of(body: dict[str, Any]) -> list[Any] | None:
    """The vector in an answer to one prompt; None where it has none, or several."""
    data = body.get("data")
    if not isinstance(data, list) or len(data) != 1 or not isinstance(data[0], dict):
        return None
    vector = data[0].get("embedding")
    return vector if isinstance(vector, list) else None


def is_usable(vector: list[Any]) -> bool:
    """Whether a vector has a direction: finite numbers, and not all of them zero."""
    are_numbers = all(type(one) in (int, float) and math.isfinite(one) for one in vector)
    return are_numbers and any(vector)
