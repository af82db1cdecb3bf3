"""The prompts of a plan: all different, and the same for the same seed."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from meter.images import image_urls
from meter.prompt_spec import Prompts
from meter.replay import Symbols, replayed_prompts
from meter.sharegpt import Conversation, select_conversations
from meter.words import WORDS
from meter.written import written_prompts

ROLES = ("user", "assistant")  # in turns, as in a chat


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of one request; None if a field does not apply, or needs the engine's tokenizer."""

    parts: dict[str, Any]  # the members of the body that hold it
    prompt_id: str
    output_tokens: int
    tokens: int | None
    cached_tokens: int | None  # what a prefix cache can have of it when it comes, from the prompts before it
    conversation: int | None = None
    turn: int | None = None
    pause_s: float = 0.0  # from the answer to the turn before until this one is due


def make_prompts(prompts: Prompts, count: int, output_tokens: int) -> list[Prompt]:
    """Draw `count` prompts, distinct unless `repeat` allows otherwise; the plan has checked that enough exist.

    Raises UsageError where a file of conversations is unreadable or too short.
    """
    return list(_MAKERS[prompts.kind](prompts, count, output_tokens))


class Drawing:
    """Draws random symbols; distinct() never returns the same ones twice."""

    def __init__(self, prompts: Prompts) -> None:
        # random() is the one method whose sequence Python promises to keep between versions.
        self._random: Callable[[], float] = random.Random(f"prompts {prompts.seed}").random  # noqa: S311 -- load
        self._symbols = prompts.symbols
        self._own_tokens = prompts.input_tokens - prompts.prefix_tokens
        self._seen: set[Symbols] = set()

    def any(self, length: int) -> Symbols:
        """Draw `length` symbols."""
        return tuple(int(self._random() * self._symbols) for _ in range(length))

    def distinct(self, length: int | None = None) -> Symbols:
        """Draw symbols that were not drawn before; by default as many as a prompt has outside its prefix."""
        while True:
            drawn = self.any(length or self._own_tokens)
            if drawn not in self._seen:
                self._seen.add(drawn)
                return drawn


def _grouped(prompts: Prompts, count: int, output_tokens: int) -> Iterator[Prompt]:
    """Yield prompts of each group in turn: the group's prefix and a part of its own."""
    draw = Drawing(prompts)
    is_exact, has_prefix = prompts.form == "tokens", prompts.prefix_tokens > 0
    prefixes = [draw.distinct(prompts.prefix_tokens) if has_prefix else () for _ in range(prompts.groups)]
    for index in range(count):
        group = index % prompts.groups
        cached = prompts.prefix_tokens if index >= prompts.groups else 0
        yield Prompt(
            parts=_parts(prompts, [prefixes[group] + draw.distinct()]),
            prompt_id=f"{prompts.seed}.{group}.{index}" if has_prefix else f"{prompts.seed}.{index}",
            output_tokens=output_tokens,
            tokens=prompts.input_tokens if is_exact else None,
            cached_tokens=cached if is_exact or (prompts.form == "text" and not has_prefix) else None,
        )


def _repeated(prompts: Prompts, count: int, output_tokens: int) -> Iterator[Prompt]:
    """Yield the same prompt at every even place, and a distinct one at each odd place."""
    draw = Drawing(prompts)
    same = draw.distinct()
    for index in range(count):
        drawn = draw.distinct() if index % 2 else same
        named = f"{prompts.seed}.{index if index % 2 else 'same'}"
        yield Prompt(_parts(prompts, [drawn]), named, output_tokens, tokens=None, cached_tokens=None)


