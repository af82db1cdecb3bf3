"""What a file's own metadata says of its GPU, model, precision and sizes where its format has no field for them.

Users add such keys (`--metadata gpu_name=...`), tools name them differently, and a table may name its machine in a
title. A value counts only where it names a row of the catalogue, so that `device: cuda` states nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from bench.audit.claim import Claim, ClaimedConfig
from catalog.read import read_names

_GPU = (
    "gpu",
    "gpu_name",
    "gpu_type",
    "gpu_model",
    "accelerator",
    "accelerator_name",
    "device_name",
    "device",
    "hardware",
)
_TEXTS = ("system", "machine", "host", "hostname", "node", "platform", "title", "url_or_title", "name", "description")
_MODEL = ("model", "model_name", "model_id", "served_model_name", "checkpoint")
_PRECISION = ("precision", "quantization", "dtype", "weight_precision")
_SIZES = {
    "gpu_count": ("gpu_count", "num_gpus", "n_gpus", "gpus", "num_accelerators"),
    "tp_size": ("tensor_parallel_size", "tp_size", "tp"),
    "pp_size": ("pipeline_parallel_size", "pp_size", "pp"),
}


def with_metadata(claim: Claim) -> Claim:
    """The claim with what its unread keys state, where its own fields leave it open."""
    found = dict(_stated({name.lower(): value for name, value in claim.unread.items()}, claim.asked))
    return claim.with_context(ClaimedConfig(**found)) if found else claim  # type: ignore[arg-type]  # of their fields' types


def _stated(unread: Mapping[str, object], asked: ClaimedConfig) -> Iterator[tuple[str, object]]:
    names = read_names()
    if asked.gpu is None:
        named = _first(unread, _GPU, lambda text: text if _is_gpu(text) else _gpu_in(text))
        yield "gpu", named or _first(unread, _TEXTS, _gpu_in)
    if asked.model is None:
        named = _first(unread, _MODEL, lambda text: text if names.model(text) else None)
        yield "model", named or _first(unread, _TEXTS, _model_in)
    if asked.precision is None:
        yield "precision", _first(unread, _PRECISION, lambda text: text if names.precisions_called(text) else None)
    for field, keys in _SIZES.items():
        if getattr(asked, field) is None:
            yield field, next((value for key in keys if type(value := unread.get(key)) is int and value > 0), None)


@lru_cache(maxsize=1024)
def _gpu_in(text: str) -> str | None:
    return read_names().gpu_in(text)


@lru_cache(maxsize=1024)
def _model_in(text: str) -> str | None:
    return read_names().model_in(text)


def _is_gpu(text: str) -> bool:
    return bool(read_names().gpus_called(text) or read_names().accelerator(text))


def _first(unread: Mapping[str, object], keys: tuple[str, ...], read: Callable[[str], str | None]) -> str | None:
    texts = (value for key in keys if isinstance(value := unread.get(key), str))
    return next(filter(None, map(read, texts)), None)
