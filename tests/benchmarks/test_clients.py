"""How each client's own report is read, on twins that tell one story, and what a client is asked to do."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.client_error.calibration import LoadCell
from bench.client_error.truth import read_truth
from benchmarks.clients import CLIENTS, aiperf, bare_loop, guidellm, meter, sglang_bench, vllm_bench, vllm_rs
from benchmarks.clients.client import MEANS, OFFLINE, POOLED, Client, ClientTask, UnreadableError
from infra.loadgen.calibration import server_options
from infra.loadgen.truth.run import build_server, truth_server

DATA = Path(__file__).parents[1] / "data"
# Where each finds its report, and the twin that stands for it.
TWINS = {
    vllm_bench.NAME: ("result.json", "vllm-bench/serve-synthetic.json"),
    vllm_rs.NAME: ("result.json", "vllm-bench/serve-synthetic.json"),
    sglang_bench.NAME: ("result.jsonl", "load-clients/sglang-bench.jsonl"),
    guidellm.NAME: ("result.json", "load-clients/guidellm.json"),
    aiperf.NAME: ("report/profile_export.jsonl", "load-clients/aiperf.jsonl"),
}
PEERS = [client for client in CLIENTS if client.name in TWINS]
CHAT_WORDS = {
    vllm_bench.NAME: "openai-chat",
    vllm_rs.NAME: "openai-chat",
    sglang_bench.NAME: "vllm-chat",
    guidellm.NAME: "request_format=/v1/chat/completions",
    aiperf.NAME: "chat",
}
GAPS = [250.0, 250.0, 500.0, 250.0]
CELL = LoadCell(streams=3, ttft_ms=200, itl_ms=20, output_tokens=100, request_count=9)


@pytest.fixture
def told(tmp_path: Path) -> Callable[[Client], Path]:
    def place(client: Client) -> Path:
        name, twin = TWINS[client.name]
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        shutil.copy(DATA / twin, file)
        return tmp_path

    return place


def named(client: Client) -> str:
    return client.name


@pytest.mark.parametrize("client", PEERS, ids=named)
def test_every_peers_report_tells_the_same_story(client: Client, told: Callable[[Client], Path]) -> None:
    said = client.read(told(client))[client.name]

    assert said.ttft_ms.tolist() == [500.0, 250.0, 500.0]
    assert (said.ok, said.failed, said.output_tokens) == (3, 1, 7)
    assert (said.itl_metric, said.itl_ms.tolist()) == (
        (MEANS, [250.0, 375.0]) if client is guidellm.CLIENT else (POOLED, GAPS)
    )


@pytest.mark.parametrize("client", CLIENTS, ids=named)
def test_a_report_that_is_not_there_is_said(client: Client, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError):
        client.read(tmp_path)


@pytest.mark.parametrize("client", PEERS, ids=named)
def test_a_report_of_another_shape_is_said(client: Client, told: Callable[[Client], Path]) -> None:
    folder = told(client)
    (folder / TWINS[client.name][0]).write_text('{"benchmarks": [{}]}\n')

    with pytest.raises(UnreadableError):
        client.read(folder)


@pytest.mark.parametrize("client", PEERS, ids=named)
def test_a_peer_is_asked_for_the_cell(client: Client, tmp_path: Path) -> None:
    task = ClientTask(CELL, 3, 8123, tmp_path / "tokenizer", tmp_path)

    words = " ".join(client.command(Path("program"), task))

    assert "http://127.0.0.1:8123" in words
    assert all(part in words for part in ("9", "3", "100", "64", str(tmp_path / "tokenizer")))


@pytest.mark.parametrize("client", PEERS, ids=named)
def test_a_chat_is_asked_of_the_chat_endpoint(client: Client) -> None:
    plain, chat = (
        client.command(Path("program"), ClientTask(CELL, 3, 8123, Path("tokenizer"), Path("folder"), is_chat=is_chat))
        for is_chat in (False, True)
    )

    assert not any("chat" in word for word in plain)
    assert any(CHAT_WORDS[client.name] in word for word in chat)


def test_the_meter_asks_a_chat_of_the_chat_endpoint(tmp_path: Path) -> None:
    meter.CLIENT.command(Path(), ClientTask(CELL, 0, 8123, tmp_path, tmp_path, is_chat=True))

    plan = json.loads((tmp_path / "plan.json").read_text())
    assert (plan["path"], plan["prompts"]["form"]) == ("/v1/chat/completions", "chat")


def test_the_meter_is_asked_for_the_cell_and_no_warm_up_where_there_is_to_be_none(tmp_path: Path) -> None:
    meter.CLIENT.command(Path(), ClientTask(CELL, 0, 8123, tmp_path, tmp_path))

    plan = json.loads((tmp_path / "plan.json").read_text())
    assert (plan["url"], plan["warmup_count"], plan["request_count"]) == ("http://127.0.0.1:8123", 0, 9)
    assert plan["load"]["concurrency"] == 3


def test_the_meter_without_kernel_stamps_is_a_plan_with_one_key_changed(tmp_path: Path) -> None:
    plans = []
    for client in (meter.CLIENT, meter.WITHOUT_KERNEL_STAMPS):
        client.command(Path(), ClientTask(CELL, 3, 8123, tmp_path, tmp_path))
        plans.append(json.loads((tmp_path / "plan.json").read_text()))

    assert plans[0]["kernel_stamps"] is True
    assert plans[1] == {**plans[0], "kernel_stamps": False}


def test_a_client_that_refuses_a_folder_when_offline_is_not_told_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OFFLINE:
        monkeypatch.setenv(name, "1")

    assert not OFFLINE.keys() & aiperf.CLIENT.full_environment().keys()
    assert vllm_rs.CLIENT.full_environment().keys() >= OFFLINE.keys()


def test_the_floor_is_a_closed_loop_that_reads_every_token(tmp_path: Path) -> None:
    server, cell = (
        build_server(tmp_path / "cache"),
        LoadCell(4, ttft_ms=20, itl_ms=5, output_tokens=10, request_count=8),
    )
    with truth_server(server, tmp_path / "truth.log", server_options(cell), None) as port:
        task = ClientTask(cell, 4, port, tmp_path, tmp_path)
        subprocess.run(bare_loop.command(bare_loop.install(tmp_path, print), task), check=True, timeout=300)

    said = bare_loop.read(tmp_path)[bare_loop.NAME]
    truth = read_truth((tmp_path / "truth.log").read_bytes())
    assert (said.ok, len(said.ttft_ms)) == (8, 8)
    assert 8 <= len(said.itl_ms) <= 8 * 9  # a read that brings two tokens is one to it
    assert said.ttft_ms.min() >= 20
    assert (len(truth.ids), truth.tokens.sum()) == (12, 120)
    assert truth.arrived_ns[3] < truth.ended_ns.min() < truth.arrived_ns[4]


def test_a_floor_without_times_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="left no times"):
        bare_loop.read(tmp_path)
