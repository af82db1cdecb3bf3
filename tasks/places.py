"""Where this process keeps things: the data folder's ledger and clouds, and its engine, as the settings say."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pydantic import SecretStr

import infra.dead_man
from bench.errors import UsageError
from bench.first_boot import DeadMan, HostKey, user_data
from bench.machine_name import MachineName
from infra.clock import WallClock
from infra.cloud import Cloud
from infra.digitalocean import Account, DigitalOcean
from infra.do_calls import Calls, make_client
from infra.engine_env import LOCK, ensure_engine
from infra.keys import LeaseKeys
from infra.ledger import Ledger
from infra.local import LocalCloud
from infra.server import EngineAt
from infra.settings import Settings
from infra.stage_costs import StageBook

CLOUDS = ("local", "digitalocean")


def ledger_file(settings: Settings) -> Path:
    """Where the ledger of the data folder lies."""
    return settings.data / "ledger.sqlite"


def ledger(settings: Settings) -> Ledger:
    """The ledger of the data folder."""
    return Ledger(ledger_file(settings))


def stage_book(settings: Settings) -> StageBook:
    """When each stage of each lease began and ended."""
    return StageBook(settings.data / "ledger.sqlite")


def clouds(settings: Settings) -> dict[str, Cloud]:
    """Every cloud we can rent from now, by name: this computer, and those whose token is set."""
    found: dict[str, Cloud] = {"local": LocalCloud(settings.data / "machines")}
    if settings.do_token is not None and settings.do_token.get_secret_value():
        found["digitalocean"] = _digitalocean(settings, settings.do_token)
    return found


def cloud_named(settings: Settings, name: str) -> Cloud:
    """One cloud; UsageError where it is not set up."""
    found = clouds(settings)
    if name in CLOUDS and name not in found:
        raise UsageError(
            f"there is no token for {name}: set NIGHTBENCH_DO_TOKEN (its scopes: docs/how-to/rent-a-gpu.md)"
        )
    if name not in found:
        raise UsageError(f"--target {name!r} is not known; it can be: {', '.join(CLOUDS)}")
    return found[name]


def lease_keys(settings: Settings) -> Path:
    """Where the keys of open leases lie."""
    return settings.data.absolute() / "keys"


def _digitalocean(settings: Settings, token: SecretStr) -> Cloud:
    client = make_client(
        token,
        settings.do_endpoint,
        settings.do_ca,
        connect_timeout_s=settings.do_connect_timeout_s,
        read_timeout_s=settings.do_read_timeout_s,
    )
    account = Account(
        prefix=settings.prefix, settle_s=settings.do_settle_s, image=settings.do_image, told=settings.do_sizes
    )
    calls = Calls(account.name, WallClock())
    return DigitalOcean(client, calls, lease_keys(settings), partial(first_boot, settings), account)


def first_boot(settings: Settings, name: MachineName, keys: LeaseKeys) -> str:
    """What a machine is told for its first boot: its own key, and how to end itself where the settings want that."""
    token = settings.do_dead_man_token
    dead_man = None
    if token is not None and token.get_secret_value() and name.expires_at is not None:
        dead_man = DeadMan(
            program=Path(infra.dead_man.__file__).read_text(),
            endpoint=settings.do_endpoint,
            token=token.get_secret_value(),
            machine_name=str(name),
            deadline=int(name.expires_at.timestamp()),
            ca=settings.do_ca.read_text() if settings.do_ca else None,
        )
    return user_data(HostKey(keys.host_private.read_text(), keys.host_public), dead_man=dead_man)


def find_engine(settings: Settings, say: Callable[[str], None]) -> EngineAt:
    """The engine that the settings name, else the one of our own environment, which is built where it is not there."""
    if settings.vllm_executable is not None:
        return EngineAt(settings.vllm_executable.absolute(), build=None)
    built = ensure_engine(LOCK, settings.cache, say)
    return EngineAt(built.vllm, built.build)
