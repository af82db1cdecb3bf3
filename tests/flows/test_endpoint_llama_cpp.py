"""A night on a llama-server that somebody else started with an API key: measured, and the key is written nowhere."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.record import RunRecord
from infra.engines.ports import free_port
from infra.models.files import gguf_of
from infra.models.models import prepare_model
from infra.storage import store
from tests.flows.conftest import NightFixture
from tests.flows.real_engine import llama_server
from tests.flows.test_endpoint import KEY, SUITE, run_night
from tests.planted import SECRETS, Watch, found_below, found_in, plant

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("calibrated", "nights_without_prefect")]
CONTEXT = 256  # of each of two slots
TOO_LONG = f"""
[[scenarios]]
name = "too-long"
isl = {2 * CONTEXT}
osl = 4
concurrency = 1
request_count = 10
"""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of two slots that wants the key, which it reads from a file."""
    plant(monkeypatch, KEY)
    model = prepare_model("generated:tiny?seed=0&format=gguf", tmp_path / "models", lambda _line: None)
    (tmp_path / "key").write_text(SECRETS[KEY])
    port = free_port()
    listen = ("--host", "127.0.0.1", "--port", str(port), "--alias", "small", "--metrics", "--no-webui")
    size = ("--ctx-size", str(2 * CONTEXT), "--parallel", "2", "--threads", "1")
    files = ("-m", str(gguf_of(model.path)), "--api-key-file", str(tmp_path / "key"))
    argv = [str(llama_server()), *files, *listen, *size]
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        )
        stack.callback(process.kill)
        assert process.stderr is not None
        assert any("listening on http://" in line for line in process.stderr)
        yield f"http://127.0.0.1:{port}"
        assert process.poll() is None, "it is not ours to stop"


def test_it_is_measured_by_its_key_and_a_prompt_beyond_a_slot_is_refused_in_its_words(
    house: NightFixture, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    house.suite.write_text(SUITE.format(form="tokens", known="vocab_size = 1000") + TOO_LONG)

    with Watch({KEY: SECRETS[KEY]}, house.data) as watch:
        night = run_night(house, url, house.suite)

    paths = sorted(store.night_folder(house.data, night).glob("*/*/record.json"))
    records = {one.asked.name: one for one in (RunRecord.model_validate_json(path.read_bytes()) for path in paths)}
    measured, refused = records["one"], records["too-long"]
    assert (measured.outcome, measured.reason) == ("measured", None)
    assert measured.endpoint is not None
    assert measured.server is not None
    assert (measured.server.engine_version, measured.server.max_model_len) == ("llama.cpp b1-0c1e570", CONTEXT)
    # Its headers promise to keep a connection, and it closes it after each stream: none is used twice.
    assert (measured.endpoint.forms, measured.endpoint.keeps_connections) == (("tokens", "text", "chat"), False)
    (load,) = {path.parent / "load" for path in paths if measured.scenario_id in str(path)}
    rows = [json.loads(line) for line in (load / "requests.jsonl").read_text().splitlines()]
    assert [(row["outcome"], row["reused"]) for row in rows] == [("ok", False)] * (1 + 12)
    assert (refused.outcome, refused.stage) == ("failed", "load-drive")
    assert f"exceeds the available context size ({CONTEXT} tokens)" in str(refused.reason)
    assert '"type":"exceed_context_size_error"' in str(refused.reason)
    assert (found_below(house.data), watch.in_argv) == ({}, set())
    assert found_in("".join(capfd.readouterr()).encode()) == set()
