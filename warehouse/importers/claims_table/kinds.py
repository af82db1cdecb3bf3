"""How a number came about, by the words beside it: measured, or expected, interpolated, quoted, derived."""

import re
from collections.abc import Mapping

from bench.audit.claim import Kind

# Words in the metric or the notes of a number that was not measured as written.
KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("interpolated", "extrapolated"), "interpolated"),
    "second-hand": "quoted",
    **dict.fromkeys(("expected", "theoretical", "projected", "estimated", "est."), "expected"),
    **dict.fromkeys(("aggregate of two", "scaled from", "scaled up from", "scaled linearly from"), "derived"),
}
# Before one of these words, one of these says that it is not so: `not estimated`, `higher than expected`.
_TURNED_BY = frozenset({"not", "no", "never", "neither", "nor", "than"})
# Eight instances are summed like two; the sum over eight users is what every load test measures.
_SUMMED = re.compile(r"(?<=aggregate of )\S+(?= (?:instances|replicas|servers|nodes|engines|machines))")
_BETWEEN_WORDS = re.compile(r"(?<!\best)\.|[^a-z0-9.-]+")


def kind_said_in(text: str) -> Kind:
    """The kind that these words say, in any case; `unexpected` is not the word `expected`."""
    words = _SUMMED.sub("two", f" {_BETWEEN_WORDS.sub(' ', text.lower())} ")
    return next((kind for said, kind in KINDS.items() if _says(words, said)), "measured")


def _says(words: str, said: str) -> bool:
    """Whether the words hold these, without one before them that turns their meaning."""
    before = (part.rpartition(" ")[2] for part in words.split(f" {said} ")[:-1])
    return any(word not in _TURNED_BY for word in before)
