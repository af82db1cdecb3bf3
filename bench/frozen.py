"""The base of every value that a suite file can say."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value that cannot change and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