def _conversations(prompts: Prompts, count: int, output_tokens: int) -> Iterator[Prompt]:
    draw = Drawing(prompts)
    for number in range(count // prompts.turns):
        yield from _conversation(prompts, draw, number, output_tokens)


def _conversation(prompts: Prompts, draw: Drawing, number: int, output_tokens: int) -> Iterator[Prompt]:
    """Yield the prompts of one conversation: each holds all earlier turns and a new one.

    The assistant's turns are random too, in the requested length: prompts are written before the load starts, so they
    cannot hold the server's own answers.
    """
    is_exact = prompts.form == "tokens"
    history: list[Symbols] = []
    before = 0  # tokens of the prompt before, all of them at the beginning of this one
    for turn in range(prompts.turns):
        history.append(draw.any(prompts.input_tokens) if history else draw.distinct())
        length = sum(map(len, history))
        yield Prompt(
            parts=_parts(prompts, history),
            prompt_id=f"{prompts.seed}.{number}.{turn}",
            output_tokens=output_tokens,
            tokens=length if is_exact else None,
            cached_tokens=before if is_exact else None,
            conversation=number,
            turn=turn,
            pause_s=prompts.pause_s if turn else 0.0,
        )
        before = length
        history.append(draw.any(output_tokens))


def _parts(prompts: Prompts, turns: list[Symbols]) -> dict[str, Any]:
    """Write the turns of user and assistant in the form of the plan."""
    if prompts.form == "chat":
        messages = [{"role": ROLES[at % 2], "content": _words(turn)} for at, turn in enumerate(turns)]
        return {"messages": messages}
    whole = tuple(symbol for turn in turns for symbol in turn)
    return {"prompt": [prompts.token_low + symbol for symbol in whole] if prompts.form == "tokens" else _words(whole)}


def _words(symbols: Symbols) -> str:
    return " ".join(WORDS[symbol] for symbol in symbols)


def _replayed(prompts: Prompts, count: int, output_tokens: int) -> Iterator[Prompt]:
    """Yield the prompts of a trace, which has their number and the lengths of their answers."""
    del count, output_tokens
    for index, made in enumerate(replayed_prompts(prompts.requests, prompts.seed, prompts.symbols)):
        yield Prompt(
            parts=_parts(prompts, [made.symbols]),
            prompt_id=f"{prompts.seed}.{index}",
            output_tokens=made.output_tokens,
            tokens=len(made.symbols),
            cached_tokens=made.shared_tokens,
            conversation=made.session,
            turn=made.turn,
            pause_s=made.pause_s,
        )


def _pictured(prompts: Prompts, count: int, output_tokens: int) -> Iterator[Prompt]:
    draw, pictures = Drawing(prompts), image_urls(prompts, count)
    return (_with_images(prompts, draw.distinct(), next(pictures), output_tokens, at) for at in range(count))


def _with_images(prompts: Prompts, drawn: Symbols, urls: list[str], output_tokens: int, index: int) -> Prompt:
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    content = [*pictures, {"type": "text", "text": _words(drawn)}]
    parts = {"messages": [{"role": ROLES[0], "content": content}]}
    return Prompt(parts, f"{prompts.seed}.{index}", output_tokens, tokens=None, cached_tokens=None)


def _of_file(prompts: Prompts, count: int, output_tokens: int) -> Iterator[Prompt]:
    chosen = select_conversations(prompts, count)
    return (_recorded(prompts, conversation, output_tokens) for conversation in chosen)


def _written(prompts: Prompts, count: int, output_tokens: int) -> Iterator[Prompt]:
    for at, text in enumerate(written_prompts(prompts.seed, prompts.input_tokens, count)):
        yield _as_text(prompts, text, f"{prompts.seed}.{at}", output_tokens)


def _recorded(prompts: Prompts, conversation: Conversation, output_tokens: int) -> Prompt:
    wanted = output_tokens if prompts.output == "asked" else min(conversation.answer_tokens, output_tokens)
    return _as_text(prompts, conversation.prompt, conversation.conversation_id, wanted)


def _as_text(prompts: Prompts, text: str, prompt_id: str, output_tokens: int) -> Prompt:
    """Send a text of which only the server's tokenizer knows the length."""
    is_chat = prompts.form == "chat"
    parts = {"messages": [{"role": ROLES[0], "content": text}]} if is_chat else {"prompt": text}
    return Prompt(parts, prompt_id, output_tokens, tokens=None, cached_tokens=None)


_MAKERS: dict[str, Callable[[Prompts, int, int], Iterator[Prompt]]] = {
    "random": _grouped,
    "shared-prefix": _grouped,
    "multi-turn": _conversations,
    "images": _pictured,
    "sharegpt": _of_file,
    "replay": _replayed,
    "written": _written,
    "repeated": _repeated,
}
