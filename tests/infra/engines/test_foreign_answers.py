"""Whatever a server answers, each reader of it returns a value or raises an error of ours."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.engines.by_name import ENGINES, sample
from bench.errors import NightbenchError, ServerDiedError, ServerStartError
from bench.foreign_json import parse
from bench.quality.answers import read_greedy, read_logprobs
from bench.suite.endpoint import Endpoint
from infra.engines import server_facts
from infra.engines.attached import Attached
from infra.engines.endpoint import NOT_OURS, AttachRequest, attach
from infra.engines.http_client import Origin
from infra.engines.registry import resolve_tag
from infra.engines.server import RunningServer, is_serving
from infra.measurement.answers import ask
from meter import sse
from meter.head import between, retry_after_s
from tests.emulators.strange_server import strange_server, whole
from tests.emulators.virtual_clock import VirtualClock
from tests.meter.test_framing import HEAD, in_chunks, receive

KEYS = (
    *("data", "id", "max_model_len", "version", "max_total_num_tokens", "default_generation_settings", "n_ctx"),
    *("build_info", "choices", "prompt_token_ids", "prompt_logprobs", "logprob", "token_ids", "text", "delta"),
    *("usage", "metrics", "finish_reason", "stop_reason", "completion_tokens", "error", "errors", "code", "0", "1"),
    *("manifests", "platform", "os", "architecture", "digest", "config", "Labels", "token", "result", "failed"),
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["\ud800", "linux"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
DEEP = st.sampled_from(
    [b"[" * 100_000, b'{"data":' * 100_000, b'{"data":[{"id":"small","max_model_len":' + b"9" * 5000]
)
MODELS = st.builds(lambda data: {"data": data}, VALUES | st.lists(VALUES, max_size=2))
ANSWERS = st.builds(lambda value: json.dumps(value).encode(), VALUES | MODELS) | st.binary(max_size=40) | DEEP


@pytest.mark.parametrize("data", [{"a": 1}, ["x"], [{"id": 5}], {}, None, [[]]], ids=str)
def test_a_list_of_models_in_a_foreign_shape_is_no_list_of_models(data: object, tmp_path: Path) -> None:
    text = json.dumps({"data": data}).encode()

    with (
        strange_server(lambda _request: [whole(text)]) as url,
        pytest.raises(ServerStartError, match="no list of models with an id"),
    ):
        attach(AttachRequest(url, Endpoint(), "small", ("tokens",), tmp_path / "log"), lambda _line: None)


@pytest.mark.parametrize("data", [{"a": 1}, ["x"], [{"id": 5}], {}, None, [[]]], ids=str)
def test_facts_in_a_foreign_shape_are_unknown(data: object, tmp_path: Path) -> None:
    text = json.dumps({"data": data}).encode()

    with strange_server(lambda _request: [whole(text)]) as url:
        found = server_facts.look(server_at(url, tmp_path))

    assert (found.served_model, found.max_model_len, found.engine_version) == (None, None, None)


@pytest.mark.parametrize("page", ["/v1/models", "/metrics"])
def test_a_page_of_facts_that_ends_early_is_a_server_that_does_not_respond(page: str, tmp_path: Path) -> None:
    def answer(request: bytes) -> list[bytes]:
        text = whole(b'{"data": []}')
        return [text[:-5]] if page.encode() in request else [text]

    with strange_server(answer) as url, pytest.raises(ServerDiedError, match=f"does not respond to {page}"):
        server_facts.look(server_at(url, tmp_path))


def server_at(url: str, folder: Path) -> RunningServer:
    log = folder / "server.log"
    log.touch()
    attached = Attached(Origin(url), "/health", True, {}, None)  # type: ignore[arg-type]  # nothing reads the facts here
    return RunningServer(None, 0, None, log, (), {}, NOT_OURS, None, attached=attached)


def only_ours(read: Callable[[], object], *also: type[Exception]) -> None:
    with suppress(NightbenchError, *also):
        read()


@settings(deadline=None, max_examples=60)
@given(body=ANSWERS, status=st.sampled_from([200, 200, 200, 404, 500]))
def test_any_answer_of_a_server_is_read_or_is_an_error_of_ours(
    body: bytes, status: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    with strange_server(lambda _request: [whole(body, status)]) as url:
        server = server_at(url, folder)
        only_ours(lambda: attach(AttachRequest(url, Endpoint(), "small", ("tokens",), folder / "log"), lambda _: None))
        only_ours(lambda: server_facts.look(server).model_dump_json())
        assert is_serving(server) == (status == 200)
        assert ask(server, "small").lacking
        only_ours(lambda: resolve_tag(f"{url.removeprefix('http://')}/team/image:1", VirtualClock(folder / "clock")))


@settings(deadline=None)
@given(raw=st.binary(max_size=60) | st.builds(lambda tail: b"HTTP/1.1 200 OK\r\n" + tail, st.binary(max_size=60)))
def test_any_bytes_in_place_of_http_are_no_answer_or_one(raw: bytes) -> None:
    with strange_server(lambda _request: [raw]) as url:
        only_ours(lambda: Origin(url).ask("GET", "/v1/models", None, 30.0), OSError)


@settings(deadline=None)
@given(text=st.text() | st.builds(lambda value: f"vllm:num_requests_running {value}\n", st.text(max_size=9)))
def test_any_page_of_counters_is_read(text: str) -> None:
    for engine in ENGINES.values():
        sample(engine, text)


@settings(deadline=None)
@given(body=ANSWERS)
def test_any_body_of_a_completion_has_answers_or_an_error_of_ours(body: bytes) -> None:
    for read in (read_greedy, read_logprobs):
        only_ours(lambda read=read: read(body.decode(errors="replace")))  # type: ignore[misc]  # the reader of this round


@settings(deadline=None)
@given(events=st.lists(ANSWERS | st.builds(lambda one: json.dumps({"choices": [one]}).encode(), VALUES), max_size=3))
def test_any_stream_is_an_answer_whose_parts_can_be_written_down(events: list[bytes]) -> None:
    stream = b"".join(b"data: %b\n\n" % one.replace(b"\n", b"") for one in events)

    answer = sse.read_answer(receive(HEAD + in_chunks(stream, 400), []))

    said = (answer.response_id, answer.usage, answer.finish_reason, answer.stop_reason, answer.server_metrics)
    json.dumps([*said, answer.output_sha256, answer.cached_tokens])


@settings(deadline=None)
@given(head=st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date", "via"]), st.text(max_size=9)))
def test_any_headers_are_read(head: dict[str, str]) -> None:
    retry_after_s(head)
    between(head)


def test_json_that_is_nested_too_deeply_is_no_json() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse(b"[" * 100_000)
