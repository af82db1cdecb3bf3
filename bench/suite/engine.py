"""The server software that a suite runs, with its flags and environment."""

import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from bench.frozen import Frozen

# name@sha256:digest. The digest may be an open pin, {NIGHTBENCH_...}; see bench/suite/pins.py.
IMAGE = r"^[a-z0-9][\w./:-]*@(sha256:[0-9a-f]{64}|\{NIGHTBENCH_[A-Z0-9_]+\})$"


VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Engine(Frozen):
    """The server software and its options.

    `flags` are appended to its argv unchanged. `environment` is set for its process only, and is public like all of a
    suite: it is in every record, and wherever records are copied. `secret_environment` names variables that the server
    gets from the process that runs the night; their values are written nowhere.
    """

    name: Literal["vllm"] = "vllm"
    version: str
    max_model_len: int = Field(ge=1)
    flags: tuple[str, ...] = Field(default=(), strict=False)
    environment: dict[str, str] = Field(default_factory=dict)
    secret_environment: tuple[str, ...] = Field(default=(), strict=False)
    install: Literal["venv", "container"] = "venv"
    image: str | None = Field(default=None, pattern=IMAGE)  # of the container, always by digest

    @field_validator("secret_environment")
    @classmethod
    def _may_be_passed(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not VARIABLE.fullmatch(name):
                msg = f"{name!r} is not the name of an environment variable"
                raise ValueError(msg)
            if name.startswith("NIGHTBENCH_"):
                msg = f"{name} is a setting of Nightbench, which no server gets"
                raise ValueError(msg)
        return names

    @model_validator(mode="after")
    def _options_agree(self) -> Self:
        if (self.install == "container") != (self.image is not None):
            msg = 'a container needs an image: give both install = "container" and image, or neither'
            raise ValueError(msg)
        twice = sorted(self.environment.keys() & set(self.secret_environment))
        if twice:
            msg = f"{twice[0]} is in environment and in secret_environment: remove it from environment, which is public"
            raise ValueError(msg)
        return self
