"""What happens in the sixty simulated nights: an upgrade, a regression, a bad host, and a night that fails."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

NIGHTS = 60
FIRST = datetime(2026, 8, 3, 1, tzinfo=UTC)
UPGRADED, REGRESSED, BAD_HOST, FAILED = 20, 38, 53, 57  # counted from 0
OLD_ENGINE, NEW_ENGINE = "0.31.0", "0.32.0"
OLD_DRIVER, NEW_DRIVER = "570.86.15", "575.51.03"
HOSTS = ("simulated-host-1", "simulated-host-2", "simulated-host-3")
SLOW_HOST = "simulated-host-9"


@dataclass(frozen=True)
class SimulatedNight:
    """One night; `slower` is what each of its times is multiplied by."""

    at: int
    host: str
    gpu_driver: str
    engine_version: str
    slower: float
    is_failed: bool

    @property
    def name(self) -> str:
        """As a real night is named: by its start."""
        return f"{self.started_at:%Y-%m-%dT%H%M%SZ}"

    @property
    def started_at(self) -> datetime:
        """One o'clock in the morning."""
        return FIRST + timedelta(days=self.at)


def story() -> Iterator[SimulatedNight]:
    """The nights in the order of their dates."""
    for at in range(NIGHTS):
        is_new, is_regressed, is_slow = at >= UPGRADED, at >= REGRESSED, at == BAD_HOST
        yield SimulatedNight(
            at=at,
            host=SLOW_HOST if is_slow else HOSTS[at % len(HOSTS)],
            gpu_driver=NEW_DRIVER if is_regressed else OLD_DRIVER,
            engine_version=NEW_ENGINE if is_new else OLD_ENGINE,
            slower=(0.88 if is_new else 1.0) * (1.09 if is_regressed else 1.0) * (1.16 if is_slow else 1.0),
            is_failed=at == FAILED,
        )
