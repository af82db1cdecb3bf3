"""Why a request failed, as the tools write it: a text, or an object with a message and a code."""

from collections.abc import Mapping, Sequence

SPOKEN = ("code", "type", "error_type", "message", "error_msg")


def error_text(error: object) -> str | None:
    """The failure in the words of the file, None where there is none; of an object what it says to people."""
    if not error:
        return None
    if isinstance(error, Mapping):
        told = [str(said) for name in SPOKEN if isinstance(said := error.get(name), str | int) and said != ""]
        return storable(" ".join(told) or str(dict(error)))
    return storable(error if isinstance(error, str) else str(error))


def error_texts(errors: Sequence[object]) -> Sequence[str | None] | None:
    """Of each request; None where none failed."""
    return [error_text(each) if each else None for each in errors] if any(errors) else None


def storable(text: str) -> str:
    """The text as UTF-8 can hold it: JSON can name halves of a character, and a `?` stands for each."""
    return text.encode("utf-8", "replace").decode("utf-8")
