"""A folder for a server of PostgreSQL, which runs as a user of its own."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flows.service import postgres

MISSING = "there is no PostgreSQL server here"


@contextmanager
def postgres_folder() -> Iterator[Path]:
    """A folder with a short path that the user of PostgreSQL may enter; skips the test where there is no server."""
    if shutil.which("initdb") is None and not list(postgres.PACKAGES.glob("*/bin/initdb")):
        pytest.skip(MISSING)
    made = Path(tempfile.mkdtemp(prefix="nb-pg-", dir="/tmp"))  # pytest's own are closed to other users
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made)
