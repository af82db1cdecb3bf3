"""Two servers behind a router: the real program between servers of known times, one of which computes the prompts."""

import asyncio
import http.client
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import psutil
import pytest

from bench.engines import vllm
from bench.errors import ServerStartError
from bench.suite.engine import Disaggregated, Engine
from infra.engines import server, server_facts
from infra.engines.launch import ServerRequest
from infra.engines.server import RunningServer
from infra.processes import detached
from tests.infra.engines.test_server import quiet, what

__all__ = ["what"]
PATIENCE_S = 120.0
PROMPT = list(range(100, 140))  # two blocks of 16 and a rest
SPLIT = Disaggregated(prefill_flags=("--max-num-seqs", "4"), decode_flags=("--max-num-seqs", "64"))


def _request(what: ServerRequest, split: Disaggregated = SPLIT, **environment: str) -> ServerRequest:
    own = {"TRUTH_TTFT_MS": "60", "TRUTH_ITL_MS": "20", **environment}
    engine = Engine(version="0.32.0", max_model_len=4096, environment=own, disaggregated=split)
    return replace(what, scenario=what.scenario.model_copy(update={"engine": engine}))


@pytest.fixture
def running(what: ServerRequest) -> Iterator[RunningServer]:
    found = server.bring_up(_request(what), quiet)
    yield found
    server.stop(found)
    assert detached.marked(what.lease_id) == []


def _complete(running: RunningServer, **body: object) -> tuple[int, str]:
    asked = {"model": "small", "prompt": PROMPT, "max_tokens": 8, "stream": True} | body
    return server.ask(running, "POST", "/v1/completions", json.dumps(asked))


def _counters(running: RunningServer) -> dict[str, float]:
    return vllm.counters(server.metrics(running))


def _until(is_so: Callable[[], bool]) -> None:
    """Wait until it is so; however busy this computer is, it becomes so within the patience."""
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_one_server_computes_the_prompt_and_the_other_one_the_answer(running: RunningServer) -> None:
    before = _counters(running)

    status, text = _complete(running)

    after = _counters(running)
    moved = {name: after[name] - before[name] for name in after}
    assert status == http.client.OK
    assert text.count('"text"') == 8
    assert text.rstrip().endswith("data: [DONE]")
    # The prefill server reads the prompt and writes one token, which is not used.
    assert (moved["prefill_prompt_tokens_total"], moved["prefill_generation_tokens_total"]) == (40.0, 1.0)
    assert (moved["prompt_tokens_total"], moved["generation_tokens_total"]) == (40.0, 8.0)
    assert moved["external_prefix_cache_hits_total"] == 32.0  # whole blocks
    assert moved["router_requests_total"] == moved["router_prefill_seconds_count"] == 1.0
    assert moved["router_handover_seconds_count"] == 1.0
    # A first token takes 60 ms where the prompt is computed, and 20 ms where its blocks are received.
    assert moved["router_prefill_seconds_sum"] >= 0.06
    assert moved["router_handover_seconds_sum"] >= 0.02


def test_a_chat_and_an_answer_that_is_not_streamed_take_the_same_way(running: RunningServer) -> None:
    messages = [{"role": "user", "content": "one two three"}]
    asked = {"model": "small", "messages": messages, "max_completion_tokens": 4}

    status, text = server.ask(running, "POST", "/v1/chat/completions", json.dumps(asked))

    assert status == http.client.OK
    assert json.loads(text)["usage"]["completion_tokens"] == 4
    assert _counters(running)["prefill_generation_tokens_total"] == 2.0  # and the first answer of the start


def test_a_prompt_that_is_echoed_is_computed_by_the_server_that_answers(running: RunningServer) -> None:
    before = _counters(running)["prefill_prompt_tokens_total"]

    assert _complete(running, stream=False, echo=True)[0] == http.client.OK
    assert _counters(running)["prefill_prompt_tokens_total"] == before


def test_log_probabilities_of_a_prompt_are_those_of_the_server_that_answers(running: RunningServer) -> None:
    before = _counters(running)["prefill_prompt_tokens_total"]

    status, text = _complete(running, stream=False, prompt_logprobs=1)

    assert status == http.client.OK
    assert json.loads(text)["choices"][0]["prompt_logprobs"]
    assert _counters(running)["prefill_prompt_tokens_total"] == before


