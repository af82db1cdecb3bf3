"""Kill a load, a rebuild or an import of the real warehouse, and look at what the next comer finds.

`python -m tests.warehouse.kills FOLDER WORK STEPS RANDOM` kills the work before every STEPS-th change of a file, and
RANDOM times at random moments of its CPU time. It runs in a process of its own, which has no thread when it forks.
"""

import hashlib
import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from tests.forked import ended, forked
from tests.killed import killed_before
from tests.warehouse.folders import Shape, whole_night
from warehouse.imports import import_file
from warehouse.lake.database import open_warehouse
from warehouse.lake.lake import IMPORTS, one_loader
from warehouse.lake.months import stage_months
from warehouse.lake.swap import swap_in
from warehouse.load import load_night
from warehouse.rebuild import rebuild

NIGHT, OTHER = "2026-03-01", "other.json"
RESULTS = Path(__file__).parents[1] / "data" / "vllm-results"
PROGRESS = 10  # kills between two lines of output
EVERY_OTHER_LOAD = 10  # one kill in ten is followed by a load of something else, the others by a reader
SEED = 11
IMPORTED_BY_A_LOAD = ("great_expectations.expectations", "great_expectations.render.renderer")

Content = dict[str, str]


def load(data: Path) -> None:
    """Load a night that was loaded with other results before."""
    load_night(data, NIGHT)


def rebuild_all(data: Path) -> None:
    """Rebuild that night and an import, and remove a night without run folders."""
    rebuild(data, prune=["gone"])


def import_again(data: Path) -> None:
    """Import a file with another context than before."""
    import_file(data, data / "results.json")


WORK: dict[str, Callable[[Path], None]] = {"load": load, "rebuild": rebuild_all, "import": import_again}


def make(data: Path) -> None:
    """A data folder whose night and context have changed since they were loaded."""
    whole_night(data, NIGHT, {"chat": Shape(gap_ms=5.0)})
    load_night(data, NIGHT)
    shutil.rmtree(data / "runs" / NIGHT)
    whole_night(data, NIGHT, {"chat": Shape(gap_ms=7.0, failed=3)})
    shutil.copytree(data / "lake" / "findings" / f"night={NIGHT}", data / "lake" / "findings" / "night=gone")
    shutil.copy(RESULTS / "vllm_bench_serve.json", data / "results.json")
    import_file(data, data / "results.json")
    _give_months(data)
    (data / "results.context.toml").write_text('gpu = "MI300X"')
    (data / OTHER).write_bytes((data / "results.json").read_bytes() + b"\n")


def _give_months(data: Path) -> None:
    """Give that night's month a file, beside the nights of a later month."""
    measured = data / "lake" / "measurements"
    shutil.copytree(measured / f"night={NIGHT}", measured / "night=2026-04-01")
    with one_loader(data) as lake:
        stage_months(lake, loose_nights=1)
        swap_in(lake)


def content(data: Path) -> Content:
    """The hash of each file of lake and imports, but for what the other load adds."""
    other = hashlib.sha256((data / OTHER).read_bytes()).hexdigest()
    files = [path for folder in ("lake", IMPORTS) for path in (data / folder).rglob("*") if path.is_file()]
    names = [str(path.relative_to(data)) for path in files]
    return {
        name: hashlib.sha256((data / name).read_bytes()).hexdigest()
        for name in names
        if "/." not in name and other not in name and f"import-{other[:16]}" not in name
    }


def killed_after(cpu_s: float, work: Callable[[Path], None], data: Path) -> int:
    """Run in a child that the kernel kills once it has used this much CPU time; it cannot handle that signal."""

    def limited() -> None:
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        work(data)

    return ended(forked(limited))


class Kills:
    """One kind of work, killed again and again, each time from the same state."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.work = name, WORK[name]
        self.data, self._ready = folder / "data", folder / "ready"
        if not self._ready.exists():
            assert ended(forked(make, self.data)) == 0
            shutil.copytree(self.data, self._ready)
        self.before = content(self._ready)
        self.left: Counter[str] = Counter()
        self.again()
        began = os.times()
        assert ended(forked(self.work, self.data)) == 0
        done = os.times()
        self.cpu_s = done.children_user - began.children_user + done.children_system - began.children_system
        self.after = content(self.data)
        assert self.after != self.before

    def again(self) -> None:
        """Go back to the state before the work."""
        shutil.rmtree(self.data)
        shutil.copytree(self._ready, self.data)

    @property
    def killed(self) -> int:
        """How many kills there were."""
        return self.left["before"] + self.left["after"]

    def look(self, code: int, moment: str) -> None:
        """Let somebody else come, who must then find the state before the work or the one after it."""
        is_reader = sum(self.left.values()) % EVERY_OTHER_LOAD
        assert ended(forked(_read if is_reader else _load_another, self.data)) == 0
        found = content(self.data)
        assert found in (self.before, self.after), f"{self.name} killed {moment} left a mixture"
        self.left["not killed" if code == 0 else "before" if found == self.before else "after"] += 1


def _read(data: Path) -> None:
    with open_warehouse(data):
        pass


def _load_another(data: Path) -> None:
    import_file(data, data / OTHER)


def main(folder: Path, name: str, steps: int, randoms: int) -> None:
    """Print how many kills left the state before the work, and how many the one after it; fails for any other."""
    for module in IMPORTED_BY_A_LOAD:
        import_module(module)
    kills = Kills(folder, name)
    change, code = 0, -1
    while code:
        kills.again()
        code = killed_before(change, kills.data, kills.work, kills.data)
        kills.look(code, f"before change {change}")
        change += steps
    steps_killed = kills.killed
    moments = random.Random(SEED)
    while kills.killed < steps_killed + randoms:  # what ends before its moment was not killed
        kills.again()
        moment = moments.uniform(0.0, kills.cpu_s)
        kills.look(killed_after(moment, kills.work, kills.data), f"after {moment:.4f} s")
        if kills.killed % PROGRESS == 0:
            sys.stdout.write(f"{name}: {kills.killed} kills, {dict(kills.left)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{name}: {dict(kills.left)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
