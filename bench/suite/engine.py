"""The server software that a suite runs, with its flags and environment."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bench.frozen import Frozen

# name@sha256:digest; or the digest is left open, under the name of what will say it (see bench/suite/pins.py).
IMAGE = r"^[a-z0-9][\w./:-]*@(sha256:[0-9a-f]{64}|\{NIGHTBENCH_[A-Z0-9_]+\})$"


class Engine(Frozen):
    """The server software and everything told to it.

    `flags` go to its argv as they stand; `environment` is set for it and for nothing else.
    """

    name: Literal["vllm"] = "vllm"
    version: str
    max_model_len: int = Field(ge=1)
    flags: tuple[str, ...] = Field(default=(), strict=False)
    environment: dict[str, str] = Field(default_factory=dict)
    install: Literal["venv", "container"] = "venv"
    image: str | None = Field(default=None, pattern=IMAGE)  # of the container, always by digest

    @model_validator(mode="after")
    def _container_has_an_image(self) -> Self:
        if (self.install == "container") != (self.image is not None):
            msg = 'an image belongs to a container: give both install = "container" and image, or neither'
            raise ValueError(msg)
        return self
