"""The ladder of a suite: smaller configurations that a night tries, one after another, where memory runs out."""

from collections.abc import Mapping
from typing import Self

from pydantic import Field, model_validator

from bench.frozen import Frozen


class Rung(Frozen):
    """One `[[ladder]]` table: the settings that differ from the suite's; the others stay."""

    # Share of the GPU's memory that the engine may take.
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    max_num_seqs: int | None = Field(default=None, ge=1)  # sequences computed at the same time
    max_num_batched_tokens: int | None = Field(default=None, ge=1)  # tokens computed in one step
    max_model_len: int | None = Field(default=None, ge=1)  # tokens of context
    kv_cache_dtype: str | None = None  # such as `fp8`
    kv_cache_memory_bytes: int | None = Field(default=None, ge=1)  # memory of the KV cache

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.settings:
            msg = f"a rung changes at least one setting: {', '.join(type(self).model_fields)}"
            raise ValueError(msg)
        return self

    @property
    def settings(self) -> Mapping[str, float | int | str]:
        """The settings that this rung changes."""
        return self.model_dump(exclude_none=True)

    def __str__(self) -> str:
        """The settings as a person reads them."""
        return ", ".join(f"{name} = {value}" for name, value in self.settings.items())
