"""The base classes of values: those of a suite file, and those that we write as JSON.

Their validators are built when the first value is read: a job on a machine reads few of them, and to build all takes a
fifth of its start.
"""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value that cannot change and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class StoredValue(BaseModel):
    """A value read back from JSON that we wrote: frozen, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
