"""Numbers and names as people print them: `~33`, `15-20`, `<1`, `1,024`, `OOM`; `FP8 (per tensor)`, `vLLM v0.9.2`."""

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from catalog.read import precision_of
from warehouse.importers.parsing.fields import EXACT_MAX, NOTHING

_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_QUANTITY = re.compile(
    rf"(?P<sign>~|≈|about |ca\. ?|<=|>=|≤|≥|<|>)?\s*(?P<low>{_NUMBER})"
    rf"(?:\s*(?:-|–|—|to)\s*(?P<high>{_NUMBER}))?(?P<plus>\+)?\s*(?P<rest>[^\d\s][^|]*)?"  # noqa: RUF001 - as printed
)
_ABOUT, _BELOW, _ABOVE = ("~", "≈", "about", "ca."), ("<", "<=", "≤"), (">", ">=", "≥")
_FAILED = re.compile(
    r"\b(?:oom|out of memory|failed|failure|error|crash(?:ed)?|time(?:d )?out|unsupported)\b", re.IGNORECASE
)
_VERSION = re.compile(r"\bv?(\d+\.\d+[\w.+-]*)")


@dataclass(frozen=True)
class Quantity:
    """A printed value: a number, a range, or a failure.

    `qualifier` is about, below, above, range or failed; None for a plain number.
    """

    number: float | None = None
    low: float | None = None
    high: float | None = None
    qualifier: str | None = None


@lru_cache(maxsize=4096)
def read_quantity(text: str) -> Quantity | None:
    """The quantity in this text; None for other text. An empty text is a quantity without a number."""
    text = text.strip()
    if text.lower() in NOTHING:
        return Quantity()
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return Quantity(qualifier="failed") if _FAILED.search(text) else None
    low, high = (float(text.replace(",", "")) for text in (found["low"], found["high"] or "0"))
    if not math.isfinite(low + high):
        return None
    return Quantity(None, low, high, "range") if found["high"] else _of_one(low, (found["sign"] or "").strip(), found)


def _of_one(number: float, sign: str, found: re.Match[str]) -> Quantity:
    if sign in _BELOW:
        return Quantity(None, None, number, "below")
    if sign in _ABOVE or found["plus"]:
        return Quantity(None, number, None, "above")
    return Quantity(number, None, None, "about" if sign in _ABOUT else None)


@lru_cache(maxsize=4096)
def whole(text: str) -> int | None:
    """The whole number in this text; None for text such as `per GPU` or `3-5`."""
    quantity = read_quantity(text)
    number = None if quantity is None else quantity.number
    return int(number) if number is not None and number == int(number) and abs(number) <= EXACT_MAX else None


@lru_cache(maxsize=1024)
def printed_precision(text: str | None) -> str | None:
    """The precision of the weights by our name; an unknown one as printed, in lower case."""
    name = (text or "").strip()
    return precision_of(name) or (None if name.lower() in (*NOTHING, "unset") else name.lower())


@lru_cache(maxsize=1024)
def version_in(text: str | None) -> str | None:
    """The first version in this text: `0.9.2` of `vLLM v0.9.2 (ROCm 7.0.0)`."""
    found = _VERSION.search(text or "")
    return found[1] if found else None


@lru_cache(maxsize=1024)
def engine_of(text: str | None) -> str | None:
    """The engine's name in lower case, without its version: `vllm` of `vLLM v0.9.2`."""
    name = _VERSION.split(text or "", maxsplit=1)[0].strip().rstrip("(").strip().lower()
    return {"trt-llm": "tensorrt-llm", "trtllm": "tensorrt-llm"}.get(name, name) or None
