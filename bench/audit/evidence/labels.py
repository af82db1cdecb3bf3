"""Places of one claim that name the same thing: its label, its file, the model's repository, its counts."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from bench.audit.claim import Claim, Pair
from bench.audit.evidence.evidence import Subject
from bench.catalog.precisions import WEIGHT_BYTES

# `70b`, `8x7b`, `a22b`: parameters, standing alone.
_SIZES = re.compile(r"(?<![a-z0-9.])(?:\d+x)?a?(\d+(?:\.\d+)?)b(?![a-z0-9])")
_PRECISIONS = re.compile(r"(?<![a-z0-9])(bf16|fp16|fp8|int8|int4|mxfp4|nvfp4|fp4|awq|gptq)(?![a-z0-9])")
_BYTES = {**WEIGHT_BYTES, "awq": WEIGHT_BYTES["int4"], "gptq": WEIGHT_BYTES["int4"]}
PAGE = "table"  # the format of pages and reports, whose names say nothing of each of their rows
FOUR_BITS = 0.6  # bytes: all kinds of four bits are below it


def label_pairs(claim: Claim, subject: Subject) -> Iterator[Pair]:
    """What stands in two places of the claim, as pairs whose halves are equal where the places agree."""
    names = {"label": claim.label}
    if claim.lineage.format != PAGE:
        names["file name"] = PurePosixPath(claim.lineage.file.replace("\\", "/")).name
    model = claim.asked.model
    for where, name in names.items():
        if model is not None:
            yield from _of_sets(
                _sizes(name), _sizes(model.rpartition("/")[2]), f"size in {where} / in the model's name"
            )
        if subject.precision is not None:
            yield from _of_sets(_precisions(name), {_class_of(subject.precision)}, f"precision in {where} / as claimed")
    if model is not None and claim.asked.precision is not None and subject.precision is not None:
        said = _precisions(model.rpartition("/")[2])
        yield from _of_sets(said, {_class_of(subject.precision)}, "precision in the model's name / as claimed")
    yield from _counts(claim)


def _of_sets(one: set[str], other: set[str], where: str) -> Iterator[Pair]:
    """A pair where both places say something; one that names several things agrees with each of them."""
    if one and other:
        shared = one & other
        first, second = (shared, shared) if shared else (one, other)
        yield Pair("label", "/".join(sorted(first)), "/".join(sorted(second)), where)


def _sizes(name: str) -> set[str]:
    return {f"{float(found):g}B" for found in _SIZES.findall(name.lower().replace("_", "-"))}


def _precisions(name: str) -> set[str]:
    return {_class_of(found) for found in _PRECISIONS.findall(name.lower().replace("_", "-"))}


def _class_of(precision: str) -> str:
    """The width of a precision: which four-bit format it is, is often not stated."""
    width = _BYTES[precision]
    return "4 bits" if width < FOUR_BITS else f"{8 * width:.0f} bits"


def _counts(claim: Claim) -> Iterator[Pair]:
    """One copy of a model is in no more GPUs than there are."""
    asked = claim.asked
    if asked.gpu_count is None or asked.tp_size is None:
        return
    needed = asked.tp_size * (asked.pp_size or 1)
    if needed > asked.gpu_count:
        yield Pair("label", f"TP x PP = {needed}", f"GPUs = {asked.gpu_count}")
