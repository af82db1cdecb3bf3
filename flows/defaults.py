"""What a night measures, and where, by default: on a rented machine once a cloud token is set."""

from prefect.runtime import flow_run

from infra.clouds.by_name import RENTED, set_up
from infra.settings import Settings

DEFAULT = "default"


def choose(settings: Settings, suite: str, target: str) -> tuple[str, str]:
    """The suite and the target of a night; what is `default` depends on whether a cloud token is set.

    A suite that is given is measured on this computer unless a target is given too: no token alone rents for it.
    """
    if suite != DEFAULT:
        return suite, "local" if target == DEFAULT else target
    found = [name for name in set_up(settings) if target in {DEFAULT, name}]
    chosen = ("suites/nightly.toml", found[0]) if found else ("suites/local.toml", "local")
    return chosen[0], chosen[1] if target == DEFAULT else target


def rented(settings: Settings, target: str) -> str:
    """Return the cloud that `default` is: the first that is set up, else the first of all; another target is itself."""
    return next(iter({**set_up(settings), **RENTED})) if target == DEFAULT else target


def run_name() -> str:
    """The name of a night's run: `nightly suites/local.toml on local`."""
    given = flow_run.parameters
    suite, target = choose(Settings(), given.get("suite", DEFAULT), given.get("target", DEFAULT))
    return f"nightly {suite} on {target}"
