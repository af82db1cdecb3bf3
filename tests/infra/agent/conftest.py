from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulators.sshd import Sshd, make_key, running_machine
from tests.infra.agent.far import NO_ENGINE, installers


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    path = tmp_path_factory.mktemp("keys") / "client"
    return path, make_key(path)


@pytest.fixture
def sshd(tmp_path: Path, keys: tuple[Path, str]) -> Iterator[Sshd]:
    with running_machine(tmp_path / "far", keys[1], environment=installers() | dict([NO_ENGINE])) as machine:
        yield machine
