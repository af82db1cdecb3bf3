"""An engine is asked once for its flags, and a flag that it does not list starts no server."""

from pathlib import Path

import pytest

from bench.engines import llama_cpp
from bench.errors import ServerStartError
from infra.engines.known_flags import require_known_flags

RECORDED = Path(__file__).parents[2] / "data" / "engine-help" / "llama-server-0.5.0-dev.txt"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A script that prints what the real server printed, and writes down each call."""
    script = tmp_path / "llama-server"
    script.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\nexec cat "{RECORDED}"\n')
    script.chmod(0o755)
    return script


def test_an_unknown_flag_is_refused_with_the_nearest_and_the_engine_is_asked_once(server: Path) -> None:
    require_known_flags(llama_cpp, server, ("--threads", "2"))
    with pytest.raises(ServerStartError) as error:
        require_known_flags(llama_cpp, server, ("--thread", "2", "--parallell", "4"))

    assert "--parallell is not a flag of this engine: did you mean --parallel" in str(error.value)
    assert error.value.failure == "bad_configuration"
    assert server.with_name("calls").read_text() == "--help\n"


def test_an_engine_that_prints_no_help_is_asked_again_and_refuses_nothing_here(server: Path) -> None:
    text = server.read_text()
    server.write_text("#!/bin/sh\nexit 1\n")
    require_known_flags(llama_cpp, server, ("--no-such",))

    server.write_text(text)
    with pytest.raises(ServerStartError, match="--no-such is not a flag of this engine"):
        require_known_flags(llama_cpp, server, ("--no-such",))
