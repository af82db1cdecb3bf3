"""The secrets of engines and commands: a suite names them, this process has them, and what needs them gets them."""

import os
import re

from bench.errors import UsageError
from bench.suite.command import Command
from bench.suite.endpoint import API_KEY, Endpoint
from bench.suite.engine import Engine
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite


def read_secrets(engine: Engine | Command) -> dict[str, str]:
    """The values of its secret_environment, by name; UsageError if one is not set in this process."""
    missing = missing_secrets(engine)
    if missing:
        what, key = _of(engine)
        raise UsageError(
            f"the {what} needs {', '.join(missing)} (suite: {key}), which is not set here: "
            f"export {missing[0]}=... and start again, or remove the name from the suite"
        )
    return {name: os.environ[name] for name in engine.secret_environment}


def missing_secrets(engine: Engine | Command) -> list[str]:
    """The names of its secret_environment that are not set in this process."""
    return [name for name in engine.secret_environment if not os.environ.get(name)]


def needs_secrets(scenario: Scenario) -> Engine | Command:
    """What a scenario starts, and so what its secrets are for: its command, or else its engine."""
    return scenario.workload.command or scenario.engine


def with_secrets(suite: Suite) -> tuple[Engine | Command, ...]:
    """The engines and the commands of a suite."""
    commands = (entry.command for entry in suite.scenarios if entry.command is not None)
    return (*suite.engines, *commands)


def secret_doubts(suite: Suite) -> list[str]:
    """Why a night of a suite would be refused: a sentence for each secret that is not set in this process."""
    missing = ((_of(one)[1], name) for one in with_secrets(suite) for name in missing_secrets(one))
    return [
        f"the night would be refused: {name} (suite: {key}) is not set here: export {name}=..."
        for key, name in dict.fromkeys(missing)
    ]


def _of(engine: Engine | Command) -> tuple[str, str]:
    """What it is called, and where its secrets stand in a suite."""
    what = "command" if isinstance(engine, Command) else "engine"
    return what, f"{what}.secret_environment"


def api_key(name: str | None) -> str | None:
    """The API key of a server that already runs, in this variable; None if the server needs none."""
    return None if name is None else os.environ.get(name)


def key_variable(endpoint: Endpoint) -> str | None:
    """The variable with the endpoint's API key, None without one; UsageError if it is unset or not a header."""
    name = endpoint.api_key_env or (API_KEY if os.environ.get(API_KEY) else None)
    if name is None:
        return None
    if not os.environ.get(name):
        raise UsageError(
            f"the endpoint needs {name} (suite: endpoint.api_key_env), which is not set here: export {name}=... and "
            "start again"
        )
    if not re.fullmatch(r"[!-~]+", os.environ[name]):
        raise UsageError(f"the API key in {name} has characters that no HTTP header may have: set it again")
    return name
