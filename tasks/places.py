"""Where this process keeps things: the data folder's ledger and clouds, and its engine, as the settings say."""

from collections.abc import Callable

from infra.cloud import Cloud
from infra.engine_env import LOCK, ensure_engine
from infra.ledger import Ledger
from infra.local import LocalCloud
from infra.server import EngineAt
from infra.settings import Settings


def ledger(settings: Settings) -> Ledger:
    """The ledger of the data folder."""
    return Ledger(settings.data / "ledger.sqlite")


def clouds(settings: Settings) -> dict[str, Cloud]:
    """Every cloud we can rent from, by name."""
    return {"local": LocalCloud(settings.data / "machines")}


def find_engine(settings: Settings, say: Callable[[str], None]) -> EngineAt:
    """The engine that the settings name, else the one of our own environment, which is built where it is not there."""
    if settings.vllm_executable is not None:
        return EngineAt(settings.vllm_executable.absolute(), build=None)
    built = ensure_engine(LOCK, settings.cache, say)
    return EngineAt(built.vllm, built.build)
