"""Prompts of an exact length, no two alike, the same ones for the same seed."""

import random

from meter.plan import Prompts


def make_prompts(prompts: Prompts, count: int) -> list[list[int]]:
    """Draw `count` distinct prompts; the plan has checked that so many exist."""
    # random() is the one method whose sequence Python promises to keep between versions.
    draw = random.Random(f"prompts {prompts.seed}").random  # noqa: S311 -- load, not secrets
    span = prompts.token_high - prompts.token_low
    seen: set[tuple[int, ...]] = set()
    made: list[list[int]] = []
    while len(made) < count:
        prompt = [prompts.token_low + int(draw() * span) for _ in range(prompts.input_tokens)]
        key = tuple(prompt)
        if key not in seen:
            seen.add(key)
            made.append(prompt)
    return made
