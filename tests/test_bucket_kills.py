"""A load, rebuild, upload or fetch with a bucket that is killed at any moment leaves no mixture and loses nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pairs import IS_SOAK, a_sample

# In every `make test` a fetch and a load are killed before their changes, in tests/infra/storage/test_upload.py and
# tests/warehouse/lake/test_bucket_lake.py, and an upload puts the manifest of each run last.
pytestmark = pytest.mark.matrix
RANDOM = 1000 if IS_SOAK else 2


@pytest.mark.parametrize("work", a_sample(["upload", "fetch", "load", "rebuild"], 1))
def test_what_is_killed_beside_a_bucket_is_whole_or_absent_for_who_comes_next(tmp_path: Path, work: str) -> None:
    argv = [sys.executable, "-m", "tests.bucket_kills", str(tmp_path / "kills"), work, "0", str(RANDOM)]

    done = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[1])

    assert done.returncode == 0, done.stderr[-3000:]
    assert f"{RANDOM} kills" in done.stdout
