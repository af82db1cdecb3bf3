"""The prompts of a scenario: their kind, how they are sent, and which of them repeat."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bench.frozen import Frozen

PromptKind = Literal["random", "shared-prefix", "multi-turn", "images", "sharegpt", "written", "repeated"]
Form = Literal["tokens", "text", "chat"]

# The keys that each kind requires, and those that it allows.
_NEEDED: dict[PromptKind, tuple[str, ...]] = {
    "random": (),
    "shared-prefix": ("groups", "prefix_tokens"),
    "multi-turn": ("turns",),
    "images": ("width", "height", "images"),
    "sharegpt": ("file",),
    "written": (),
    "repeated": (),
}
_ALLOWED: dict[PromptKind, tuple[str, ...]] = {
    "sharegpt": ("sha256", "output", "repeat"),
    "multi-turn": ("pause_s",),
}
_FORMS: dict[PromptKind, tuple[Form, ...]] = {
    "images": ("chat",),
    "sharegpt": ("text", "chat"),
    "written": ("text", "chat"),
    "repeated": ("text", "chat"),
}


class Prompts(Frozen):
    """The prompts; random token ids by default. Keys that a kind does not have keep their default.

    `multi-turn` needs a closed loop or sessions, and both counts are multiples of `turns`: each turn adds `isl` tokens
    to the turns before it and requests `osl` tokens. `images` are always `chat`; `sharegpt`, `written` and `repeated`
    are `text` or `chat`. `written` are tasks on passages of real text, which Nightbench has under its licence. Every
    second prompt of `repeated` is the same, which shows a cache of answers. The length of a text is approximate, since
    no tokenizer is used: only the server's count is exact, and the rules on prompt length and on the prefix cache do
    not apply.
    """

    kind: PromptKind = "random"  # what the prompts are made of
    form: Form = "tokens"  # token ids, text, or messages of a chat
    seed: int | None = Field(default=None, ge=0)  # the same prompts every night; None: no prompt is sent twice
    groups: int | None = Field(default=None, ge=1)  # how many different prefixes (`shared-prefix`)
    prefix_tokens: int | None = Field(default=None, ge=1)  # tokens that a group shares (`shared-prefix`)
    turns: int | None = Field(default=None, ge=1)  # questions in each conversation (`multi-turn`)
    pause_s: float | None = Field(default=None, gt=0)  # from an answer to the next turn (`multi-turn` in sessions)
    width: int | None = Field(default=None, ge=1)  # of an image, in pixels
    height: int | None = Field(default=None, ge=1)  # of an image, in pixels
    images: int | None = Field(default=None, ge=1)  # in each prompt
    file: str | None = None  # a ShareGPT JSON file (`sharegpt`)
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")  # of the file; found when it is not given
    output: Literal["asked", "recorded"] = "asked"  # answer lengths: `osl`, or those of the file (`sharegpt`)
    repeat: bool = False  # start the file again when it is used up (`sharegpt`)

    @property
    def has_exact_length(self) -> bool:
        """Whether the number of tokens that the server counts is known beforehand."""
        return self.form == "tokens"

    @property
    def own_keys(self) -> dict[str, str | int | float | bool]:
        """The values of this kind's own keys."""
        names = (*_NEEDED[self.kind], *_ALLOWED.get(self.kind, ()))
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        missing = [name for name in _NEEDED[self.kind] if getattr(self, name) is None]
        if missing:
            msg = f"{self.kind} prompts need the key {missing[0]}"
            raise ValueError(msg)
        own = {"kind", "form", "seed", *_NEEDED[self.kind], *_ALLOWED.get(self.kind, ())}
        foreign = [name for name, field in Prompts.model_fields.items() if getattr(self, name) != field.default]
        foreign = [name for name in foreign if name not in own]
        if foreign:
            msg = f"{self.kind} prompts have no key {foreign[0]}"
            raise ValueError(msg)
        if self.form not in _FORMS.get(self.kind, (self.form,)):
            forms = " or ".join(f'"{form}"' for form in _FORMS[self.kind])
            msg = f"{self.kind} prompts are sent as {forms}: set form"
            raise ValueError(msg)
        return self
