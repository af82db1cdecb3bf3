"""Which of several models, such as adapters of one server, each request asks for: by Zipf's law."""

import random
from itertools import accumulate

from meter.plan import Plan


def draw_models(plan: Plan) -> list[str]:
    """Draw the model of each request, warm-up included; the n-th of the list is n^-zipf times as popular as the first.

    The first requests of the warm-up go through the list, so that each adapter is loaded once before it is measured.
    """
    if plan.models is None:
        return [plan.model] * plan.total_count
    names = plan.models["names"]
    # random() is the one method whose sequence Python promises to keep between versions.
    draw = random.Random(f"models {plan.prompts.seed}").random  # noqa: S311 -- load, not secrets
    ends = list(accumulate(rank ** -float(plan.models["zipf"]) for rank in range(1, len(names) + 1)))
    drawn = [_pick(names, ends, draw() * ends[-1]) for _ in range(plan.total_count)]
    first = min(len(names), plan.warmup_count)
    return [*names[:first], *drawn[first:]]


def _pick(names: list[str], ends: list[float], at: float) -> str:
    return next((name for name, end in zip(names, ends, strict=True) if at < end), names[-1])
