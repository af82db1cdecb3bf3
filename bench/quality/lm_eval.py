"""EleutherAI's lm-evaluation-harness: its command line, its results, and how far a score has fallen.

Each task runs in a process of its own, so that a task whose data is missing does not end the others.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.errors import UnreadableResultError
from bench.loadgen.drivers.target import LoadTarget
from bench.suite.quality import LmEval

# Nothing is downloaded while a machine is billed, and no third-party code of a data set may run.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_EVALUATE_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
REQUEST_TIMEOUT_S = 300
# What the library `datasets` prints if a data set is not in its cache, or a file of a task is missing.
_NO_DATA = re.compile(
    r"OfflineModeIsEnabled|offline mode|Couldn't (reach|find)|Unable to find|FileNotFoundError|DatasetNot"
)
_LAST_CHARS = 300


@dataclass(frozen=True)
class Score:
    """One metric of one task, as the harness reports it.

    `value` is in the metric's own unit, for most a share. `stderr` is None if the harness reports none. The task has
    `sample_total` questions, of which `sample_count` were used.
    """

    task: str
    task_version: str | None
    metric: str
    filter: str
    value: float
    stderr: float | None
    is_higher_better: bool | None
    sample_count: int | None
    sample_total: int | None
    few_shot: int | None
    harness_version: str | None


def task_argv(
    command: Sequence[str], asked: LmEval, task: str, target: LoadTarget, max_length: int, result: Path
) -> tuple[str, ...]:
    """Return the harness's command line for one task. It inserts a time stamp before the suffix of `result`."""
    model = {
        "model": target.served_model,
        "base_url": f"{target.base_url}/v1/completions",
        "tokenizer_backend": "huggingface",
        "tokenizer": str(target.model_path),  # the server's own, so that both count the same tokens
        "max_length": max_length,
        "num_concurrent": asked.concurrency,
        "max_retries": 1,  # a second try would hide an answer that failed
        "timeout": REQUEST_TIMEOUT_S,
    }
    options: list[str] = []
    for name, value in (("limit", asked.limit), ("num_fewshot", asked.few_shot), ("include_path", asked.folder)):
        options += [] if value is None else [f"--{name}", str(value)]
    model_args = json.dumps(model, separators=(",", ":"))
    argv = (
        *command,
        "run",
        "--model",
        "local-completions",
        "--model_args",
        model_args,
        "--tasks",
        task,
        *options,
    )
    return (*argv, "--output_path", str(result))


def why_not(log: str, exit_code: int) -> tuple[bool, str]:
    """Return whether the data of a task was missing, and the last error in the harness's log."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if re.match(r"[\w.]*(?:Error|Exception)\b", line)), None)
    said = last or (lines[-1] if lines else "its log is empty")
    return _NO_DATA.search(said) is not None, f"exit code {exit_code}: {said[:_LAST_CHARS]}"


def read_scores(text: bytes) -> tuple[Score, ...]:
    """Return every score of a results file; raises UnreadableResultError if it is not such a file or has no score."""
    try:
        document = json.loads(text)
        found = tuple(_scores(document))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UnreadableResultError(f"not a results file of lm-eval ({error!r})") from error
    if not found:
        raise UnreadableResultError("lm-eval returned no score")
    return found


def _scores(document: dict[str, Any]) -> Iterator[Score]:
    for task, values in document["results"].items():
        version, count = document.get("versions", {}).get(task), document.get("n-samples", {}).get(task, {})
        better = document.get("higher_is_better", {}).get(task, {})
        for key, value in values.items():
            metric, comma, filtered = key.partition(",")
            if not comma or metric.endswith("_stderr") or not _is_number(value):
                continue
            stderr = values.get(f"{metric}_stderr,{filtered}")
            yield Score(
                task=task,
                task_version=None if version is None else str(version),
                metric=metric,
                filter=filtered,
                value=float(value),
                stderr=float(stderr) if _is_number(stderr) else None,
                is_higher_better=better.get(metric),
                sample_count=count.get("effective"),
                sample_total=count.get("original"),
                few_shot=document.get("n-shot", {}).get(task),
                harness_version=document.get("lm_eval_version"),
            )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def standard_error(value: float, stderr: float | None, count: int | None) -> float | None:
    """Return the standard error of a score, or None if it cannot be computed.

    The harness reports 0 for a share of exactly 0 or 1. For these, two right and two wrong answers are added to the
    questions (Agresti and Coull, 1998).
    """
    if stderr is None or stderr > 0:
        return stderr
    if count is None or value not in (0.0, 1.0):
        return None
    share = (value * count + 2) / (count + 4)
    return math.sqrt(share * (1 - share) / (count + 4))


@dataclass(frozen=True)
class EarlierScore:
    """The score of an earlier night, with its standard error."""

    value: float
    stderr: float


def fall_se(value: float, stderr: float, earlier: Sequence[EarlierScore], *, is_higher_better: bool) -> float | None:
    """Return how much worse a score is than the median of earlier nights, in standard errors of the difference.

    Negative means better; None without an earlier night. The questions are the same each night, so chance alone moves
    a score by less than this error, which is that of drawing these questions from all possible ones.
    """
    if not earlier:
        return None
    before, error = median(each.value for each in earlier), median(each.stderr for each in earlier)
    worse_by = before - value if is_higher_better else value - before
    return worse_by / math.hypot(stderr, error)
