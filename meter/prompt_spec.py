"""The plan's `prompts` object: the kinds of prompts and the keys of each kind."""

from dataclasses import dataclass, replace
from typing import Any

from meter.errors import UsageError
from meter.replay import REQUESTS
from meter.rules import COUNT, COUNT_OR_0, FLAG, POSITIVE, TEXT, Rule, check, one_of
from meter.words import WORDS
from meter.written import distinct_count

FORMS = ("tokens", "text", "chat")
BLOCK_PIXELS = 8  # an image's noise comes in squares of one colour: it still compresses, and is never the same
SHA256_LENGTH = 64
MANY = 64  # from this many tokens on, the number of different prompts is large enough not to be computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Which prompts to send. `form` is how: as token ids, as text, or as chat messages.

    A field that a kind does not use has a neutral value: a random prompt has one turn and no prefix.
    """

    kind: str
    seed: int
    input_tokens: int  # the whole prompt; multi-turn: each user's turn; sharegpt: the longest prompt that is taken
    form: str = "tokens"
    token_low: int = 0  # token_low <= id < token_high
    token_high: int = 0
    groups: int = 1  # number of different prefixes
    prefix_tokens: int = 0  # the part of input_tokens that a group shares
    turns: int = 1  # of the person, in each conversation
    pause_s: float = 0.0  # between an answer and the next turn
    width: int = 0  # pixels
    height: int = 0
    images: int = 0  # in each prompt
    path: str = ""  # the file of conversations
    sha256: str | None = None  # of that file; None: any
    order_seed: int | None = None  # draws the order in which conversations are taken; None: `seed` does
    share: int = 0  # which part of that order this run takes, from 0
    shares: int = 1  # how many parts there are; other runs take the others
    output: str = "asked"  # or "recorded": the answer's length in the file, at most `output_tokens`
    repeat: bool = False  # whether a conversation may be used twice if there are too few
    requests: tuple[dict[str, Any], ...] = ()  # of a trace, as meter/replay.py describes them

    @property
    def symbols(self) -> int:
        """How many different ids, or words, a prompt is drawn from."""
        return self.token_high - self.token_low if self.form == "tokens" else len(WORDS)


_TEXT_FORM = one_of("text", "chat")
_SHA256 = Rule((str,), lambda value: len(value) == SHA256_LENGTH, "a SHA-256 in hexadecimal", is_optional=True)
_FORM = one_of(*FORMS, is_optional=True)
_ALWAYS = {"seed": COUNT_OR_0, "input_tokens": COUNT}
_IDS = {"token_low": COUNT_OR_0, "token_high": COUNT}
_KINDS: dict[str, dict[str, Rule]] = {
    "random": {"form": _FORM},
    "shared-prefix": {"form": _FORM, "groups": COUNT, "prefix_tokens": COUNT},
    "multi-turn": {"form": _FORM, "turns": COUNT, "pause_s": replace(POSITIVE, is_optional=True)},
    "images": {"form": one_of("chat"), "width": COUNT, "height": COUNT, "images": COUNT},
    "written": {"form": _TEXT_FORM},
    "repeated": {"form": _TEXT_FORM},
    "sharegpt": {
        "form": _TEXT_FORM,
        "path": TEXT,
        "sha256": _SHA256,
        "order_seed": replace(COUNT_OR_0, is_optional=True),
        "share": replace(COUNT_OR_0, is_optional=True),
        "shares": replace(COUNT, is_optional=True),
        "output": one_of("asked", "recorded", is_optional=True),
        "repeat": replace(FLAG, is_optional=True),
    },
    "replay": {"token_low": COUNT_OR_0, "token_high": COUNT, "requests": REQUESTS},
}


def read_prompts(raw: dict[str, Any]) -> Prompts:
    """Check the plan's `prompts` key by key; token ids are required only if prompts are sent as ids."""
    check({"kind": one_of(*_KINDS)}, {key: raw[key] for key in raw if key == "kind"}, "prompts.")
    own = _KINDS[raw["kind"]]
    has_ids = own.get("form") is _FORM and raw.get("form") not in FORMS[1:]
    check({"kind": TEXT} | _ALWAYS | own | (_IDS if has_ids else {}), raw, "prompts.")
    return Prompts(**{**raw, "requests": tuple(raw.get("requests", ()))})


def check_room(prompts: Prompts, count: int) -> None:
    """Refuse a plan that needs more distinct prompts, prefixes or images than exist; a file is counted later."""
    if prompts.share >= prompts.shares:
        raise UsageError(f"The plan's prompts.share must be below prompts.shares ({prompts.shares}).")
    if prompts.kind == "written":
        _check_written(prompts, count)
    elif not prompts.path:
        _check_drawn(prompts, count)


def _check_drawn(prompts: Prompts, count: int) -> None:
    if prompts.symbols < 1:
        raise UsageError("The plan's prompts.token_high must be above prompts.token_low.")
    if prompts.requests and len(prompts.requests) != count:
        raise UsageError(
            f"The plan's prompts.requests has {len(prompts.requests)} of {count} requests, warm-up included."
        )
    own_tokens = prompts.input_tokens - prompts.prefix_tokens
    if own_tokens < 1:
        raise UsageError(
            f"The plan's prompts.prefix_tokens must be below prompts.input_tokens ({prompts.input_tokens}), "
            f"not {prompts.prefix_tokens}: each prompt needs a part of its own."
        )
    _check_enough(prompts.symbols, own_tokens, count, "prompts")
    if prompts.prefix_tokens:
        _check_enough(prompts.symbols, prompts.prefix_tokens, prompts.groups, "prefixes")
    if prompts.images:
        blocks = -(-prompts.width // BLOCK_PIXELS) * -(-prompts.height // BLOCK_PIXELS)
        _check_enough(1 << 24, blocks, prompts.images * count, "images")


def _check_written(prompts: Prompts, count: int) -> None:
    if count > distinct_count(prompts.input_tokens):
        raise UsageError(
            f"The plan needs {count} distinct prompts, but only {distinct_count(prompts.input_tokens)} written ones of "
            f"about {prompts.input_tokens} tokens exist: make them longer or send fewer."
        )


def _check_enough(choices: int, places: int, wanted: int, noun: str) -> None:
    exist = choices ** min(places, MANY)
    if exist < wanted:
        raise UsageError(
            f"The plan needs {wanted} distinct {noun}, but only {exist} exist: make them longer or send fewer."
        )
