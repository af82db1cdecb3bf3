import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import SuiteError, UnreadableResultError
from bench.loadgen.drivers.target import LoadTarget
from bench.quality.lm_eval import EarlierScore, fall_se, read_scores, standard_error, task_argv, why_not
from bench.suite.parse import parse_suite
from bench.suite.quality import LmEval

RESULTS = Path(__file__).parents[2] / "data" / "lm-eval" / "results-0.4.13.json"
ROOT = Path(__file__).parents[3]
TARGET = LoadTarget("http://127.0.0.1:8000", "small", Path("/models/small"), 512)
NO_DATA = """Traceback (most recent call last):
  File "load.py", line 1125, in dataset_module_factory
    raise ConnectionError(f"Couldn't reach '{path}' on the Hub ({e.__class__.__name__})") from e
ConnectionError: Couldn't reach 'openai/gsm8k' on the Hub (OfflineModeIsEnabled)
"""
NO_FILE = "FileNotFoundError: Unable to find '/tasks/colours.jsonl'\n"
NO_SERVER = "aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host 127.0.0.1:8000 ssl:default\n"
REFUSED = "requests.exceptions.ConnectionError: HTTPConnectionPool(host='127.0.0.1', port=8000): Max retries exceeded\n"
NO_TASK = "ValueError: Tasks not found: nosuch\n"


def results(**changes: Any) -> bytes:
    return json.dumps(json.loads(RESULTS.read_bytes()) | changes).encode()


def test_each_metric_is_a_score_with_what_it_was_asked_of() -> None:
    found = {(score.task, score.metric): score for score in read_scores(RESULTS.read_bytes())}

    assert list(found) == [
        ("nightbench_colours", "acc"),
        ("nightbench_colours", "acc_norm"),
        ("nightbench_counting", "exact_match"),
    ]
    acc = found["nightbench_colours", "acc"]
    assert (acc.value, acc.stderr, acc.filter, acc.is_higher_better) == (0.2, 0.2, "none", True)
    assert (acc.task_version, acc.harness_version, acc.few_shot) == ("1.0", "0.4.13", 0)
    assert (acc.sample_count, acc.sample_total) == (5, 6)


def test_a_standard_error_that_the_harness_lacks_is_missing() -> None:
    (score,) = read_scores(
        results(results={"wiki": {"word_perplexity,none": 12.5, "word_perplexity_stderr,none": "N/A"}})
    )

    assert (score.value, score.stderr, score.task_version, score.sample_count) == (12.5, None, None, None)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"results": 1}',
        b'{"results": {"a": 1}}',
        b'{"results": {}}',
        b'{"results": {"a": {"x": 1}}}',
    ],
)
def test_what_holds_no_score_is_refused(text: bytes) -> None:
    with pytest.raises(UnreadableResultError):
        read_scores(text)


def test_the_harness_asks_the_running_server_by_the_servers_own_tokenizer() -> None:
    asked = LmEval(tasks=("gsm8k",), limit=50, few_shot=5, folder="/tasks", concurrency=4)

    argv = task_argv(("/env/lm-eval",), asked, "gsm8k", TARGET, 4096, Path("/out/results.json"))

    assert argv[:5] == ("/env/lm-eval", "run", "--model", "local-completions", "--model_args")
    told = json.loads(argv[5])
    assert told["base_url"] == "http://127.0.0.1:8000/v1/completions"
    assert (told["model"], told["tokenizer"], told["max_length"]) == ("small", "/models/small", 4096)
    assert told["num_concurrent"] == 4
    options = dict(zip(argv[6::2], argv[7::2], strict=True))
    assert options == {
        "--tasks": "gsm8k",
        "--limit": "50",
        "--num_fewshot": "5",
        "--include_path": "/tasks",
        "--output_path": "/out/results.json",
    }


def test_what_a_suite_leaves_open_is_left_to_the_harness() -> None:
    argv = task_argv(("lm-eval",), LmEval(tasks=("gsm8k",)), "gsm8k", TARGET, 4096, Path("out.json"))

    assert not {"--limit", "--num_fewshot", "--include_path"} & set(argv)


@pytest.mark.parametrize(
    ("log", "is_data"),
    [(NO_DATA, True), (NO_FILE, True), (NO_SERVER, False), (REFUSED, False), (NO_TASK, False), ("", False)],
)
def test_missing_data_is_told_from_other_trouble(log: str, *, is_data: bool) -> None:
    found, why = why_not(log, 1)

    assert found is is_data
    assert why.startswith("exit code 1: ")
    assert (log.splitlines() or ["its log is empty"])[-1] in why


def test_a_fall_is_told_in_standard_errors_of_both() -> None:
    earlier = [EarlierScore(0.7, 0.03), EarlierScore(0.72, 0.03), EarlierScore(0.3, 0.03)]

    assert fall_se(0.6, 0.04, earlier, is_higher_better=True) == pytest.approx(2.0)
    assert fall_se(0.6, 0.04, earlier, is_higher_better=False) == pytest.approx(-2.0)
    assert fall_se(0.6, 0.04, [], is_higher_better=True) is None


def test_all_right_and_all_wrong_are_not_certain() -> None:
    assert standard_error(0.0, 0.0, 6) == pytest.approx(0.1265, abs=1e-4)
    assert standard_error(1.0, 0.0, 6) == pytest.approx(standard_error(0.0, 0.0, 6))
    assert standard_error(0.5, 0.1, 6) == 0.1
    assert standard_error(0.5, None, 6) is None
    assert standard_error(12.5, 0.0, 6) is None
    assert standard_error(0.0, 0.0, None) is None


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("tasks = []", "at least 1 item"),
        ('tasks = ["a", "a"]', "a task is listed twice"),
        ('tasks = ["a b"]', "quality.lm_eval.tasks.0"),
        ('tasks = ["a"]\nfolder = "tasks"', "quality.lm_eval.folder"),
        ('tasks = ["a"]\nlimits = 5', "did you mean 'limit'"),
    ],
)
def test_a_mistake_in_a_suite_is_named(keys: str, said: str) -> None:
    text = (ROOT / "suites" / "local.toml").read_text() + f"\n[quality.lm_eval]\n{keys}\n"

    with pytest.raises(SuiteError, match=said.replace("?", r"\?")):
        parse_suite(text, "suite.toml")


def test_asking_for_tasks_leaves_every_scenario_what_it_was() -> None:
    text = (ROOT / "suites" / "local.toml").read_text()

    plain, asking = (parse_suite(more, "s") for more in (text, text + '\n[quality.lm_eval]\ntasks = ["gsm8k"]\n'))

    assert [s.scenario_id for s in plain.expand()] == [s.scenario_id for s in asking.expand()]
    assert asking.quality.lm_eval == LmEval(tasks=("gsm8k",))
