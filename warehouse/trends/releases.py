"""The newest version of each engine against the one before it, judged as `nightbench compare` judges them."""

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

from bench.trends.sides import Lease, Side, compare_sides
from warehouse.lake.query import ask
from warehouse.sql import sql
from warehouse.trends.compare import Comparison
from warehouse.trends.leases import history_leases, own_setups, usual_leases
from warehouse.trends.own_series import SOURCE
from warehouse.trends.usual_nights import USUAL

# What a reader of a release asks for first; `nightbench compare` has every metric.
METRICS = (
    *("output_throughput_tok_per_s", "ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms", "tpot_p99_ms"),
    *("e2el_p50_ms", "usd_per_mtok_output"),
)
BEFORE = timedelta(days=30)  # nights before the older version that still say something of the noise
# A version is as new as its first usual night: a bisect measures old ones, some of them for the first time.
_VERSIONS = """
WITH versions AS (
    SELECT {{ source }} AS source, engine, engine_version_found AS engine_version, min(started_at) AS first_at
    FROM accepted WHERE is_control IS NOT TRUE AND {{ usual }} GROUP BY ALL
    UNION ALL BY NAME
    SELECT coalesce(source, '') AS source, engine_version, min(measured_at) AS first_at
    FROM history_points WHERE value > 0 AND isfinite(value) GROUP BY ALL
)
SELECT source, engine, engine_version, first_at FROM versions
WHERE engine_version IS NOT NULL AND first_at IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY source, engine ORDER BY first_at DESC, engine_version DESC) <= 2
ORDER BY source <> {{ source }}, source, engine, first_at, engine_version
"""
VERSIONS = sql(_VERSIONS, source=SOURCE, usual=USUAL)


@dataclass(frozen=True)
class Release:
    """Two versions of one engine, the older one first, and what was found; `source` names a history, or our nights."""

    source: str
    engine: str | None
    before: str
    newest: str
    comparison: Comparison


@dataclass(frozen=True)
class _Versions:
    """Two versions to compare, and the time from which their leases are read."""

    source: str
    engine: str | None
    before: str
    newest: str
    since: datetime

    def side(self, version: str) -> Side:
        """The leases of one version, as an argument of `nightbench compare`."""
        named = {"source": self.source} if self.engine is None else {"engine": self.engine}
        named |= {"engine_version": version}
        text = ",".join(f"{name}={value}" for name, value in named.items())
        return Side(text, {name: glob.escape(value) for name, value in named.items()})

    def has(self, lease: Lease) -> bool:
        """Whether a lease is of this engine and recent enough to say something."""
        facts = lease.facts
        is_same = facts["source"] == self.source and (self.engine is None or facts.get("engine") == self.engine)
        return is_same and lease.point.at >= self.since


def releases(data: Path) -> Iterator[Release]:
    """Compare the newest two versions of each engine: our own first, then those of each imported history."""
    found = list(_versions(data))
    leases: dict[_Versions, list[Lease]] = {versions: [] for versions in found}
    for lease in _leases(data, found):
        for versions in found:
            if versions.has(lease):
                leases[versions].append(lease)
    for versions in found:
        one, other = versions.side(versions.before), versions.side(versions.newest)
        compared = compare_sides(leases.pop(versions), one, other)
        comparison = Comparison(one.text, other.text, compared)
        yield Release(versions.source, versions.engine, versions.before, versions.newest, comparison)


def _versions(data: Path) -> Iterator[_Versions]:
    for (source, engine), group in groupby(ask(data, VERSIONS).rows, key=itemgetter(0, 1)):
        rows = list(group)
        if len(rows) > 1:
            yield _Versions(source, engine, rows[0][2], rows[1][2], rows[0][3] - BEFORE)


def _leases(data: Path, found: list[_Versions]) -> Iterator[Lease]:
    """The leases of these engines; a source without two versions is not read."""
    own = [versions.since for versions in found if versions.source == SOURCE]
    mine = usual_leases(data, own_setups(data, min(own)), METRICS) if own else ()
    return chain(mine, history_leases(data) if len(own) < len(found) else ())
