"""The file that an option names for what a command writes."""

from pathlib import Path

from nights.durable import write_text


def write_output(path: Path, text: str) -> None:
    """Write or replace a file in one step; a symlink stays, and the file that it names is written.

    Raises OSError where it cannot be written.
    """
    if path.exists() and not path.is_file():  # such as a device or a pipe, which a new file must not take the place of
        path.write_text(text, encoding="utf-8")
    else:
        write_text(path.resolve(), text)
