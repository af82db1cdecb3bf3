"""DigitalOcean among the clouds: whether it is set up, and what opens it; pydo is imported then."""

from functools import partial
from pathlib import Path

from pydantic import SecretStr

from bench.cost.invoice import InvoiceItem
from bench.machine.cloud_init import DeadMan, HostKey, user_data
from bench.machine.names import MachineName
from infra.clock import SystemClock
from infra.clouds.cloud import Cloud
from infra.clouds.digitalocean import dead_man_switch, dead_man_token
from infra.clouds.module import SwitchToken
from infra.remote.ssh_keys import LeaseKeys, keys_folder
from infra.settings import Settings

NAME = "digitalocean"
SWITCH_TOKEN: SwitchToken = dead_man_token


def why_closed(settings: Settings) -> str | None:
    """Return that the token is missing, with the remedy; None if there is one."""
    if is_named(settings):
        return None
    return f"no token for {NAME}: set NIGHTBENCH_DO_TOKEN (docs/how-to/rent-a-gpu.md lists the scopes it needs)"


def is_named(settings: Settings) -> bool:
    """Return whether there is a token."""
    return settings.do_token is not None and bool(settings.do_token.get_secret_value())


def missing_scopes(settings: Settings) -> list[str] | None:
    """Return the scopes that the token lacks, as far as calls that change nothing show."""
    from infra.clouds.digitalocean import token_scopes  # noqa: PLC0415

    return token_scopes.missing_scopes(settings)


def read_invoice_file(path: Path) -> list[InvoiceItem]:
    """Return the items of an invoice as the console exports it; UsageError where the file is none."""
    from infra.clouds.digitalocean.invoices import read_invoice_csv  # noqa: PLC0415

    return read_invoice_csv(path)


def open_cloud(settings: Settings) -> Cloud:
    """Return the account of the settings' token."""
    from infra.clouds.digitalocean.client import Calls, make_client  # noqa: PLC0415
    from infra.clouds.digitalocean.cloud import AccountSetup, DigitalOcean  # noqa: PLC0415

    client = make_client(
        settings.do_token or SecretStr(""),
        settings.do_endpoint,
        settings.do_ca,
        connect_timeout_s=settings.do_connect_timeout_s,
        read_timeout_s=settings.do_read_timeout_s,
    )
    account = AccountSetup(NAME, settings.prefix, settings.do_settle_s, settings.do_image, settings.do_sizes)
    calls = Calls(NAME, SystemClock())
    return DigitalOcean(client, calls, keys_folder(settings.data), partial(first_boot, settings), account)


def ssh_login(settings: Settings) -> tuple[str, int]:
    """Return NIGHTBENCH_DO_SSH_USER and NIGHTBENCH_DO_SSH_PORT."""
    return settings.do_ssh_user, settings.do_ssh_port


def why_no_switch(settings: Settings) -> str | None:
    """Return how to set the token with which a machine deletes itself; None if it is set.

    Raises UsageError if other users can read the token's file.
    """
    if dead_man_token.read_token(settings) is not None:
        return None
    return "run `nightbench doctor --fix`, or set NIGHTBENCH_DO_DEAD_MAN_TOKEN"


def first_boot(settings: Settings, name: MachineName, keys: LeaseKeys) -> str:
    """Return the user data of a machine's first boot: its host key, and its own switch if there is a token for it."""
    token = dead_man_token.read_token(settings)
    dead_man = None
    if token is not None and name.expires_at is not None:
        dead_man = DeadMan(
            program=Path(dead_man_switch.__file__).read_text(),
            endpoint=settings.do_endpoint,
            token=token.get_secret_value(),
            machine_name=str(name),
            deadline=int(name.expires_at.timestamp()),
            ca=settings.do_ca.read_text() if settings.do_ca else None,
        )
    return user_data(HostKey(keys.host_private.read_text(), keys.host_public), dead_man=dead_man)
