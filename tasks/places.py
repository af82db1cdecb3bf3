"""Where this process keeps things: the data folder's ledger and clouds, as the settings say."""

from infra import processes
from infra.cloud import Cloud, reap
from infra.ledger import Ledger
from infra.local import LocalCloud
from infra.settings import Settings


def ledger(settings: Settings) -> Ledger:
    """The ledger of the data folder."""
    return Ledger(settings.data / "ledger.sqlite")


def clouds(settings: Settings) -> dict[str, Cloud]:
    """Every cloud we can rent from, by name."""
    return {"local": LocalCloud(settings.data / "machines")}


def give_back_leftovers(settings: Settings, *, everything: bool = False) -> list[str]:
    """Give back every machine that a dead night left, and end what else it left running; return the machines' ids."""
    gone = reap(clouds(settings), ledger(settings), everything=everything)
    processes.end(processes.orphans(), patience_s=10.0)
    return gone
