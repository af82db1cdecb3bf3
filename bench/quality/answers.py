"""Whether the same weights still give the same answers: the questions, the reading, the comparison.

A kernel that is quick and wrong looks good in every other column. So each server answers the same questions before
its first and after its last load, one request at a time: alone in its batch, a request has one
shape, and the same additions in the same order.
"""

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from statistics import median
from typing import Any

from bench import evidence_columns as ev
from bench.engines.by_name import ENGINES
from bench.errors import UnreadableResultError
from bench.foreign_json import first, members, parse
from bench.quality.passage import TEXT
from bench.record import Answers, RunRecord

Greedy = Sequence[Sequence[int]]  # the token ids that followed each prompt
Body = dict[str, Any]
ServerProcess = tuple[str | None, int, float]  # its lease, its process id and its cold start in seconds

GREEDY_TOKENS = 16
TOKEN_IDS = 2**31  # more than any vocabulary has
# A vocabulary without English words spells the passage out: what comes before its last tokens is cut off.
PROMPT_TOKENS_MAX = 128
# What vLLM writes for minus infinity. One token that has no finite number makes the whole mean this, which no column
# takes: numerics that broke must not pass for missing.
NOT_A_NUMBER = -9999.0


def ask_passage(model: str) -> Body:
    """The request for the log-probability of each token of the passage."""
    return _ask(model, TEXT, 1)


def ask_greedy(model: str, prompt: str) -> Body:
    """The completion that goes on with a prompt by the likeliest tokens."""
    return _ask(model, prompt, GREEDY_TOKENS) | {"ignore_eos": True}


def _ask(model: str, prompt: str, max_tokens: int) -> Body:
    # Prompt log-probabilities keep vLLM from reading the prompt out of its prefix cache, where it was since the first
    # time: the second time must compute what the first one did.
    said = {"prompt_logprobs": 0, "return_token_ids": True, "truncate_prompt_tokens": PROMPT_TOKENS_MAX}
    return {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0.0, "seed": 0, **said}


def read_logprobs(answer: str) -> tuple[float, int]:
    """Mean log-probability, in nats a token, of the prompt's tokens after the first, and how many these are.

    Raises UnreadableResultError if the answer lacks them.
    """
    try:
        choice: Any = _first_choice(answer)
        ids, said = choice["prompt_token_ids"], choice["prompt_logprobs"]
        values = [said[at][str(ids[at])]["logprob"] for at in range(1, len(ids))]
        total = math.fsum(math.nan if value is None else float(value) for value in values)
        mean = total / len(values)
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise UnreadableResultError(f"the server returned no log-probabilities of the prompt ({error!r})") from error
    return (mean if math.isfinite(mean) else NOT_A_NUMBER), len(values)


def read_greedy(answer: str) -> tuple[int, ...]:
    """The token ids of an answer; raises UnreadableResultError if any of the requested tokens is missing."""
    try:
        ids: Any = _first_choice(answer)["token_ids"]
        tokens = tuple(int(token) for token in ids)
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise UnreadableResultError(f"the server returned no token ids ({error!r})") from error
    if not all(0 <= token < TOKEN_IDS for token in tokens):
        raise UnreadableResultError(f"the server returned token ids that no vocabulary has: {max(tokens, key=abs)}")
    if len(tokens) != GREEDY_TOKENS:
        raise UnreadableResultError(f"the server returned {len(tokens)} of {GREEDY_TOKENS} requested tokens")
    return tokens


def _first_choice(answer: str) -> dict[str, object]:
    return first(members(parse(answer))["choices"])


def fingerprint(greedy: Greedy) -> str | None:
    """The first 16 hex digits of the SHA-256 of all token ids, equal for equal answers; None without answers."""
    text = json.dumps([list(tokens) for tokens in greedy], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16] if greedy else None


def agreed_share(first: Greedy, second: Greedy) -> float | None:
    """The share of tokens before the first difference, prompt by prompt; None if one side has no answers.

    Tokens after a difference do not count: they continue another text.
    """
    total = sum(len(tokens) for tokens in first)
    if not total or [len(tokens) for tokens in first] != [len(tokens) for tokens in second]:
        return None
    pairs = (zip(one, other, strict=True) for one, other in zip(first, second, strict=True))
    return sum(len(list(takewhile(lambda pair: pair[0] == pair[1], pair))) for pair in pairs) / total


def quality_id(record: RunRecord) -> str | None:
    """What is equal for runs whose answers must be: passage, weights, precision, and flags that change numbers.

    Not the engine's version, nor flags that make it fast: whether these keep the answers is the question.
    """
    if record.accuracy is None or record.weights is None:
        return None
    engine = record.asked.engine
    same = [record.accuracy.passage, engine.name, record.weights.sha256, record.asked.model.precision]
    text = json.dumps([*same, sorted(numeric_settings(engine.flags, ENGINES[engine.name].NUMERIC_FLAGS))])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def numeric_settings(flags: Sequence[str], numeric: Collection[str]) -> Iterator[str]:
    """The flags of an engine's argv that change numbers, as `--flag=value`, `--flag` where it has none."""
    for at, flag in enumerate(flags):
        name, equals, _value = flag.partition("=")
        if name in numeric:
            follower = "" if equals or at + 1 == len(flags) or flags[at + 1].startswith("-") else f"={flags[at + 1]}"
            yield flag + follower


def last_answers(records: Iterable[RunRecord]) -> dict[ServerProcess, Answers]:
    """The answers of each server process of a night after its last load; only one of its records has them."""
    found: dict[ServerProcess, Answers] = {}
    for record in sorted(records, key=lambda record: record.order):
        process = process_of(record)
        if process is not None and record.accuracy is not None and record.accuracy.after is not None:
            found[process] = record.accuracy.after
    return found


def with_last_answers(record: RunRecord, last: Mapping[ServerProcess, Answers]) -> RunRecord:
    """The record with its server's answers after its last load, where it has no later answers of its own.

    What changed between the two may have changed before any of the server's runs, so it counts for all of them.
    """
    process, accuracy = process_of(record), record.accuracy
    if process is None or process not in last or accuracy is None or accuracy.after is not None:
        return record
    return record.model_copy(update={"accuracy": accuracy.model_copy(update={"after": last[process]})})


def process_of(record: RunRecord) -> ServerProcess | None:
    """The server process that a run was measured on; None of one without a server of ours."""
    if record.server is None or record.server.pid is None or record.server.cold_start_s is None:
        return None
    return (record.lease.lease_id if record.lease else None, record.server.pid, record.server.cold_start_s)


def changes(record: RunRecord) -> Mapping[str, float | None]:
    """How a server's answers after its load differ from those before it; None where either is missing."""
    asked = record.accuracy
    if asked is None or asked.after is None:
        return {}
    before, after = asked.before, asked.after
    return {
        ev.LOGPROB_CHANGE: _apart(before.logprob_mean, after.logprob_mean),
        ev.GREEDY_AGREED_SHARE: agreed_share(before.greedy, after.greedy),
    }


def _apart(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else abs(one - other)


def fall(means: Sequence[float | None], earlier: Sequence[float]) -> float | None:
    """How far the lower of a run's means lies below the median of earlier nights' (negative: above it), in nats.

    None without a mean or an earlier night.
    """
    known = [mean for mean in means if mean is not None]
    return median(earlier) - min(known) if known and earlier else None