def test_a_request_that_is_refused_never_reaches_the_decode_server(running: RunningServer) -> None:
    before = _counters(running)

    status, text = _complete(running, model="another")

    assert (status, "does not exist" in text) == (http.client.NOT_FOUND, True)
    assert _counters(running)["router_requests_total"] == before["router_requests_total"]


def test_the_facts_name_both_command_lines_and_each_has_its_flags(running: RunningServer) -> None:
    facts = server_facts.look(running)

    assert facts.served_model == "small"
    assert facts.kv_cache_tokens == 524288
    for argv, slots, role in ((facts.prefill_argv, "4", "kv_producer"), (facts.argv, "64", "kv_consumer")):
        assert argv[argv.index("--max-num-seqs") + 1] == slots
        transfer = json.loads(argv[argv.index("--kv-transfer-config") + 1])
        assert transfer == {"kv_connector": "NixlConnector", "kv_role": role}


def test_requests_at_either_server_are_in_flight(what: ServerRequest) -> None:
    slow = server.bring_up(_request(what, TRUTH_TTFT_MS="3000"), quiet)

    async def look() -> None:
        asked = asyncio.create_task(asyncio.to_thread(_complete, slow))
        # First of all its prompt is computed, for three seconds.
        await asyncio.to_thread(_until, lambda: _counters(slow)["num_requests_running"] == 1.0)
        await asked

    asyncio.run(look())
    server.stop(slow)


def test_a_client_that_leaves_is_freed_by_the_decode_server(running: RunningServer) -> None:
    client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
    client.request(
        "POST", "/v1/completions", json.dumps({"model": "small", "prompt": PROMPT, "max_tokens": 500, "stream": True})
    )
    client.getresponse().read(1)
    client.close()

    _until(lambda: _counters(running)["num_requests_running"] == 0)
    assert _counters(running)["generation_tokens_total"] < 400


@pytest.mark.parametrize("which", ["prefill_argv", "argv"])
def test_a_server_that_dies_ends_the_whole_engine(running: RunningServer, which: str) -> None:
    argv = getattr(running, which)
    port = argv[argv.index("--port") + 1]
    for process in detached.members(running.pid or 0):
        if (
            "serve" in process.cmdline()
            and port in process.cmdline()
            and "disaggregated_program" not in str(process.cmdline())
        ):
            os.kill(process.pid, signal.SIGKILL)

    _until(lambda: not server.is_alive(running))
    assert not server.is_serving(running)
    name = "prefill" if which == "prefill_argv" else "decode"
    assert f"the {name} server exited with status" in running.log.read_text()


def test_why_the_prefill_server_cannot_start_is_quoted(what: ServerRequest) -> None:
    begin = what.engine.executable.read_text().splitlines()
    begin.insert(1, 'case "$*" in *kv_producer*) export TRUTH_FAULT=oom_at_start;; esac')
    what.engine.executable.write_text("\n".join(begin))

    with pytest.raises(ServerStartError, match=r"larger than the available KV cache memory .*oom_kv_len"):
        server.bring_up(_request(what), quiet)

    assert detached.marked(what.lease_id) == []


def test_each_server_sees_its_own_gpus(what: ServerRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3,5")  # of this process
    split = Disaggregated(decode_flags=("--tensor-parallel-size", "2"))

    running = server.bring_up(_request(what, split), quiet)

    seen = {}
    for process in detached.members(running.pid or 0):
        with_role = [word for word in process.cmdline() if word.startswith('{"kv_connector')]
        if with_role:
            seen[json.loads(with_role[0])["kv_role"]] = process.environ()
    assert {role: found["CUDA_VISIBLE_DEVICES"] for role, found in seen.items()} == {
        "kv_producer": "2",
        "kv_consumer": "3,5",
    }
    assert len({found["VLLM_NIXL_SIDE_CHANNEL_PORT"] for found in seen.values()}) == 2
    server.stop(running)
    assert not psutil.pid_exists(running.pid or 0)


def test_fewer_visible_gpus_than_both_servers_have_ranks_are_named(
    what: ServerRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")

    with pytest.raises(ServerStartError, match="need 2 GPUs, and CUDA_VISIBLE_DEVICES=2 shows fewer: name 2 there"):
        server.bring_up(_request(what), quiet)

    assert detached.marked(what.lease_id) == []
