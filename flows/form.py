"""What Prefect's form offers for a suite, a target, a night and a machine; any other text may be typed, too."""

from pathlib import Path
from typing import Annotated

from pydantic import WithJsonSchema

from flows.defaults import DEFAULT
from flows.deployed import SUITES
from infra.clouds.by_name import RENTED

LOCK = ".lock.toml"


def suites() -> list[str]:
    """The suites of the checkout, as a run of a deployment names them."""
    found = sorted(path for path in SUITES.glob("*.toml") if not path.name.endswith(LOCK))
    return [str(Path(SUITES.name) / path.name) for path in found]


def _one_of(title: str, listed: list[str], other: str) -> WithJsonSchema:
    choice = {"title": title, "type": "string", "enum": [DEFAULT, *listed]}
    return WithJsonSchema({"anyOf": [choice, {"title": other, "type": "string"}]})


def _none_or(without: str, name: str) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"title": without, "type": "null"}, {"title": name, "type": "string"}]})


SuiteName = Annotated[str, _one_of("suite of the checkout", suites(), "another file")]
TargetName = Annotated[str, _one_of("known target", ["local", *sorted(RENTED)], "another target")]
NightName = Annotated[str | None, _none_or("a new night", "name of a night")]
MachineName = Annotated[str | None, _none_or("every machine", "name of a machine")]
