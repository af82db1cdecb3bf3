"""The text of a suite: its own file and the files that it extends, and where each of their keys stands."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Self

from bench.errors import SuiteError

EXTENDS = "extends"
Place = tuple[int | str, ...]  # the path of a table or a key in a suite file
# Of a suite's two forms of one thing, the extending file's replaces the other.
_FORMS = {"model": "models", "machine": "machines"}


@dataclass(frozen=True)
class SuiteFile:
    """One file of a suite, and its keys."""

    where: str  # its name for errors
    text: str
    raw: Mapping[str, Any]

    @classmethod
    def of(cls, text: str, where: str) -> Self:
        """Parse TOML; SuiteError if it is none."""
        try:
            raw = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SuiteError(f"{where}: not TOML: {error}") from error
        extends = raw.get(EXTENDS)
        if extends is not None and (not isinstance(extends, str) or not extends):
            raise SuiteError(f"{where}:{line_of(text, (EXTENDS,))}: extends: give the path of one suite file")
        return cls(where, text, raw)

    @property
    def extends(self) -> str | None:
        """The path of the file that this one extends, relative to it."""
        return self.raw.get(EXTENDS)

    def at(self, path: Place) -> str:
        """File and line of a key: `suites/night.toml:12`."""
        return f"{self.where}:{line_of(self.text, path)}"


@dataclass(frozen=True)
class SuiteSource:
    """The files of a suite: first its own, then each that the one before extends."""

    files: tuple[SuiteFile, ...]

    @classmethod
    def of(cls, text: str, where: str) -> Self:
        """A suite of one file; SuiteError if it is not TOML."""
        return cls((SuiteFile.of(text, where),))

    @property
    def where(self) -> str:
        """The name of the suite's own file."""
        return self.files[0].where

    @property
    def text(self) -> str:
        """The text of every file, for the suite's hash."""
        return "\0".join(file.text for file in self.files)

    @property
    def raw(self) -> dict[str, Any]:
        """The keys of all files: tables are merged key by key; a list or a `[[table]]` replaces the extended one."""
        found: dict[str, Any] = {}
        for place, file in reversed(tuple(enumerate(self.files))):
            found = merged(found, _moved(file.raw, [one.extends or "" for one in self.files[:place]]))
        return {key: value for key, value in found.items() if key != EXTENDS}

    def at(self, path: Place) -> str:
        """File and line of a key, or of the nearest table above it."""
        found = [(_depth(file.raw, path), file) for file in self.files]
        return max(found, key=lambda one: one[0])[1].at(path)


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of `base` with those of `own`: tables are merged, and everything else is replaced."""
    other = {key for one, several in _FORMS.items() for key, form in ((one, several), (several, one)) if form in own}
    kept = {key: value for key, value in base.items() if key not in other}
    both = {
        key: merged(kept[key], value)
        for key, value in own.items()
        if isinstance(value, dict) and isinstance(kept.get(key), dict)
    }
    return kept | dict(own) | both


def _depth(raw: Mapping[str, Any], path: Place) -> float:
    """How many parts of a path a file has; a list that it has is all its own."""
    inner: Any = raw
    for depth, part in enumerate(path):
        if not isinstance(inner, dict):
            return float("inf")
        if part not in inner:
            return depth
        inner = inner[part]
    return float("inf")


def _moved(raw: Mapping[str, Any], extends: Sequence[str]) -> dict[str, Any]:
    """The keys of an extended file with the paths of its inputs relative to the suite's own folder."""
    folder = PurePath(*(PurePath(one).parent for one in extends))

    def moved(value: Any) -> Any:
        return [moved(one) for one in value] if isinstance(value, list) else str(folder / str(value))

    def scenario(table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        found = {key: moved(value) if key in ("trace", "file") else value for key, value in table.items()}
        return found | {key: scenario(found[key]) for key in ("prompts",) if key in found}

    tables = ("scenarios", "matrix")
    lists: dict[str, Any] = {
        key: [scenario(one) for one in raw[key]] for key in tables if isinstance(raw.get(key), list)
    }
    quality = raw.get("quality")
    if isinstance(quality, dict) and "expectations" in quality:
        lists["quality"] = {**quality, "expectations": moved(quality["expectations"])}
    return dict(raw) | (lists if extends else {})


def line_of(text: str, path: Place) -> int:
    """The line (from 1) of the key at this path, else of the nearest table above it, else 1."""
    wanted = [str(part) for part in path if isinstance(part, str)]
    place = next((at for at, part in enumerate(path) if isinstance(part, int)), len(path))
    repeated = ".".join(map(str, path[:place]))  # the [[table]] that the number counts; none where it is written inline
    has_headers = re.search(rf"^\s*\[\[\s*{re.escape(repeated)}\s*\]\]", text, re.MULTILINE)
    nth = path[place] if has_headers and place < len(path) else None
    table, found, count = "", 1, -1
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*([\w.]+)\s*\]+", line)
        if header:
            table = header[1]
            count += table == repeated
        is_ours = not table or nth in (None, count)
        if header and is_ours and table.split(".") in (wanted[:1], wanted[:-1], wanted):
            found = number
        key = re.match(r"\s*([\w-]+)\s*=", line)
        if key and is_ours and [*filter(None, table.split(".")), key[1]] == wanted:
            return number
    # A key of an inline table stands on the line of that table's own key.
    outermost = path[: 2 if len(path) > 1 and isinstance(path[1], int) else 1]
    return line_of(text, path[:-1]) if len(wanted) > 2 and found == line_of(text, outermost) else found  # noqa: PLR2004
