"""Which flags an engine knows, by what its `--help` prints."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from bench.suite.engine_changes import flag_names

_NAMES = re.compile(r"(?:^ {0,2}|[ ,])(-{1,2}[A-Za-z][\w-]*)")


def flags_in_help(text: str) -> frozenset[str]:
    """The flags that a help text lists, each at the start of a line, behind at most two spaces."""
    lines = (line for line in text.splitlines() if re.match(r" {0,2}-", line))
    return frozenset(name for line in lines for name in _NAMES.findall(line))


def unknown_flags(flags: Sequence[str], known: frozenset[str]) -> Iterator[str]:
    """Each flag that an engine does not list, with the nearest ones that it does."""
    for name in flag_names(flags):
        if not _is_known(name, known):
            near = get_close_matches(name.replace("_", "-"), sorted(known), n=3)
            yield f"{name} is not a flag of this engine" + (f": did you mean {' or '.join(near)}?" if near else "")


def _is_known(name: str, known: frozenset[str]) -> bool:
    """Whether a flag is listed as it is, with a key of its value (`--config.mode`), or shortened as argparse allows."""
    plain = name.partition(".")[0].replace("_", "-")
    if plain in known or re.fullmatch(r"-[A-Za-z]\d+", name):  # -O3, which no help lists
        return True
    return name.startswith("--") and sum(one.startswith(plain) for one in known) == 1
