"""A suite that runs variants of its engine in turns on one lease; a side is a version, an image, or flags."""

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase

from bench.errors import UsageError
from bench.trends.paired import TURNS
from flows.bisect import is_image
from infra.loadgen.suite_extension import toml_string, write_extension

FOLDER = "ab"
REPEATS = 2  # of a turn: the first run after a server's start is left out where the round has another
ROUNDS, ROUNDS_MAX = 4, 25
OWN = "the suite's engine"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=")


@dataclass(frozen=True)
class SideOfEngine:
    """What one side changes of the suite's engine; without a change it is the suite's own."""

    text: str
    release: str | None = None  # a version or an image
    environment: tuple[str, ...] = ()  # NAME=value
    flags: tuple[str, ...] = ()

    def toml(self, name: str) -> str:
        """The variant of this side."""
        lines = ["[[variants]]", f"name = {toml_string(name)}"]
        if self.release is not None:
            lines.append(f"{'image' if is_image(self.release) else 'version'} = {toml_string(self.release)}")
        if self.environment:
            pairs = (one.partition("=")[::2] for one in self.environment)
            lines.append(f"environment = {{ {', '.join(f'{key} = {toml_string(value)}' for key, value in pairs)} }}")
        if self.flags:
            lines.append(f"flags = [{', '.join(map(toml_string, self.flags))}]")
        return "\n".join(lines) + "\n"


def parse_side(text: str) -> SideOfEngine:
    """A side such as `0.32.0`, `vllm/vllm-openai@sha256:...`, `--max-num-seqs 64` or `VLLM_X=1`, or several of these.

    The version or image comes first, then variables, then flags. Raises UsageError for anything else.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r} cannot be read as words of a command line ({error}): close the quotes") from error
    at = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    before, flags = words[:at], tuple(words[at:])
    environment = tuple(word for word in before if _VARIABLE.match(word))
    releases = [word for word in before if word not in environment]
    if len(releases) > 1:
        raise UsageError(
            f"{text!r} names {releases[0]!r} and {releases[1]!r}: give one version or image, then NAME=value and flags"
        )
    return SideOfEngine(text or OWN, releases[0] if releases else None, environment, flags)


def write_ab_suite(data: Path, suite: Path, sides: Sequence[SideOfEngine], rounds: int, repeats: int = REPEATS) -> Path:
    """The suite in which the sides take turns in so many rounds, each with so many `repeats`.

    No repeat is added, and nothing is measured again. The variants are `a`, `b` and so on.
    """
    turns = TURNS * rounds
    head = f"rerun_suspects = false\nrepeats = {repeats * turns}\nturns = {turns}\n\n[quality]\nscenario_s = 0\n\n"
    text = head + "\n".join(side.toml(name) for side, name in zip(sides, ascii_lowercase, strict=False))
    digest = hashlib.sha256(f"{suite.absolute()} {text}".encode()).hexdigest()[:16]
    path = data / FOLDER / f"{digest}.toml"
    write_extension(path, suite, text)
    return path
