"""An errand: one verb carried out on a machine by a process of its own, arguments and answer as JSON in a folder.

arguments.json  the verb and its arguments                answer.json  what came of it, written last
log             each line JSON: {"say": ...} or {"progress": ...}; any other line is what a program printed

Both sides read JSON by the verb's own annotations: nothing that a machine says can run code here.
"""

import functools
import json
import sys
import traceback
import types
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from bench import errors
from bench.errors import NightbenchError, RemoteJobCrashedError
from infra.agent.operations import OPERATIONS
from infra.no_telemetry import quiet_environment
from infra.reporting import Reporter

ARGUMENTS, ANSWER = "arguments.json", "answer.json"

Verb = Callable[..., Any]


def write_arguments(operation: Verb, arguments: tuple[Any, ...]) -> bytes:
    """What a machine is sent: the verb's name, and each argument by its annotation."""
    packed = [_pack(hint, value) for hint, value in zip(_hints(operation)[0], arguments, strict=True)]
    return json.dumps({"verb": operation.__name__, "arguments": packed}).encode()


def read_arguments(text: bytes) -> tuple[Verb, list[Any]]:
    """The verb and its arguments; KeyError where there is no such verb, ValidationError where they are not its own."""
    asked = json.loads(text)
    operation = OPERATIONS[asked["verb"]]
    return operation, [_unpack(hint, one) for hint, one in zip(_hints(operation)[0], asked["arguments"], strict=True)]


def write_answer(operation: Verb, answer: object) -> bytes:
    """What a machine answers: a value of the verb's kind, an error that we understand, or a crash's traceback."""
    if isinstance(answer, BaseException) and not isinstance(answer, NightbenchError):
        said = "".join(traceback.format_exception(answer))
        return json.dumps({"crashed": said}).encode()
    return json.dumps(_pack(_hints(operation)[1], answer)).encode()


def read_answer(operation: Verb, text: bytes, machine: str) -> Any:
    """The verb's answer; the error that it ended with is raised here as there, and ErrandCrashedError for a crash."""
    try:
        answer = json.loads(text)
        if "crashed" in answer:
            raise RemoteJobCrashedError(f"{operation.__name__} crashed on {machine}: {answer['crashed']}")
        found = _unpack(_hints(operation)[1], answer)
    except (ValueError, KeyError, TypeError) as error:
        raise RemoteJobCrashedError(
            f"what {machine} answers to {operation.__name__} cannot be read: {error}"
        ) from error
    if isinstance(found, NightbenchError):
        raise found
    return found


@functools.cache
def _hints(operation: Verb) -> tuple[list[TypeAdapter[Any]], TypeAdapter[Any]]:
    """How each argument after the listener is written, and the answer."""
    hints = get_type_hints(operation)
    names = list(signature(operation).parameters)[1:]
    return [_adapter(hints[name]) for name in names], _adapter(hints["return"])


def _adapter(hint: Any) -> TypeAdapter[Any]:
    """A hint's values as JSON; errors go another way, since they are no values of pydantic's."""
    if get_origin(hint) in (Union, types.UnionType):
        kept = [one for one in get_args(hint) if not (isinstance(one, type) and issubclass(one, NightbenchError))]
        hint = functools.reduce(lambda left, right: left | right, kept)
    return TypeAdapter(hint)


def _pack(adapter: TypeAdapter[Any], value: object) -> dict[str, Any]:
    if isinstance(value, NightbenchError):
        return {"error": type(value).__name__, "said": str(value), "stage": value.stage}
    return {"value": adapter.dump_python(value, mode="json")}


def _unpack(adapter: TypeAdapter[Any], packed: dict[str, Any]) -> Any:
    if "error" in packed:
        return _error(**packed)
    # From text again: the strict values of ours take lists for tuples and strings for paths only in JSON.
    return adapter.validate_json(json.dumps(packed["value"]))


def _error(error: str, said: str, stage: str | None) -> NightbenchError:
    kind = getattr(errors, error, NightbenchError)
    if not (isinstance(kind, type) and issubclass(kind, NightbenchError)):
        kind = NightbenchError
    made = kind(str(said))
    made.stage = stage
    return made


def read_line(line: str, reporter: Reporter) -> None:
    """Pass on one line of an errand's log."""
    try:
        told = json.loads(line)
        if set(told) == {"progress"}:
            reporter.progress(float(told["progress"]))
            return
        line = str(told["say"])
    except (ValueError, KeyError, TypeError):
        pass  # what a program printed
    reporter.say(line)


def carry_out(folder: Path) -> int:
    """Do what the folder's arguments ask for and leave the answer there; 1 where it crashed."""

    def tell(**words: object) -> None:
        sys.stdout.write(json.dumps(words) + "\n")
        sys.stdout.flush()

    operation, arguments = read_arguments((folder / ARGUMENTS).read_bytes())
    answer: object
    try:
        answer = operation(Reporter(lambda line: tell(say=line), lambda share: tell(progress=share)), *arguments)
    except Exception as error:  # noqa: BLE001 - said to whoever asked, who raises it
        answer = error
    aside = folder / f"{ANSWER}.tmp"
    aside.write_bytes(write_answer(operation, answer))
    aside.replace(folder / ANSWER)
    return int(isinstance(answer, Exception) and not isinstance(answer, NightbenchError))


def main() -> int:
    """`python -m infra.agent.remote_job FOLDER`."""
    quiet_environment()
    return carry_out(Path(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
