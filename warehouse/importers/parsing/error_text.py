"""The error of a failed request: a text, or an object with a message and a code."""

from collections.abc import Mapping, Sequence

SPOKEN = ("code", "type", "error_type", "message", "error_msg")


def error_text(error: object) -> str | None:
    """The error message of a request, None without one; of an object its message."""
    if not error:
        return None
    if isinstance(error, Mapping):
        told = [str(said) for name in SPOKEN if isinstance(said := error.get(name), str | int) and said != ""]
        return storable(" ".join(told) or str(dict(error)))
    return storable(error if isinstance(error, str) else str(error))


def error_texts(errors: Sequence[object]) -> Sequence[str | None] | None:
    """The error of each request; None if none failed."""
    return [error_text(each) if each else None for each in errors] if any(errors) else None


def storable(text: str) -> str:
    """The text with lone surrogates, which JSON allows and UTF-8 does not, replaced by `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")
