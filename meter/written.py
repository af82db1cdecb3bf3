"""Written prompts: a task on passages of real text, for what a model guesses ahead as it does of people's prompts."""

import random
from collections.abc import Iterator
from math import perm

from meter.passages import PASSAGES

BYTES_PER_TOKEN = 4  # the usual guess for text without a tokenizer at hand
# Each asks for a long answer, so that a model of which a few hundred tokens are requested does not end before them.
TASKS = (
    "Summarise the text above in four paragraphs, then list ten facts from it in its own words.",
    "Rewrite the text above for a child of nine. Keep each sentence, one by one, and explain every hard word.",
    "Translate the text above into French, sentence by sentence, with each original sentence before its translation.",
    "Correct the grammar and style of the text above. Repeat it in full with your changes, then explain each of them.",
    "Write a dialogue of at least forty lines in which two people who know the text above discuss it.",
    "Turn the text above into a JSON document with as many fields as you can find, then describe each field.",
    "Continue the text above in the same voice for at least six hundred words.",
    "Write twenty questions that the text above answers, each followed by its answer as a quotation.",
    "Write a Python program of about eighty lines that models what the text above describes, with comments.",
    "Argue for and against the choices in the text above, in at least eight paragraphs each.",
)
READERS = (
    *("a new colleague", "a busy manager", "a student", "an auditor", "a journalist", "a neighbour"),
    *("an engineer", "a lawyer", "a customer", "a translator", "a teacher", "a friend abroad"),
)
_MEAN_BYTES = sum(len(text.encode()) for text in PASSAGES) / len(PASSAGES)


def distinct_count(tokens: int) -> int:
    """How many different prompts of about this many tokens exist."""
    return len(TASKS) * len(READERS) * perm(len(PASSAGES), _passages_for(tokens))


def written_prompts(seed: int, tokens: int, count: int) -> Iterator[str]:
    """Yield `count` distinct prompts of about `tokens` tokens each, but of one passage at least.

    The passages come first, so that prompts with the same task share no beginning.
    """
    draw = random.Random(f"written {seed}").random  # noqa: S311 -- load, not secrets
    seen: set[str] = set()
    while len(seen) < count:
        left = list(PASSAGES)
        chosen = [left.pop(int(draw() * len(left))) for _ in range(_passages_for(tokens))]
        task, reader = (words[int(draw() * len(words))] for words in (TASKS, READERS))
        prompt = "\n\n".join((*chosen, f"{task} Your reader is {reader}."))
        if prompt not in seen:
            seen.add(prompt)
            yield prompt


def _passages_for(tokens: int) -> int:
    """How many passages of mean length fit."""
    return max(1, min(len(PASSAGES), round(tokens * BYTES_PER_TOKEN / _MEAN_BYTES)))
