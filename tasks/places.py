"""Where this process keeps things: the data folder's ledger and clouds, as the settings say."""

from infra.cloud import Cloud
from infra.ledger import Ledger
from infra.local import LocalCloud
from infra.settings import Settings


def ledger(settings: Settings) -> Ledger:
    """The ledger of the data folder."""
    return Ledger(settings.data / "ledger.sqlite")


def clouds(settings: Settings) -> dict[str, Cloud]:
    """Every cloud we can rent from, by name."""
    return {"local": LocalCloud(settings.data / "machines")}
