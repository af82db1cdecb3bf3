"""The server software that a suite runs, with its flags and environment."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from bench.frozen import Frozen
from bench.suite.secret_names import passable

# repository, repository:tag or repository@sha256:digest. A tag may move; see bench/suite/pins.py.
IMAGE = r"^[a-z0-9][\w./:-]*(@sha256:[0-9a-f]{64})?$"
TAG = r"^\w[\w.-]{0,127}$"


class Disaggregated(Frozen):
    """One server computes the prompts, another one the answers, and a router sends each request to both in turn.

    The keys and values of a prompt reach the second server by a connector of vLLM. Both run on one machine, each on
    GPUs of its own: as many as its flags have ranks.
    """

    connector: str = Field(default="NixlConnector", min_length=1)  # vLLM's name of what hands the KV cache over
    connector_config: dict[str, Any] = Field(default_factory=dict)  # its kv_connector_extra_config
    # Added to the engine's for the prefill server; one with the same name replaces it.
    prefill_flags: tuple[str, ...] = Field(default=(), strict=False)
    # Added to the engine's for the decode server; one with the same name replaces it.
    decode_flags: tuple[str, ...] = Field(default=(), strict=False)


class Engine(Frozen):
    """The server software and its options.

    `flags` are appended to its argv unchanged. `environment` is set for its process only, and is public like all of a
    suite: it is in every record, and wherever records are copied. `secret_environment` names variables that the server
    gets from the process that runs the night; their values are written nowhere.

    `track` is a tag of the image's repository that each new night resolves. Nightbench sets `image_version` and
    `image_commit` when it resolves a tag. These three are in no id.
    """

    name: str = "vllm"  # one of bench/engines/by_name.py
    version: str  # the release to run; another one that answers is a finding
    max_model_len: int = Field(ge=1)  # tokens of context: prompt and answer together
    flags: tuple[str, ...] = Field(default=(), strict=False)  # appended to the command unchanged
    environment: dict[str, str] = Field(default_factory=dict)  # variables of the server; public, in every record
    # Names of variables to pass on; their values are written nowhere.
    secret_environment: tuple[str, ...] = Field(default=(), strict=False)
    install: Literal["venv", "container"] = "venv"  # an environment that Nightbench builds, or the image
    image: str | None = Field(default=None, pattern=IMAGE)  # of the container; a night has its digest
    track: str | None = Field(default=None, pattern=TAG)  # a moving tag of the image, resolved again each night
    image_version: str | None = None  # of the build, as the image's labels say
    image_commit: str | None = None
    disaggregated: Disaggregated | None = None  # prefill and decode on servers of their own

    @field_validator("secret_environment")
    @classmethod
    def _may_be_passed(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return passable(names)

    @model_validator(mode="after")
    def _options_agree(self) -> Self:
        if (self.install == "container") != (self.image is not None):
            msg = 'a container needs an image: give both install = "container" and image, or neither'
            raise ValueError(msg)
        if self.track and (self.image is None or tag_of(self.image)):
            msg = "track needs an image without a tag: give image as repository, and the tag as track"
            raise ValueError(msg)
        twice = sorted(self.environment.keys() & set(self.secret_environment))
        if twice:
            msg = f"{twice[0]} is in environment and in secret_environment: remove it from environment, which is public"
            raise ValueError(msg)
        return self


def is_installed_as(engine: Engine, other: Engine) -> bool:
    """Whether both run from one installation: one image, or one release of a program that Nightbench builds."""
    names = ("name", "image") if engine.image is not None else ("name", "image", "version")
    return all(getattr(engine, name) == getattr(other, name) for name in names)


def tag_of(image: str) -> str | None:
    """The tag of an image reference; None if it has none. The port of a registry is not a tag."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2] or None


# What says where an image came from; its digest alone moves a number.
TRACING = frozenset({"track", "image_version", "image_commit"})
