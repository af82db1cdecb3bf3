"""The server software that a suite runs, with its flags and environment."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bench.frozen import Frozen

# name@sha256:digest. The digest may be an open pin, {NIGHTBENCH_...}; see bench/suite/pins.py.
IMAGE = r"^[a-z0-9][\w./:-]*@(sha256:[0-9a-f]{64}|\{NIGHTBENCH_[A-Z0-9_]+\})$"


class Engine(Frozen):
    """The server software and its options.

    `flags` are appended to its argv unchanged; `environment` is set for its process only.
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
            msg = 'a container needs an image: give both install = "container" and image, or neither'
            raise ValueError(msg)
        return self
