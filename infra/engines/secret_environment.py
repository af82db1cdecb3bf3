"""The secrets that a suite's engine gets: named in the suite, set in this process, and passed to the server alone."""

import os
import re

from bench.errors import UsageError
from bench.suite.endpoint import API_KEY, Endpoint
from bench.suite.engine import Engine


def read_secrets(engine: Engine) -> dict[str, str]:
    """The values of engine.secret_environment, by name; UsageError if one is not set in this process."""
    missing = missing_secrets(engine)
    if missing:
        raise UsageError(
            f"the engine needs {', '.join(missing)} (suite: engine.secret_environment), which is not set here: "
            f"export {missing[0]}=... and start again, or remove the name from the suite"
        )
    return {name: os.environ[name] for name in engine.secret_environment}


def api_key(name: str | None) -> str | None:
    """The API key of a server that already runs, in this variable; None if the server needs none."""
    return None if name is None else os.environ.get(name)


def key_variable(endpoint: Endpoint) -> str | None:
    """The variable with the endpoint's API key, None if there is none; UsageError if it is not set, or is no header."""
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


def missing_secrets(engine: Engine) -> list[str]:
    """The names of engine.secret_environment that are not set in this process."""
    return [name for name in engine.secret_environment if not os.environ.get(name)]
