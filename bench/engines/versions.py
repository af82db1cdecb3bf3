"""Whether a version of an engine lies within the bounds of a fact."""

import re


def is_between(version: str, first: str | None, last: str | None) -> bool:
    """Whether it does; `last` has all that begin so: 0.17 is 0.17.1 too. None: no bound.

    A version that is not known lies within no bounds.
    """
    number = _release(version)
    if not number:
        return first is None and last is None
    end = _release(last or "")
    return number >= _release(first or "") and (not end or number[: len(end)] <= end)


def _release(version: str) -> tuple[int, ...]:
    match = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()
