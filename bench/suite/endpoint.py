"""A server that already runs: its URL as a target, and what a suite says of it in its `[endpoint]` table."""

from typing import Self

from pydantic import Field, field_validator, model_validator

from bench.frozen import Frozen
from bench.suite.machine import Usd
from bench.suite.secret_names import VARIABLE

API_KEY = "NIGHTBENCH_ENDPOINT_API_KEY"  # where the key is, unless the suite names another variable
LEAST_VOCABULARY = 32_000  # tokens that nearly every model has


class Endpoint(Frozen):
    """The known facts of a server that others run; None if unknown.

    `model` is the name that it serves, else `model.name`. The key is in the environment variable that `api_key_env`
    names. A price is per hour, or as listed per million tokens. All this is written into every record.
    """

    model: str | None = Field(default=None, min_length=1)  # the name that it serves; without it: `model.name`
    provider: str | None = Field(default=None, min_length=1)  # who runs it
    precision: str | None = None  # of the weights as served
    gpu: str | None = None  # as the catalogue names it
    gpu_count: int = Field(default=0, ge=0)  # GPUs behind it; 0 is unknown
    usd_per_hour: Usd | None = None  # its price by time
    usd_per_mtok_input: Usd | None = None  # its listed price of a million input tokens
    usd_per_mtok_output: Usd | None = None  # its listed price of a million output tokens
    api_key_env: str | None = None  # the variable that holds the key
    ca_file: str | None = None  # certificates to trust beside the system's
    vocab_size: int = Field(default=LEAST_VOCABULARY, ge=512)  # token ids of prompts are below it

    @field_validator("api_key_env")
    @classmethod
    def _is_a_variable(cls, name: str | None) -> str | None:
        if name is not None and not VARIABLE.fullmatch(name):
            msg = f"{name!r} is not the name of an environment variable; the key itself never stands in a suite"
            raise ValueError(msg)
        return name

    @model_validator(mode="after")
    def _has_one_price(self) -> Self:
        if (self.usd_per_mtok_input is None) != (self.usd_per_mtok_output is None):
            msg = "give usd_per_mtok_input and usd_per_mtok_output, or neither"
            raise ValueError(msg)
        if self.usd_per_hour is not None and self.usd_per_mtok_output is not None:
            msg = "an endpoint has one price: give usd_per_hour, or the two prices per million tokens"
            raise ValueError(msg)
        if bool(self.gpu_count) != (self.gpu is not None):
            msg = "give gpu and gpu_count, or neither"
            raise ValueError(msg)
        return self
