"""The base classes of values: those of a suite file, and those that we write as JSON."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value that cannot change and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StoredValue(BaseModel):
    """A value read back from JSON that we wrote: frozen, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
