"""The secrets that a suite's engine gets: named in the suite, set in this process, and passed to the server alone."""

import os

from bench.errors import UsageError
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


def missing_secrets(engine: Engine) -> list[str]:
    """The names of engine.secret_environment that are not set in this process."""
    return [name for name in engine.secret_environment if not os.environ.get(name)]
