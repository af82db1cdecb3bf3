"""What a load staged comes into place as a whole, whenever it is killed, and is completed by whoever comes next."""

from pathlib import Path

import pytest

from nights.durable import write_text
from nights.journal import JOURNAL, complete
from tests.killed import each_kill, killed_before
from warehouse.lake.lake import IMPORTS, STAGING, one_loader
from warehouse.lake.query import run_sql
from warehouse.lake.swap import folders_of, swap_in

BEFORE = {
    "lake/findings/night=1/rows.txt": "old",
    "lake/measurements/night=1/rows.txt": "old",
    "lake/measurements/night=gone/rows.txt": "old",
    "imports/abc/import.json": "old",
    "imports/abc/beside/a.csv": "old",
}
AFTER = {
    "lake/findings/night=1/rows.txt": "new",
    "lake/measurements/night=1/rows.txt": "new",
    "lake/measurements/night=2/rows.txt": "new",
    "imports/abc/import.json": "new",
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    _restore(tmp_path)
    return tmp_path


def _restore(data: Path) -> None:
    for path in sorted(data.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for name, content in BEFORE.items():
        write_text(data / name, content)


def _load(data: Path) -> None:
    """Replace what is there as a rebuild and an import do."""
    with one_loader(data) as lake:
        for name in AFTER:
            folder, _, rest = name.partition("/")
            write_text(data / folder / STAGING / rest, "new")
        swap_in(lake, imported=[(f"{IMPORTS}/{STAGING}/abc", f"{IMPORTS}/abc")], removed=folders_of(lake, {"gone"}))


def _other_load(data: Path) -> None:
    with one_loader(data):
        pass


def _content(data: Path) -> dict[str, str]:
    files = {path.relative_to(data): path for path in data.glob("*/**/*") if path.is_file()}
    return {str(name): path.read_text() for name, path in files.items() if not any(map(_is_hidden, name.parts))}


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def test_a_load_that_is_killed_before_any_change_is_whole_or_absent_for_the_next_load(data: Path) -> None:
    left = []
    for change in each_kill(data, _load, data):
        _other_load(data)
        left.append(_content(data))
        assert left[-1] in (BEFORE, AFTER), f"killed before change {change}"
        assert sorted(path.name for path in data.rglob(".*")) in ([".lock"], [".lock", ".swap.lock"])
        _restore(data)

    assert _content(data) == AFTER
    assert BEFORE in left
    assert AFTER in left


def test_a_load_that_was_killed_while_it_came_into_place_is_completed_from_its_journal(data: Path) -> None:
    torn = 0
    for _change in each_kill(data, _load, data):
        if _content(data) not in (BEFORE, AFTER):
            complete(data / "lake")
            torn += 1
            assert _content(data) == AFTER
        _restore(data)

    assert torn > len(AFTER)


def test_a_query_completes_a_load_that_was_killed(data: Path) -> None:
    next(change for change in each_kill(data, _load, data) if (data / "lake" / JOURNAL).exists())

    run_sql(data, "SELECT 1")

    assert _content(data) == AFTER


def test_completing_may_be_killed_too(data: Path) -> None:
    first = next(change for change in each_kill(data, _load, data) if (data / "lake" / JOURNAL).exists())

    for _change in each_kill(data, _other_load, data):
        pass

    assert _content(data) == AFTER
    assert not (data / "lake" / JOURNAL).exists()
    assert first > 0


def test_a_load_that_fails_while_it_comes_into_place_is_completed_by_the_next(data: Path) -> None:
    write_text(data / "lake" / "measurements" / "night=2", "a file where a folder has to be")

    with pytest.raises(OSError, match="night=2"):
        _load(data)
    assert _content(data) not in (BEFORE, AFTER)
    (data / "lake" / "measurements" / "night=2").unlink()
    _other_load(data)

    assert _content(data) == AFTER


def test_a_kill_before_the_first_change_changes_nothing(data: Path) -> None:
    killed_before(0, data, _load, data)

    assert _content(data) == BEFORE
