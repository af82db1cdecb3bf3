"""The base class of every value of a suite file."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value that cannot change and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
