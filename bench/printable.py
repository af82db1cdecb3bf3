"""Text from elsewhere, made safe to print: a machine's words cannot move the cursor, hide text or change a terminal."""

import re
from typing import Any

# Whole colour and cursor commands. Of longer commands only the control characters go, so that no text is hidden.
_COMMANDS = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
# C0 but tab and newline, DEL, C1, and what reverses the direction of writing.
_CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
_REMOVED = re.compile(f"{_COMMANDS}|{_CONTROLS}")


def printable(text: str) -> str:
    """The text without terminal commands and control characters; a lone surrogate becomes a `?`."""
    if text.isascii() and text.isprintable():  # nearly every text
        return text
    return _REMOVED.sub("", text).encode("utf-8", "replace").decode("utf-8")


def printable_strings(value: Any) -> Any:
    """A value of JSON whose strings, keys included, are all printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [printable_strings(one) for one in value]
    if isinstance(value, dict):
        return {printable(str(key)): printable_strings(one) for key, one in value.items()}
    return value
