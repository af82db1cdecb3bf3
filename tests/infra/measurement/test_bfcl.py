"""BFCL's own questions and checker, in the environment of its lock file, against servers that know the answers."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bench.loadgen.drivers.target import LoadTarget
from bench.quality.lm_eval import ENVIRONMENT, Score, read_scores, task_argv
from bench.suite.quality import LmEval
from infra.measurement.lm_eval_venv import BFCL, ensure_harness, ready_harness
from infra.processes.environment import child_environment
from infra.settings import Settings

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1500)]
LIMIT = 6


@pytest.fixture(scope="module")
def answers() -> dict[str, list[dict[str, Any]]]:
    """The calls that each question of BFCL's category `simple_python` asks for, by the question's text."""
    data = next(ensure_harness(BFCL, Settings().cache, print).parent.glob("lib/python*/site-packages/bfcl_eval/data"))
    name = "BFCL_v4_simple_python.json"
    questions, truths = (_lines(data / name), _lines(data / "possible_answer" / name))
    return {
        one["question"][0][0]["content"]: [
            {name: {key: values[0] for key, values in given.items() if "" not in values}}
            for call in truth["ground_truth"]
            for name, given in call.items()
        ]
        for one, truth in zip(questions, truths, strict=True)
    }


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@contextmanager
def serving(answers: dict[str, list[dict[str, Any]]], fault: str) -> Iterator[str]:
    """A server that answers BFCL's questions rightly, or as the fault says."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            calls = answers.get(asked["messages"][-1]["content"], [])
            if (fault == "no tools" and "tools" in asked) or (fault == "breaks" and calls):
                self._say(400 if fault == "no tools" else 500, {"error": {"message": fault}})
                return
            calls = [{"wrong": {}} for _ in calls] if fault == "wrong" else calls
            tools = [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": name.replace(".", "_"), "arguments": json.dumps(given)},
                }
                for call in calls
                for name, given in call.items()
            ]
            message = {"role": "assistant", "content": "[f(x=1)]", "tool_calls": tools if "tools" in asked else None}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            self._say(200, {"id": "1", "object": "chat.completion", "created": 1, "model": asked["model"],
                            "choices": [choice], "usage": usage})  # fmt: skip

        def _say(self, status: int, body: dict[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_said: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def scores(url: str, folder: Path, task: str = "bfcl_simple_python") -> tuple[tuple[Score, ...], str]:
    """The scores of a task, none where it failed, and what it printed."""
    target = LoadTarget(base_url=url, served_model="tiny", model_path=folder, vocab_size=512)
    command = ready_harness(Settings(), task, print)
    argv = task_argv(command, LmEval(tasks=(task,), limit=LIMIT), task, target, 4096, folder / "out" / "results.json")
    done = subprocess.run(argv, env=child_environment(ENVIRONMENT), capture_output=True, text=True, check=False)
    written = list((folder / "out").glob("results_*.json"))
    assert (done.returncode == 0) == bool(written), done.stderr
    return (read_scores(written[0].read_bytes()) if written else (), done.stderr)


@pytest.mark.parametrize(
    ("fault", "metric_filter", "value"), [("", "tools", 1.0), ("wrong", "tools", 0.0), ("no tools", "prompt", 0.0)]
)
def test_a_category_has_the_score_of_its_servers_answers(
    answers: dict[str, list[dict[str, Any]]], tmp_path: Path, fault: str, metric_filter: str, value: float
) -> None:
    with serving(answers, fault) as url:
        (score,), _ = scores(url, tmp_path)

    assert (score.task, score.metric, score.filter, score.value) == (
        "bfcl_simple_python", "accuracy", metric_filter, value,
    )  # fmt: skip
    assert (score.sample_count, score.sample_total, score.is_higher_better) == (LIMIT, len(answers), True)
    assert str(score.harness_version).startswith("bfcl-eval 20")


def test_a_question_without_an_answer_is_no_wrong_answer(
    answers: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    with serving(answers, "breaks") as url:
        found, said = scores(url, tmp_path)

    assert found == ()
    assert f"{LIMIT} of {LIMIT} questions have no answer, the first: InternalServerError: " in said


def test_a_category_that_needs_the_network_is_refused_with_those_that_do_not(tmp_path: Path) -> None:
    found, said = scores("http://127.0.0.1:9", tmp_path, "bfcl_web_search_base")

    assert found == ()
    assert "bfcl_web_search_base is not a category of BFCL that runs offline: bfcl_simple_python, " in said
