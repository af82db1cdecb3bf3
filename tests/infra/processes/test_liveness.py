"""A process that exits frees its liveness lock, which alone proves that a flow run is dead."""

import subprocess
import sys
from pathlib import Path

from infra.processes.liveness import FOLDER, dead_names, liveness_lock, remove_lock

HOLDS = """\
import sys, time
from pathlib import Path
from infra.processes.liveness import liveness_lock
with liveness_lock(Path(sys.argv[1]), sys.argv[2]):
    print("alive", flush=True)
    time.sleep(600)
"""


def test_who_is_killed_is_dead_and_who_lives_is_not(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLDS, str(tmp_path), "night"]
    with subprocess.Popen(argv, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "alive\n"
        while_it_lived = dead_names(tmp_path)
        process.kill()

    assert (while_it_lived, dead_names(tmp_path)) == ([], ["night"])
    remove_lock(tmp_path, "night")
    assert dead_names(tmp_path) == []


def test_who_ends_leaves_nothing(tmp_path: Path) -> None:
    with liveness_lock(tmp_path, "night"):
        assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["night"]

    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_folder_that_cannot_be_written_keeps_nobody_from_working(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file")

    with liveness_lock(tmp_path, "night"):
        pass

    assert dead_names(tmp_path) == []
