"""Numbers and names as people print them: `~33`, `15-20`, `<1`, `1,024`, `1.2k`, `OOM`; `FP8 (per tensor)`."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from catalog.read import precision_of
from warehouse.importers.parsing.fields import EXACT_MAX, IN_DOUBT, INFINITE, NO_NUMBER, NOTHING, has_doubtful_comma
from warehouse.importers.parsing.printed_units import unit_of

_GROUPS = r"[1-9]\d{0,2}(?:(?:,\d{3})+|(?:[ \u00a0\u2009\u202f']\d{3})+)(?:\.\d+)?"  # 1,234.5 and 1 234.5
_NUMBER = rf"[-+]?(?:{_GROUPS}|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{{1,3}})?"
_SIGNS: Mapping[str, tuple[str, ...]] = {
    "about": ("~", "≈", "about", "approximately", "approx.", "approx", "around", "ca.", "circa"),
    "below": ("<=", "≤", "<", "up to", "at most", "less than", "under"),
    "above": (">=", "≥", ">", "at least", "more than", "over"),
}
_QUALIFIERS = {sign: qualifier for qualifier, signs in _SIGNS.items() for sign in signs}
_SIGN = "|".join(map(re.escape, _QUALIFIERS))
_QUANTITY = re.compile(
    rf"(?P<sign>(?i:{_SIGN}))?\s*(?P<usd>\$)?(?P<low>{_NUMBER})(?P<thousands>[kKMB](?![A-Za-z]))?"
    rf"(?:\s*(?:-|–|—|to)\s*\$?(?P<high>{_NUMBER})(?P<high_thousands>[kKMB](?![A-Za-z]))?)?(?P<plus>\+(?!/))?(?:\s*(?:±|\+/-)\s*(?P<spread>{_NUMBER}))?(?:\s*(?P<unit>[^\d\s,.+][^|]*))?"  # noqa: RUF001 - as printed
)
# Bold or code of Markdown around a value, and the mark of a footnote behind it: `**150**`, `150*`, `150 [1]`.
_MARKED = re.compile(r"^(\*{1,2}|`|_)?(.*?)(?:\1|(?<=\d)\s*(?:\*{1,3}|†|‡|\[\d{1,2}\]))$")
_THOUSANDS = {None: 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
_GROUPED = re.compile(r"[,'\s]")
_FAILED = re.compile(
    r"\b(?:oom|out of memory|failed|failure|error|crash(?:ed)?|time(?:d )?out|unsupported)\b", re.IGNORECASE
)
_VERSION = re.compile(r"\bv?(\d+\.\d+[\w.+-]*)")


@dataclass(frozen=True)
class Quantity:
    """A printed value: a number, a range, or a failure.

    `qualifier` is about, below, above, range or failed; None for a plain number. `unit` and `spread`, which follows
    `±`, are those in the same cell.
    """

    number: float | None = None
    low: float | None = None
    high: float | None = None
    qualifier: str | None = None
    unit: str = ""
    spread: float | None = None


@lru_cache(maxsize=4096)
def read_quantity(text: str) -> Quantity | None:
    """The quantity in this text; None for other text. An empty text is a quantity without a number."""
    text = _MARKED.sub(r"\2", text.strip()).strip()
    if text.lower() in NO_NUMBER:
        return Quantity()
    found = _QUANTITY.fullmatch(text)
    unit = (found["unit"] or "") if found else ""
    if found is None or (unit and unit_of(unit) is None):
        return Quantity(qualifier="failed") if _FAILED.search(text) else None
    low, high = _number(found["low"], found["thousands"]), _number(found["high"] or "0", found["high_thousands"])
    if not math.isfinite(low + high):
        return None
    unit = unit or ("usd" if found["usd"] else "")
    if found["high"]:
        # `1-2k` is one to two thousand.
        low = low if found["thousands"] else _number(found["low"], found["high_thousands"])
        return Quantity(None, low, high, "range", unit)
    one = _of_one(low, (found["sign"] or "").strip(), unit, has_plus=bool(found["plus"]))
    return replace(one, spread=_number(found["spread"], found["thousands"])) if found["spread"] else one


def why_no_number(text: str) -> str:
    """Why this text, a printed value, gives no number."""
    name = text.strip().lower()
    if name in INFINITE:
        return "it is not finite"
    if name in NO_NUMBER:
        return "it states no number"
    if has_doubtful_comma(name):
        return IN_DOUBT
    return "it is not a number"


def _number(text: str, thousands: str | None) -> float:
    return float(_GROUPED.sub("", text)) * _THOUSANDS[thousands]


def _of_one(number: float, sign: str, unit: str, *, has_plus: bool) -> Quantity:
    qualifier = "above" if has_plus else _QUALIFIERS.get(sign.lower())
    if qualifier == "below":
        return Quantity(None, None, number, qualifier, unit)
    if qualifier == "above":
        return Quantity(None, number, None, qualifier, unit)
    return Quantity(number, None, None, qualifier, unit)


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
