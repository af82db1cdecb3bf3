"""Recorded conversations in the ShareGPT format: the first prompt of the user, and the length of the answer.

A file is JSON, one list of conversations, or JSONL, one in each line. A conversation is an object with an `id`, if it
has one, and `conversations`, a list of turns with `from` (human or user; gpt or assistant) and `value`.
"""

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meter.errors import UsageError
from meter.prompt_spec import Prompts

BYTES_PER_TOKEN = 4  # the usual guess for text without a tokenizer at hand
PERSON, MACHINE = {"human", "user"}, {"gpt", "assistant"}


@dataclass(frozen=True, slots=True)
class Conversation:
    """The beginning of one conversation."""

    conversation_id: str  # its own id, else its line in the file
    prompt: str
    answer: str

    @property
    def prompt_tokens(self) -> int:
        """About how long the prompt is."""
        return _about(self.prompt)

    @property
    def answer_tokens(self) -> int:
        """About how long the recorded answer is."""
        return _about(self.answer)


def _about(text: str) -> int:
    return max(1, round(len(text.encode(errors="surrogatepass")) / BYTES_PER_TOKEN))


@dataclass(frozen=True, slots=True)
class Selection:
    """Which conversations of a file one run takes: every `shares`-th of a random order, if short enough."""

    longest_tokens: int
    order_seed: int
    share: int = 0
    shares: int = 1
    may_repeat: bool = False

    def apply(self, conversations: Sequence[Conversation], count: int, where: str) -> list[Conversation]:
        """Take `count` of them; raises UsageError if there are too few and they may not repeat."""
        draw = random.Random(f"conversations {self.order_seed}").random  # noqa: S311 -- load, not secrets
        order = sorted(range(len(conversations)), key=lambda _place: draw())[self.share :: self.shares]
        ours = [conversations[place] for place in order if conversations[place].prompt_tokens <= self.longest_tokens]
        if not ours or (len(ours) < count and not self.may_repeat):
            share = f" in share {self.share} of {self.shares}" if self.shares > 1 else ""
            raise UsageError(
                f"{where} has {len(ours)} different prompts of about {self.longest_tokens} tokens or less{share}, "
                f"but {count} are needed."
            )
        return [ours[place % len(ours)] for place in range(count)]


def select_conversations(prompts: Prompts, count: int) -> list[Conversation]:
    """Select this run's conversations from the plan's file; raises UsageError if it is unreadable or too short."""
    path = Path(prompts.path)
    content = _read(path)
    if prompts.sha256 not in (None, hashlib.sha256(content).hexdigest()):
        raise UsageError(f"{path}: SHA-256 mismatch with the plan: expected {prompts.sha256}.")
    seed = prompts.seed if prompts.order_seed is None else prompts.order_seed
    selection = Selection(prompts.input_tokens, seed, prompts.share, prompts.shares, prompts.repeat)
    return selection.apply(distinct(read_conversations(content, str(path))), count, str(path))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"The conversations {path} cannot be read: {error}.") from error


def distinct(conversations: Iterator[Conversation]) -> list[Conversation]:
    """Keep those that begin with a person's prompt, each prompt once."""
    kept: dict[str, Conversation] = {}
    for conversation in conversations:
        if conversation.prompt.strip():
            kept.setdefault(conversation.prompt, conversation)
    return list(kept.values())


def read_conversations(content: bytes, where: str) -> Iterator[Conversation]:
    """Read each conversation of a file; raises UsageError with file and line if one is malformed."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{where}:{line}: not UTF-8.") from error
    rows = _json_rows(text, where) if text.lstrip().startswith("[") else _jsonl_rows(text, where)
    for line, row in rows:
        yield _conversation(row, line, where)


def _jsonl_rows(text: str, where: str) -> Iterator[tuple[int, Any]]:
    # Not splitlines(): a JSON text may hold other characters that Python takes for the end of a line.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise UsageError(f"{where}:{number}: not JSON: {error}.") from error


def _json_rows(text: str, where: str) -> Iterator[tuple[int, Any]]:
    """Read the list member by member, so that each is known by its line."""
    decoder, line, at = json.JSONDecoder(), 1, 0
    position = _past(text, text.index("[") + 1, " \t\r\n")
    while not text.startswith("]", position):
        line, at = line + text.count("\n", at, position), position
        try:
            row, position = decoder.raw_decode(text, position)
        except ValueError as error:
            found = getattr(error, "lineno", line)
            raise UsageError(f"{where}:{found}: not JSON: {error}.") from error
        yield line, row
        position = _past(text, position, " \t\r\n,")


def _past(text: str, position: int, characters: str) -> int:
    while text[position : position + 1] in characters and position < len(text):
        position += 1
    return position


def _conversation(row: Any, line: int, where: str) -> Conversation:
    turns = row.get("conversations") if isinstance(row, dict) else None
    if not isinstance(turns, list):
        raise UsageError(f'{where}:{line}: not a conversation: an object with a list "conversations" is required.')
    for turn in turns:
        if not (isinstance(turn, dict) and isinstance(turn.get("from"), str) and isinstance(turn.get("value"), str)):
            raise UsageError(f'{where}:{line}: a turn needs the texts "from" and "value".')
    first = next((at for at, turn in enumerate(turns) if turn["from"] in PERSON), len(turns))
    reply = turns[first + 1]["value"] if first + 1 < len(turns) and turns[first + 1]["from"] in MACHINE else ""
    return Conversation(str(row.get("id", line)), turns[first]["value"] if first < len(turns) else "", reply)
