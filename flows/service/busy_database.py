"""When SQLite is too small for Prefect's server: it logs each write that found the database locked."""

from flows.service.keepers import Keeper
from flows.service.parts import Service

LOCKED, PER_HOUR_MAX = "database is locked", 20  # one worker causes a few an hour, which Prefect repeats


def why_postgresql(service: Service, keeper: Keeper) -> str | None:
    """Why PostgreSQL is due, as a sentence; None where it is not, or is in use."""
    parts = {part.name: part for part in service.parts()}
    if service.settings.database_url is not None or "database" in parts:
        return None
    text, hours = keeper.recent_log(parts["server"])
    per_hour = text.count(LOCKED) / hours
    if per_hour <= PER_HOUR_MAX:
        return None
    return (
        f"Prefect's SQLite database was locked {per_hour:.0f} times per hour: run `nightbench down` and `nightbench up "
        "--postgres`, which starts PostgreSQL for it"
    )
