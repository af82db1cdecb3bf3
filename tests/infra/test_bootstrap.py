"""What the settings name is built once."""

from pathlib import Path

from flows.machines import AT_ONCE, MACHINES_MAX
from infra.bootstrap import _remote_executor
from infra.remote.host import Access


def test_every_machine_of_a_night_keeps_its_executor(tmp_path: Path) -> None:
    def executors() -> list[object]:
        return [
            _remote_executor(
                Access(f"10.0.0.{number}", 22, "root", tmp_path / "key", "key"),
                (f"{number}", "night", tmp_path, None),
                1.0,
            )
            for number in range(AT_ONCE * MACHINES_MAX)
        ]

    first = executors()

    assert [id(one) for one in executors()] == [id(one) for one in first]
