"""Facts that a claim states twice without saying so: beside its image, under `observed_...`, in its file's name."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from bench.audit.claim import Claim, Fact, Pair
from bench.audit.evidence.timestamps import start_of
from bench.catalog.rows import Gpu

_OBSERVED = "observed_"
_WHAT: Mapping[str, Fact] = {
    "engine_version": "engine_version",
    "engine_mode": "engine_mode",
    "backend": "engine_mode",
    "attention_backend": "engine_mode",
    "quantization": "engine_mode",
    "arch": "arch",
    "gfx": "arch",
    "gpu": "arch",
    "model": "label",
    "model_id": "label",
    "gpu_count": "label",
}
_TARGET = re.compile(r"gfx\d+[a-f]?|sm\d{2,3}")
_STACKS = {"rocm": "AMD", "cuda": "NVIDIA", "nvcr.io": "NVIDIA"}
_DATED = re.compile(r"(?<!\d)(?:20\d{6}[-_T]\d{6}|20\d{2}-\d{2}-\d{2})(?!\d)")
_DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}")
_ZONED = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})$")


def said_twice(claim: Claim, gpu: Gpu | None) -> Iterator[Pair]:
    """Each such fact as a pair."""
    yield from _observed(claim)
    yield from _image(claim, gpu)
    yield from _dates(claim)


def _observed(claim: Claim) -> Iterator[Pair]:
    """`engine_mode` beside `observed_engine_mode`, as metadata of a result carries them."""
    for key, value in claim.unread.items():
        name = key.removeprefix(_OBSERVED)
        claimed = claim.unread.get(name, vars(claim.asked).get(name)) if key != name else None
        if claimed is not None and value is not None:
            yield Pair(_WHAT.get(name, "flag"), str(claimed), str(value), f"{name} / {key}")


def _image(claim: Claim, gpu: Gpu | None) -> Iterator[Pair]:
    """An image's tag names the engine's version, the software of one maker, or what it was compiled for."""
    image, engine = claim.asked.image, claim.asked.engine
    if image is None:
        return
    tag = image.partition("@")[0].lower()
    if claim.asked.engine_version is not None and engine is not None:
        version = re.search(rf"{re.escape(engine.lower())}[^:/]*:v?(\d+\.\d+\.\d+\S*)$", tag)
        if version is not None:
            yield Pair("engine_version", version[1], claim.asked.engine_version, "tag of the image / version")
    if gpu is None:
        return
    target = _TARGET.search(tag)
    if target is not None:
        yield Pair("arch", gpu.gpu, target[0], "GPU / target of the image")
    for word, vendor in _STACKS.items():
        if word in tag and vendor != gpu.vendor:
            yield Pair("arch", f"{gpu.vendor} {gpu.gpu}", f"{vendor} software in {image}", "GPU / image")


def _dates(claim: Claim) -> Iterator[Pair]:
    """The date of a file's name, the one that it states, and the clock of its run."""
    stated, started = claim.unread.get("date"), start_of(claim)
    named = _DATED.search(PurePosixPath(claim.lineage.file.replace("\\", "/")).name)
    moments = {"date": str(stated) if stated else None, "file name": named[0].replace("_", "-") if named else None}
    known = [(where, moment) for where, moment in moments.items() if moment]
    if len(known) > 1:
        yield Pair("timestamp", known[0][1], known[1][1], "date / file name")
    if started is not None:
        clock = started.isoformat()
        for where, moment in known:
            # A local time without a time zone can be compared by its day only.
            day = _DAY.match(moment)
            yield Pair("timestamp", day[0] if day and not _ZONED.search(moment) else moment, clock, f"{where} / start")
