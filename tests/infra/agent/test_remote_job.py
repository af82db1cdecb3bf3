"""What a machine answers and logs, as far as it can be made up there."""

import json

import pytest

from bench.errors import LoadDriverError, RemoteJobCrashedError, UnexpectedError, unexpected
from infra.agent import operations, remote_job
from infra.reporting import Reporter

ESCAPES = "\x1b[2J\x1b]0;mine\x07\rtext\x1b[31m"
SHOWN = "]0;minetext"


@pytest.mark.parametrize(
    "line", [ESCAPES, json.dumps({"say": ESCAPES}), json.dumps({"progress": ESCAPES}), json.dumps([ESCAPES])]
)
def test_a_logged_line_cannot_change_the_terminal(line: str) -> None:
    said: list[str] = []

    remote_job.read_line(line, Reporter(said.append))

    assert "mine" in said[0]
    assert not set(said[0]) & {"\x1b", "\x07", "\r"}


def test_an_answered_value_and_error_cannot_change_the_terminal() -> None:
    fitness = {"value": ESCAPES}
    error = json.loads(remote_job.write_answer(operations.check_machine, LoadDriverError("it"))) | {"said": ESCAPES}

    with pytest.raises(LoadDriverError) as caught:
        remote_job.read_answer(operations.check_machine, json.dumps(error).encode(), "m")
    with pytest.raises(RemoteJobCrashedError) as crashed:
        remote_job.read_answer(operations.check_machine, json.dumps({"crashed": ESCAPES}).encode(), "m")

    assert str(caught.value) == SHOWN
    assert str(crashed.value) == f"check_machine crashed on m: {SHOWN}"
    path = remote_job.read_answer(operations.mount_volume, json.dumps(fitness).encode(), "m")
    assert str(path) == SHOWN


def test_an_error_keeps_its_traceback_on_its_way() -> None:
    error = unexpected(KeyError("data"))

    with pytest.raises(UnexpectedError) as caught:
        remote_job.read_answer(operations.measure, remote_job.write_answer(operations.measure, error), "m")

    assert (caught.value.trace, str(caught.value)) == (error.trace, str(error))
    assert "KeyError" in (error.trace or "")


def test_an_answer_nested_without_end_is_refused() -> None:
    with pytest.raises(RemoteJobCrashedError, match="cannot be read"):
        remote_job.read_answer(operations.is_serving, b"[" * 100_000, "m")


def test_only_a_download_gets_the_hubs_token_and_only_what_starts_an_engine_its_secrets() -> None:
    secrets = {name: one.secrets for name, one in operations.OPERATIONS.items() if one.secrets}

    offline = {"measure": "offline", "join_command": "offline"}
    assert secrets == {"prepare": "hub", "ready_lm_eval": "hub", "bring_up": "engine", "profile": "engine"} | offline
