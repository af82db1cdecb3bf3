"""A load, rebuild or import that is killed at any moment is there as a whole or not at all, for whoever comes next.

In every `make test`, tests/warehouse/lake/test_journal.py kills what brings files into place before each change.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pairs import IS_SOAK, a_sample

pytestmark = pytest.mark.matrix
STEPS, RANDOM = (1, 334) if IS_SOAK else (60, 1)


@pytest.mark.parametrize("work", a_sample(["load", "rebuild", "import"], 1))
def test_what_is_killed_is_whole_or_absent_for_the_next_reader_or_load(tmp_path: Path, work: str) -> None:
    argv = [sys.executable, "-m", "tests.warehouse.kills", str(tmp_path), work, str(STEPS), str(RANDOM)]

    done = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2])

    assert done.returncode == 0, done.stderr[-3000:]
    assert "before" in done.stdout
