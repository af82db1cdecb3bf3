"""LoRA adapters: those that are generated with a model, and how requests are spread over adapters."""

import re

_GENERATED = re.compile(r"generated:.*&adapters=(\d+)")


def generated_adapters(source: str) -> int:
    """How many adapters a model's source asks to generate beside it."""
    found = _GENERATED.fullmatch(source)
    return int(found[1]) if found else 0


def adapter_names(count: int) -> tuple[str, ...]:
    """The names of generated adapters, as the server knows them."""
    return tuple(f"adapter-{number}" for number in range(count))
