"""Versions of engines: whether one is the requested one, or lies within the bounds of a fact."""

import re

# What llama.cpp calls its builds. A build without its history calls itself b0 or b1.
_TAG = re.compile(r"(b\d{3,})(?:-[\w-]+)?")


def is_between(version: str, first: str | None, last: str | None) -> bool:
    """Whether it does; `last` has all that begin so: 0.17 is 0.17.1 too. None: no bound.

    A version that is not known lies within no bounds.
    """
    number = _release(version)
    if not number:
        return first is None and last is None
    end = _release(last or "")
    return number >= _release(first or "") and (not end or number[: len(end)] <= end)


def llama_cpp_tag(version: str) -> str | None:
    """The tag of llama.cpp that a version names, as a suite or as its server does; None for another sort of version."""
    found = _TAG.fullmatch(version)
    return found[1] if found else None


def is_release(found: str, asked: str) -> bool:
    """Whether a server reports the requested version: as `0.32.0+cpu` is 0.32.0, `b11434-0c1e570` is the tag b11434."""
    one, other = (version.split("+", maxsplit=1)[0] for version in (found, asked))
    return other in {one, llama_cpp_tag(one)}


def _release(version: str) -> tuple[int, ...]:
    match = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()
