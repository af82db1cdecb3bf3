"""The tier behind the KV cache, as flags ask for it."""

import pytest

from bench.engines.kv_offload import KvOffload, kv_offload_of


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ((), None),
        (("--kv-offloading-size", "64"), KvOffload("native", 64.0)),
        (("--kv_offloading_size=1.5", "--kv-offloading-backend", "lmcache"), KvOffload("lmcache", 1.5)),
        (("--kv-offloading-backend", "native"), None),
        (("--kv-transfer-config", '{"kv_connector": "LMCacheConnectorV1"}'), KvOffload("LMCacheConnectorV1")),
        (("--kv-transfer-config", "{"), None),
        (("--kv-offloading-size", "much"), KvOffload("native", None)),
    ],
)
def test_flags_name_the_tier_and_its_size(flags: tuple[str, ...], found: KvOffload | None) -> None:
    assert kv_offload_of(flags) == found
