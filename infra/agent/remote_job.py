"""Remote job: one operation run on a machine in a process of its own; arguments and answer are JSON files in a folder.

arguments.json  {"verb": the operation's name, "arguments": [...]}, written before the process starts
answer.json     the result, the error or the traceback, written last and in one step
log             one JSON object a line, {"say": ...} or {"progress": {...}}; any other line is a program's own output

Both sides parse the JSON by the operation's own type annotations, so an answer cannot make this side run code.
"""

import functools
import json
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from bench import errors
from bench.errors import NightbenchError, RemoteJobCrashedError
from bench.night_progress import LoadProgress
from bench.printable import printable_strings
from infra.agent.operations import OPERATIONS
from infra.no_telemetry import quiet_environment
from infra.reporting import Reporter
from infra.settings import Settings

ARGUMENTS, ANSWER = "arguments.json", "answer.json"
_LOAD = TypeAdapter(LoadProgress)
PARAMETERS_BEFORE_VALUES = 2  # settings and reporter, which belong to the process and are not sent

OperationFunction = Callable[..., Any]


def write_arguments(operation: OperationFunction, arguments: tuple[Any, ...]) -> bytes:
    """The content of arguments.json."""
    packed = [_pack(adapter, value) for adapter, value in zip(_adapters(operation)[0], arguments, strict=True)]
    return json.dumps({"verb": operation.__name__, "arguments": packed}).encode()


def read_arguments(text: bytes) -> tuple[OperationFunction, list[Any]]:
    """The operation and its arguments; KeyError for an unknown operation, ValidationError for a wrong argument."""
    job = json.loads(text)
    operation = OPERATIONS[job["verb"]].function
    packed = zip(_adapters(operation)[0], job["arguments"], strict=True)
    return operation, [_unpack(adapter, value) for adapter, value in packed]


def write_answer(operation: OperationFunction, result: object) -> bytes:
    """The content of answer.json: a result, a NightbenchError, or the traceback of any other exception."""
    if isinstance(result, BaseException) and not isinstance(result, NightbenchError):
        return json.dumps({"crashed": "".join(traceback.format_exception(result))}).encode()
    return json.dumps(_pack(_adapters(operation)[1], result)).encode()


def read_answer(operation: OperationFunction, text: bytes, machine: str) -> Any:
    """The operation's result; raises its NightbenchError, or RemoteJobCrashedError for any other exception there."""
    try:
        answer = printable_strings(json.loads(text))
        if "crashed" in answer:
            raise RemoteJobCrashedError(f"{operation.__name__} crashed on {machine}: {answer['crashed']}")
        result = _unpack(_adapters(operation)[1], answer)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RemoteJobCrashedError(f"{machine}: the answer to {operation.__name__} cannot be read: {error}") from error
    if isinstance(result, NightbenchError):
        raise result
    return result


@functools.cache
def _adapters(operation: OperationFunction) -> tuple[list[TypeAdapter[Any]], TypeAdapter[Any]]:
    """How each argument is written as JSON, and how the result is."""
    hints = get_type_hints(operation)
    names = list(signature(operation).parameters)[PARAMETERS_BEFORE_VALUES:]
    return [_adapter(hints[name]) for name in names], _adapter(hints["return"])


def _adapter(hint: Any) -> TypeAdapter[Any]:
    """How values of a type are written as JSON; pydantic cannot write errors, so `_pack` does."""
    if get_origin(hint) in (Union, types.UnionType):
        members = [one for one in get_args(hint) if not (isinstance(one, type) and issubclass(one, NightbenchError))]
        hint = functools.reduce(lambda left, right: left | right, members)
    return TypeAdapter(hint)


def _pack(adapter: TypeAdapter[Any], value: object) -> dict[str, Any]:
    if isinstance(value, NightbenchError):
        return {"error": type(value).__name__, "said": str(value), **_marks(value)}
    return {"value": adapter.dump_python(value, mode="json")}


def _unpack(adapter: TypeAdapter[Any], packed: dict[str, Any]) -> Any:
    if "error" in packed:
        return _rebuild_error(packed)
    # From text again: strict models accept lists for tuples and strings for paths only in JSON.
    return adapter.validate_json(json.dumps(packed["value"]))


def _rebuild_error(packed: Mapping[str, Any]) -> NightbenchError:
    kind = getattr(errors, packed["error"], NightbenchError)
    if not (isinstance(kind, type) and issubclass(kind, NightbenchError)):
        kind = NightbenchError
    error = kind(str(packed["said"]))
    error.stage, error.failure, error.trace = packed["stage"], packed["failure"], packed.get("trace")
    return error


def _marks(error: NightbenchError) -> dict[str, str | None]:
    return {"stage": error.stage, "failure": error.failure, "trace": error.trace}


def read_line(line: str, reporter: Reporter) -> None:
    """Pass one line of a job's log on to a reporter."""
    try:
        entry = json.loads(line)
        if set(entry) == {"progress"}:
            reporter.progress(_LOAD.validate_python(entry["progress"]))
            return
        line = str(entry["say"])
    except (ValueError, KeyError, TypeError):
        pass  # a program's own output
    reporter.say(line)


def run_job(folder: Path, settings: Settings) -> int:
    """Run the operation of the folder's arguments.json and write answer.json; returns 1 if it crashed, else 0."""

    def log(**entry: object) -> None:
        sys.stdout.write(json.dumps(entry) + "\n")
        sys.stdout.flush()

    operation, arguments = read_arguments((folder / ARGUMENTS).read_bytes())
    reporter = Reporter(lambda line: log(say=line), lambda load: log(progress=asdict(load)))
    result: object
    try:
        result = operation(settings, reporter, *arguments)
    except Exception as error:  # noqa: BLE001 - the answer carries it to the caller, which raises it
        result = error
    aside = folder / f"{ANSWER}.tmp"
    aside.write_bytes(write_answer(operation, result))
    aside.replace(folder / ANSWER)
    return int(isinstance(result, Exception) and not isinstance(result, NightbenchError))


def main() -> int:
    """`python -m infra.agent.remote_job FOLDER`."""
    quiet_environment()
    return run_job(Path(sys.argv[1]), Settings())


if __name__ == "__main__":
    sys.exit(main())
