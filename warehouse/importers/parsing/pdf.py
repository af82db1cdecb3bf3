"""The text of a PDF with its columns where they stand on the page, by poppler's pdftotext where it is installed."""

import shutil
import subprocess

from bench.errors import UnknownFormatError, UnreadableResultError

MAGIC = b"%PDF-"
_TIMEOUT_S = 60  # thousands of pages take seconds


def layout_of(name: str, data: bytes) -> bytes:
    """The pages as text in UTF-8.

    Raises UnknownFormatError without the tool or without text, UnreadableResultError for a broken PDF.
    """
    tool = shutil.which("pdftotext")
    if tool is None:
        raise UnknownFormatError(
            f"{name} is a PDF, and pdftotext, which reads it, is not on PATH: install poppler-utils, or pass its "
            "tables as CSV or HTML"
        )
    try:
        done = subprocess.run(
            [tool, "-layout", "-enc", "UTF-8", "-", "-"],
            input=data,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        why = error.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise UnreadableResultError(f"{name} is a broken PDF: {why}") from error
    except subprocess.TimeoutExpired as error:
        raise UnreadableResultError(
            f"pdftotext took more than {_TIMEOUT_S} s for {name}: pass only its pages with tables"
        ) from error
    if not done.stdout.strip():
        raise UnknownFormatError(f"{name} has no text, only pictures of pages: pass its tables as CSV")
    return done.stdout
