"""What several tests of the history share."""

from pathlib import Path

import pytest

from tests.benchmarks.small_history import write_small_history
from warehouse.demo.history import load_history


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A loaded history in which the newer release is 10 % faster, and its data set."""
    data, history, folder = (tmp_path_factory.mktemp(name) for name in ("data", "set", "loaded"))
    write_small_history(data, history)
    load_history(folder, history)
    return folder, history
