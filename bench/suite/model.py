"""The weights that a suite serves: where they come from and where they are cached."""

from typing import Self

from pydantic import Field, model_validator

from bench.frozen import Frozen

VOLUME_GIB_MAX = 16 * 1024  # the largest volume there is
BUCKET_MINUTES_MAX = 240  # longer than that, a machine costs more than any download


class Model(Frozen):
    """The weights: `source` says where they come from, `precision` how they are served.

    `cache` is a folder that outlives the machine, such as a mounted volume. `cache_volume_gib` makes the cloud keep a
    volume of this size, found again by its name. `cache_bucket_minutes` caches the model in the bucket of the settings
    and limits the minutes that a night uploads. With `bucket_is_optional`, a night without a bucket in the settings
    downloads the model, and another cache replaces the bucket. These fields change no result and are in no id.
    """

    name: str  # the name that the server answers to, and that the results have
    source: str  # `hf:owner/name@commit`, `generated:NAME?seed=0` (with LoRA: `&adapters=4`) or `path:/folder`
    precision: str = "bf16"  # of the weights as served
    cache: str | None = Field(default=None, pattern="^/")  # None: the scratch disk, or wherever our data is
    cache_volume_gib: int | None = Field(default=None, ge=1, le=VOLUME_GIB_MAX)  # None: no volume
    cache_bucket_minutes: int | None = Field(default=None, ge=0, le=BUCKET_MINUTES_MAX)  # None: no bucket; 0: read only

    bucket_is_optional: bool = False  # False: a night is refused where the settings name no bucket

    @model_validator(mode="before")
    @classmethod
    def _other_cache_replaces_an_optional_bucket(cls, table: object) -> object:
        if not isinstance(table, dict) or table.get("bucket_is_optional") is not True:
            return table
        has_other = bool(table.get("cache") or table.get("cache_volume_gib"))
        return table | {"cache_bucket_minutes": None} if has_other else table

    @model_validator(mode="after")
    def _is_kept_in_one_place(self) -> Self:
        if self.cache_bucket_minutes is not None and (self.cache or self.cache_volume_gib):
            msg = "a model has one cache: give one of cache_bucket_minutes, cache_volume_gib and cache"
            raise ValueError(msg)
        if self.cache_bucket_minutes is not None and not self.source.startswith("hf:"):
            msg = f"a bucket caches models of the hub only, not {self.source}: leave cache_bucket_minutes out"
            raise ValueError(msg)
        if self.cache_volume_gib is not None and self.cache is not None:
            msg = "a model has one cache: give cache or cache_volume_gib"
            raise ValueError(msg)
        if self.cache_volume_gib is not None and self.source.startswith("path:"):
            msg = f"the weights of {self.source} are read in place: leave cache_volume_gib out"
            raise ValueError(msg)
        return self

    def without_optional_bucket(self) -> Self:
        """The model, not cached in a bucket if that is optional."""
        return self.model_copy(update={"cache_bucket_minutes": None}) if self.bucket_is_optional else self

    def not_kept(self) -> Self:
        """The model without a cache."""
        return self.model_copy(update={name: type(self).model_fields[name].default for name in KEEPING})


# The fields that say where the weights are cached between nights.
KEEPING = frozenset({"cache", "cache_volume_gib", "cache_bucket_minutes", "bucket_is_optional"})
