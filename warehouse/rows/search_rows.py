"""What the searches of a night found becomes rows of `search_probes`."""

from bench.search.search import NightSearches
from warehouse.rows.records import reading
from warehouse.schema.columns import COLUMNS, PARTITION
from warehouse.schema.row import Row


def search_rows(night: str, text: bytes) -> list[Row]:
    """A row for each probe of searches.json."""
    with reading("searches.json"):
        found = NightSearches.model_validate_json(text)
    names = {column.name for column in COLUMNS["search_probes"]}
    rows = []
    for one in found.searches:
        shared = one.model_dump(exclude={"probes", "low", "high"}) | {"value_low": one.low, "value_high": one.high}
        for place, probe in enumerate(one.probes):
            own = {name: value for name, value in probe.probe.model_dump().items() if name in names}
            rows.append({PARTITION: night, **shared, "probe": place, "status": probe.status, **own})
    return rows
