"""The protocol between a process that transfers a model and its parent; hub_child and bucket_child both use it.

stdin            one line of JSON: {"operation": name, "answer": path, ...}, with the operation's values; stdin stays
                 open, and the child exits when it closes, so a child never outlives its parent
answer file      {"result": {...}} or {"failed": kind, "message": ...}, written before the child exits with code 0
stdout, stderr   the log; an unexpected error leaves its traceback there, a non-zero exit code and no answer

This module imports the standard library only, so that a child starts quickly.
"""

import errno
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

DISK_FULL, OTHER = "disk-full", "other"
TOKEN = "HF_TOKEN"  # noqa: S105 - the name of the variable that holds the hub's token
MESSAGE_MAX = 500

Job = dict[str, Any]
Result = dict[str, Any]


class TransferFailure(Exception):  # noqa: N818 - never leaves infra/models, which raises a NightbenchError instead
    """One try failed: its kind, and a message of the hub, the bucket or the library."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


def write_job(operation: str, answer: Path, values: Job) -> str:
    """The line that the parent writes to the child's stdin."""
    return json.dumps({"operation": operation, "answer": str(answer), **values}) + "\n"


def read_answer(text: str) -> Result:
    """The result in an answer file; raises its TransferFailure, and ValueError or KeyError if it is incomplete."""
    answer = json.loads(text)
    if "failed" in answer:
        raise TransferFailure(str(answer["failed"]), str(answer["message"]))
    return dict(answer["result"])


def os_error_kind(error: BaseException) -> str | None:
    """`disk-full` for an error of a full disk or quota, else None."""
    return DISK_FULL if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT) else None


def describe(error: BaseException) -> str:
    """An error's class and message on one line, without the signature of an address and without the token."""
    text = re.sub(r"(https?://[^\s?]+)\?\S+", r"\1", " ".join(str(error).split()))
    token = os.environ.get(TOKEN)
    return f"{type(error).__name__}: {text.replace(token, '***') if token else text}"[:MESSAGE_MAX]


def serve(
    operations: Mapping[str, Callable[[Job], Result]],
    expected: tuple[type[Exception], ...],
    explain: Callable[[Exception], TransferFailure],
) -> None:
    """Read the job on stdin, run its operation, write the answer file and exit, without waiting for other threads.

    An `expected` error is explained in the answer; any other one is a crash.
    """
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_exit_when_stdin_closes, daemon=True).start()
    answer: dict[str, object]
    try:
        answer = {"result": operations[job["operation"]](job)}
    except expected as error:
        failure = explain(error)
        answer = {"failed": failure.kind, "message": failure.message}
    Path(job["answer"]).write_text(json.dumps(answer), "utf-8")
    sys.stderr.flush()
    os._exit(0)


def _exit_when_stdin_closes() -> None:
    sys.stdin.read()
    os._exit(3)
