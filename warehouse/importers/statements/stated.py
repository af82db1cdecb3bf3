"""One fact of a configuration that a text states, and where."""

from dataclasses import dataclass

# Characters of one text; a larger one is not read for statements.
TEXT_MAX = 4_000_000


@dataclass(frozen=True)
class Stated:
    """A field of ClaimedConfig, `attention_backend` or `preemptions`, with its value in our units.

    `where` is what states it and on which line: `command in line 12`.
    """

    field: str
    value: object
    where: str
