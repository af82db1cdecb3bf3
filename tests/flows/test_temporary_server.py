"""Prefect's temporary server, started while a night's imports run."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, PREFECT_SERVER_EPHEMERAL_ENABLED, temporary_settings

from flows.temporary_server import DATABASE, temporary_server
from tests.flows.serving import migrated, refuses_others

pytestmark = pytest.mark.prefect


def test_a_night_that_is_stopped_while_it_imports_does_not_wait_for_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.server.api.server import SubprocessASGIServer  # noqa: PLC0415 - 3 s in every worker

    started: list[subprocess.Popen[bytes]] = []

    def stop() -> None:
        server = SubprocessASGIServer()  # the only one of this process
        while server.server_process is None:
            pass
        started.append(server.server_process)
        raise KeyboardInterrupt

    monkeypatch.setattr("flows.temporary_server.great_expectations", stop)
    settings = {PREFECT_API_URL: None, PREFECT_HOME: tmp_path, PREFECT_SERVER_EPHEMERAL_ENABLED: True}
    with temporary_settings(settings), pytest.raises(KeyboardInterrupt), temporary_server():
        pass

    assert [process.poll() is None for process in started] == [False]


@flow
def nothing() -> None:
    """A flow whose run is created and not started."""


def blocks_interrupts(pid: int) -> bool:
    (blocked,) = re.findall(r"^SigBlk:\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(blocked, 16) & 1 << signal.SIGINT - 1)


def test_the_temporary_server_answers_its_own_night_and_nobody_else(tmp_path: Path, shared: Path | None) -> None:
    from prefect.server.api.server import SubprocessASGIServer  # noqa: PLC0415 - 3 s in every worker

    migrated(tmp_path, shared, DATABASE)
    settings = {PREFECT_API_URL: None, PREFECT_HOME: tmp_path, PREFECT_SERVER_EPHEMERAL_ENABLED: True}
    with temporary_settings(settings), temporary_server(), get_client(sync_client=True) as client:
        url = str(client.api_url).rstrip("/")
        try:
            refuses_others(url)
            process = SubprocessASGIServer().server_process
            assert process is not None
            assert blocks_interrupts(process.pid)  # else Ctrl-C would end it before its night
            assert not blocks_interrupts(os.getpid())
            client.set_flow_run_name(client.create_flow_run(nothing).id, "mine")
            assert (tmp_path / DATABASE).is_file()
            assert not (tmp_path / "prefect.db").exists()  # that of a service of this profile, which would list it
        finally:
            SubprocessASGIServer().stop()  # else at the end of all tests
