"""Writes a suite that extends another one, with the lock of that one beside it."""

import json
import shutil
from pathlib import Path

from bench.errors import UsageError
from infra.loadgen.suite_lock import lock_file
from nights.durable import write_text


def toml_string(text: str) -> str:
    """A text as a string of TOML, whatever it holds; UsageError where it is not Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{text!r} is not valid Unicode: it cannot be a part of a suite") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_value(value: object) -> str:
    """A value that a TOML file had, as TOML on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml_string(key)} = {toml_value(one)}' for key, one in value.items())} }}"
    return toml_string(value) if isinstance(value, str) else str(value)


def write_extension(path: Path, suite: Path, text: str) -> None:
    """Write a suite file with these keys, which extends `suite`."""
    write_text(path, f"extends = {toml_string(str(suite.absolute()))}\n{text}")
    if lock_file(suite).is_file():
        shutil.copyfile(lock_file(suite), lock_file(path))
