"""What `opening.py` of a cloud's folder has: constants and functions, and no state. docs/how-to/add-a-cloud.md."""

from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from infra.clouds.cloud import Cloud
from infra.settings import Settings


class SwitchToken(Protocol):
    """The token with which a machine deletes itself; `nightbench doctor --fix` asks for it once."""

    @property
    def SCOPES(self) -> tuple[str, ...]:  # noqa: N802 - a constant of the module
        """What it must be allowed to do, in the cloud's words."""
        ...

    def read_token(self, settings: Settings) -> SecretStr | None:
        """Return the token of the environment, else the stored one, else None.

        Raises UsageError if other users can read the file.
        """
        ...

    def check_token(self, settings: Settings, token: SecretStr) -> str | None:
        """Return a warning if the token can do more than it needs, else None; nothing is deleted.

        Raises CloudDeniedError, with the scope, if the cloud rejects it or it lacks one of SCOPES.
        """
        ...

    def store_token(self, settings: Settings, token: SecretStr) -> Path:
        """Write the token to the data folder, readable by its owner only, and return the file's path."""
        ...


class CloudModule(Protocol):
    """What `opening.py` of a cloud's folder has; importing it imports no client library."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """What `--target` calls it."""
        ...

    def why_closed(self, settings: Settings) -> str | None:
        """Return which settings are missing, as a sentence with the remedy; None if machines can be rented."""
        ...

    def is_named(self, settings: Settings) -> bool:
        """Whether the settings name it, also where `why_closed` finds them wrong: a machine may be rented there."""
        ...

    def open_cloud(self, settings: Settings) -> Cloud:
        """Return the cloud, which the settings name; nothing is sent to it."""
        ...

    def ssh_login(self, settings: Settings) -> tuple[str, int]:
        """Return the user and the port of the SSH server on its machines."""
        ...

    def why_no_switch(self, settings: Settings) -> str | None:
        """Return how to let a machine delete itself when its lease expires, even if this computer no longer exists.

        None if it does that already. Raises UsageError if the settings for that cannot be read.
        """
        ...

    def missing_scopes(self, settings: Settings) -> list[str] | None:
        """Return the scopes that its own token lacks, as far as calls that change nothing show; None: it has none.

        Raises CloudDeniedError where the cloud rejects the token.
        """
        ...

    @property
    def SWITCH_TOKEN(self) -> SwitchToken | None:  # noqa: N802 - a module as a constant
        """What checks and stores the token of such a switch; None: it needs none, or there is no such switch."""
        ...
