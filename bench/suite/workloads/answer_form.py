"""What a scenario demands of the form of each answer: a JSON schema, a grammar, or a call of a tool."""

import json
import re
from typing import Any, Self

from pydantic import Field, model_validator

from bench.frozen import Frozen
from meter.errors import UsageError
from meter.json_schema import require_checkable

KINDS = ("json_schema", "grammar", "tool")


class AnswerForm(Frozen):
    """Exactly one of `json_schema`, `grammar` and `tool`, each as text.

    Every answer is checked after the load: against the schema, the grammar's `pattern`, or the tool's name and the
    schema of its `parameters`. Answers end by themselves, so `osl` is their longest length.
    """

    json_schema: str | None = None  # JSON
    grammar: str | None = None  # EBNF, as the engine reads it
    pattern: str | None = None  # a regular expression for the whole answer, needed with `grammar`
    tool: str | None = None  # JSON with `name`, `parameters` and, if you like, `description`; chats only
    valid_share_min: float = Field(default=1.0, ge=0, le=1)  # fewer valid answers reject the run
    pair: bool = True  # also measure the scenario without this, as NAME-free, for the overhead

    @property
    def kind(self) -> str:
        """Which of the three."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    @property
    def schema_of_answer(self) -> dict[str, Any] | None:
        """The schema that an answer, or a tool's arguments, must fit; None for a grammar."""
        if self.json_schema is not None:
            return dict(json.loads(self.json_schema))
        return None if self.tool is None else dict(json.loads(self.tool)["parameters"])

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(getattr(self, name) is not None for name in KINDS) != 1:
            msg = "give exactly one of json_schema, grammar and tool"
            raise ValueError(msg)
        if (self.grammar is None) != (self.pattern is None):
            msg = "grammar and pattern need each other: a pattern says which answers are valid"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _can_be_checked(self) -> Self:
        for name in ("json_schema", "tool"):
            _require_object(name, getattr(self, name))
        if self.tool is not None and not {"name", "parameters"} <= json.loads(self.tool).keys():
            msg = "tool needs the keys name and parameters"
            raise ValueError(msg)
        try:
            re.compile(self.pattern or "")
            require_checkable(self.schema_of_answer or {})
        except re.error as error:
            msg = f"pattern is not a regular expression: {error}"
            raise ValueError(msg) from error
        except UsageError as error:
            raise ValueError(str(error)) from error
        return self


def _require_object(name: str, text: str | None) -> None:
    try:
        is_object = isinstance(json.loads(text or "{}"), dict)
    except ValueError as error:
        msg = f"{name} is not JSON: {error}"
        raise ValueError(msg) from error
    if not is_object:
        msg = f"{name} must be a JSON object"
        raise ValueError(msg)
