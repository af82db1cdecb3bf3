"""The program of one category of BFCL: the Python of bfcl-eval's environment runs it, with lm-eval's command line.

    python bfcl_program.py run --model local-completions --model_args JSON --tasks bfcl_CATEGORY --output_path FILE

The questions, the requests and the checker are bfcl-eval's own; its answers are graded only where every question was
answered. The score is written as lm-eval writes one. Tools are sent as such where the server accepts them, else in the
prompt, and the score's name says which.
"""

import argparse
import importlib
import importlib.metadata
import json
import math
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

PREFIX = "bfcl_"  # of a category of BFCL among a suite's tasks
NAME = "nightbench"  # in BFCL's table of models, which has no other name for a served model
TOOL = {"type": "function", "function": {"name": "now", "description": "the time", "parameters": {"type": "object"}}}


def main(argv: list[str]) -> str | None:
    """Run one category and write its score; a sentence where it has none."""
    parser = argparse.ArgumentParser()
    for name in ("--model", "--model_args", "--tasks", "--output_path"):
        parser.add_argument(name, required=True)
    for name in ("--limit", "--num_fewshot", "--include_path"):
        parser.add_argument(name)
    asked = parser.parse_args(argv[1:])
    server = json.loads(asked.model_args)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BFCL_PROJECT_ROOT"] = folder  # where it keeps its answers
        return _run(asked, server, Path(folder))


def _run(asked: argparse.Namespace, server: dict[str, Any], folder: Path) -> str | None:
    category = asked.tasks.removeprefix(PREFIX)
    categories, utils = _of("constants.category_mapping"), _of("utils")
    known = (*categories.SINGLE_TURN_CATEGORY, *categories.MULTI_TURN_CATEGORY)
    if category not in known:
        offline = ", ".join(PREFIX + name for name in known)
        return f"ValueError: {asked.tasks} is not a category of BFCL that runs offline: {offline}"
    questions = utils.load_dataset_entry(category)
    some = questions[: int(asked.limit)] if asked.limit else questions
    has_tools = _takes_tools(server)
    handler = _handler(server, has_tools=has_tools)
    with ThreadPoolExecutor(server["num_concurrent"]) as pool:
        answers = list(pool.map(partial(_ask, handler), some))
    failed = [answer["error"] for answer in answers if "error" in answer]
    if failed:
        return f"{len(failed)} of {len(answers)} questions have no answer, the first: {failed[0]}"
    table: dict[str, Any] = {}
    grade = _of("eval_checker.eval_runner").evaluate_task
    grade(category, folder, folder / "score", answers, NAME, handler, table, allow_missing=True)
    share = table[NAME][category]["accuracy"]
    _write(asked, "tools" if has_tools else "prompt", share, len(answers), len(questions))
    return None


def _of(module: str) -> Any:
    return importlib.import_module(f"bfcl_eval.{module}")


def _client(server: dict[str, Any]) -> dict[str, str]:
    base = server["base_url"].removesuffix("/completions")
    return {"base_url": base, "api_key": os.environ.get("OPENAI_API_KEY", "none")}


def _takes_tools(server: dict[str, Any]) -> bool:
    """Whether the server answers a request that offers a tool."""
    openai = importlib.import_module("openai")
    client = openai.OpenAI(**_client(server), timeout=server["timeout"], max_retries=0)
    question = [{"role": "user", "content": "What time is it?"}]
    try:
        client.chat.completions.create(model=server["model"], messages=question, tools=[TOOL], max_tokens=8)
    except (openai.BadRequestError, openai.NotFoundError, openai.UnprocessableEntityError):
        return False
    return True


def _handler(server: dict[str, Any], *, has_tools: bool) -> Any:
    """BFCL's own handler of servers with OpenAI's API, for the served model, which is added to its table of models."""
    config, kind = _of("constants.model_config"), _of("model_handler.api_inference.openai_completion")
    for name, value in _client(server).items():
        os.environ[f"OPENAI_{name.upper()}"] = value
    config.MODEL_CONFIG_MAPPING[NAME] = config.ModelConfig(
        model_name=server["model"], display_name=NAME, url="", org="", license="",
        model_handler=kind.OpenAICompletionsHandler, input_price=None, output_price=None,
        is_fc_model=has_tools, underscore_to_dot=has_tools,
    )  # fmt: skip
    handler = kind.OpenAICompletionsHandler(server["model"], 0.001, NAME, has_tools)
    handler.client = handler.client.with_options(timeout=server["timeout"], max_retries=0)
    return handler


def _ask(handler: Any, question: dict[str, Any]) -> dict[str, Any]:
    """BFCL's record of an answer; with `error`, of none."""
    try:
        result, details = handler.inference(question, False, True)
    except Exception as error:  # noqa: BLE001 - whatever the server or BFCL raises: the question has no answer
        return {"id": question["id"], "error": f"{type(error).__name__}: {error}"}
    return {"id": question["id"], "result": result, **details}


def _write(asked: argparse.Namespace, mode: str, share: float, count: int, total: int) -> None:
    """Write the score where and as lm-eval would; its standard error is that of a share of so many questions."""
    error = math.sqrt(share * (1 - share) / (count - 1)) if count > 1 else None
    task, metric = asked.tasks, f"accuracy,{mode}"
    document = {
        "results": {task: {metric: share, f"accuracy_stderr,{mode}": error}},
        "versions": {task: _of("constants.category_mapping").VERSION_PREFIX},
        "n-samples": {task: {"effective": count, "original": total}},
        "higher_is_better": {task: {"accuracy": True}},
        "lm_eval_version": f"bfcl-eval {importlib.metadata.version('bfcl-eval')}",
    }
    result = Path(asked.output_path)
    result.parent.mkdir(parents=True, exist_ok=True)
    result.with_name(f"{result.stem}_{time.strftime('%Y-%m-%dT%H-%M-%S')}.json").write_text(json.dumps(document))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
