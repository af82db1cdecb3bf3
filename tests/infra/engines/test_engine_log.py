"""An engine's log as text: from a byte on, and without colours."""

from pathlib import Path

from infra.engines.engine_log import read_log


def test_a_log_is_read_without_the_colours_that_some_releases_of_vllm_write(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("earlier\n\x1b[1;36m(Worker_TP0 pid=7)\x1b[0;0m ERROR it ended\n")

    assert read_log(log, len("earlier\n")) == "(Worker_TP0 pid=7) ERROR it ended\n"
