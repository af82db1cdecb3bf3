"""Find the spelling that looks most like a name, among thousands, for each of hundreds of headers.

difflib compares two texts letter by letter, which takes seconds for all pairs. So only those spellings are compared
that share most groups of three letters with the name.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from heapq import nlargest

COMPARED_MAX = 10  # spellings that are compared with one name


class Spellings:
    """Texts among which the most similar to a name is looked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Of these texts; of two that are as similar, the first is found."""
        self.texts = tuple(dict.fromkeys(texts))

    def nearest(self, name: str, cutoff: float) -> str | None:
        """The text most like this name, if difflib's ratio of the two is at least `cutoff`."""
        found = difflib.get_close_matches(name, self.candidates(name), n=1, cutoff=cutoff)
        return found[0] if found else None

    def candidates(self, name: str) -> list[str]:
        """The few texts that share the largest part of their groups of letters with this name."""
        own = set(_groups(name))
        shared = Counter(at for group in own for at in self._places.get(group, ()))
        best = nlargest(COMPARED_MAX, shared, key=lambda at: (shared[at] / (len(own) + self._sizes[at]), -at))
        return [self.texts[at] for at in best]

    @cached_property
    def _places(self) -> Mapping[str, list[int]]:
        """By group of letters: the texts that have it."""
        places: dict[str, list[int]] = {}
        for at, text in enumerate(self.texts):
            for group in set(_groups(text)):
                places.setdefault(group, []).append(at)
        return places

    @cached_property
    def _sizes(self) -> list[int]:
        return [len(set(_groups(text))) for text in self.texts]


def _groups(text: str) -> Iterator[str]:
    """Each three letters that follow one another, with a space before and behind the text."""
    padded = f" {text} "
    return (padded[at : at + 3] for at in range(max(1, len(padded) - 2)))
