"""A tier behind the KV cache, as vLLM's flags ask for it, and what its counters show of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.engines.config import parse_flags
from bench.metrics import ratio

_SIZE, _BACKEND, _TRANSFER = "--kv-offloading-size", "--kv-offloading-backend", "--kv-transfer-config"


@dataclass(frozen=True)
class KvOffload:
    """What flags ask for: `backend` is native, lmcache or a connector's name; `gib` None is left to it."""

    backend: str
    gib: float | None = None


@dataclass(frozen=True)
class KvTier:
    """How far the counters of the tier moved; None where the server has no such counter."""

    looked_up: float | None  # prompt tokens that the device's cache did not have
    hits: float | None  # of these, found in the tier
    loaded_bytes: float | None
    stored_bytes: float | None

    @property
    def hit_share(self) -> float | None:
        """Tokens found in the tier over those that were looked up there."""
        return ratio(self.hits, self.looked_up)

    @property
    def is_used(self) -> bool | None:
        """Whether anything was looked up there or written there; None without counters."""
        counts = [count for count in (self.looked_up, self.stored_bytes) if count is not None]
        return any(counts) if counts else None


def kv_offload_of(words: Sequence[str]) -> KvOffload | None:
    """What vLLM's flags ask for; None without a tier. Without a size, vLLM ignores the backend."""
    flags = parse_flags(words)
    if _SIZE in flags:
        return KvOffload(flags.get(_BACKEND) or "native", _number(flags[_SIZE]))
    try:
        given = json.loads(flags.get(_TRANSFER) or "{}")
    except ValueError:
        return None
    connector = given.get("kv_connector") if isinstance(given, dict) else None
    return KvOffload(str(connector)) if connector else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def kv_tier_of(deltas: Mapping[str, float] | None) -> KvTier:
    """What vLLM's counters show of the tier."""
    counted = deltas or {}
    names = ("external_prefix_cache_queries", "external_prefix_cache_hits", "kv_offload_load_bytes")
    return KvTier(*(counted.get(f"{name}_total") for name in (*names, "kv_offload_store_bytes")))
