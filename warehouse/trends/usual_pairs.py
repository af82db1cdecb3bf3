"""The pairs that readers ask for first: nights, images and machines side by side, as `nightbench compare` has them."""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path

from bench.trends.sides import Side
from warehouse.lake.query import ask
from warehouse.sql import Sql, sql
from warehouse.trends.compare import Comparison, compare_chosen
from warehouse.trends.leases import own_setups, usual_leases
from warehouse.trends.releases import METRICS
from warehouse.trends.usual_nights import USUAL

RECENT = timedelta(days=30)  # suites, images and machines without a night in them are not compared
MACHINES = 4  # the newest, which are six pairs
_OURS = Sql(f"is_control IS NOT TRUE AND {USUAL}")
# The newest night of each suite, and the nights before it: the last one, and those at least 7 and 30 days older.
_NIGHTS = """
WITH nights AS (
    SELECT suite, night, min(started_at) AS began_at FROM accepted WHERE {{ ours }} GROUP BY ALL
), newest AS (
    SELECT suite, max(night) AS night, arg_max(began_at, night) AS began_at FROM nights GROUP BY suite
)
SELECT newest.suite, newest.night,
    max(nights.night), max(nights.night) FILTER (nights.began_at <= newest.began_at - INTERVAL 7 DAY),
    max(nights.night) FILTER (nights.began_at <= newest.began_at - INTERVAL 30 DAY)
FROM newest JOIN nights ON nights.suite = newest.suite AND nights.night < newest.night
WHERE newest.began_at > $1 GROUP BY ALL ORDER BY ALL
"""
_IMAGES = """
WITH found AS (
    SELECT engine, coalesce(image_digest, image) AS name, started_at
    FROM accepted WHERE {{ ours }} AND image IS NOT NULL
), images AS (
    SELECT engine, name, min(started_at) AS first_at, max(started_at) AS last_at FROM found GROUP BY engine, name
), newest AS (
    SELECT * FROM images QUALIFY row_number() OVER (PARTITION BY engine ORDER BY first_at DESC, name) <= 2
)
SELECT engine, arg_min(name, first_at), arg_max(name, first_at) FROM newest
GROUP BY engine HAVING count(*) > 1 AND max(last_at) > $1 ORDER BY engine
"""
_MACHINES = """
SELECT coalesce(machine, machine_kind) AS name FROM accepted WHERE {{ ours }} AND name IS NOT NULL
GROUP BY name HAVING max(started_at) > $1 ORDER BY max(started_at) DESC, name LIMIT {{ machines }}
"""
_NEWEST = "SELECT max(started_at) FROM accepted"
_NEWEST_AND_OLDEST = """
SELECT max(started_at), min(started_at) FILTER (night IN ({{ nights | rows }})) FROM accepted
"""


@dataclass(frozen=True)
class UsualPair:
    """Two sides to compare; `name` stays the same when there are newer nights or images."""

    name: str
    title: str
    one: Side
    other: Side


def usual_pairs(data: Path) -> list[UsualPair]:
    """The pairs of a warehouse: of each suite nights, of each engine its newest two images, and each two machines."""
    newest = ask(data, _NEWEST).rows[0][0]
    return [] if newest is None else [*_nights(data, newest - RECENT), *_others(data, newest - RECENT)]


def compare_usual(data: Path) -> Iterator[tuple[UsualPair, Comparison]]:
    """Each pair with what was found, by the metrics that readers look for first."""
    pairs = usual_pairs(data)
    if not pairs:
        return
    leases = list(usual_leases(data, own_setups(data, _read_since(data, pairs)), METRICS))
    for pair in pairs:
        yield pair, compare_chosen(data, leases, pair.one, pair.other)


def _read_since(data: Path, pairs: Sequence[UsualPair]) -> datetime:
    """A while before the oldest night compared: what was before it says how nights differ."""
    nights = [
        (side.patterns["night"],) for pair in pairs for side in (pair.one, pair.other) if "night" in side.patterns
    ]
    newest, oldest = ask(data, sql(_NEWEST_AND_OLDEST, nights=nights or [("",)])).rows[0]
    since: datetime = min(newest - RECENT, oldest or newest) - RECENT
    return since


def _nights(data: Path, since: object) -> Iterator[UsualPair]:
    for suite, newest, *earlier in ask(data, sql(_NIGHTS, ours=_OURS), (since,)).rows:
        ages = dict(zip(("the night before", "7 days before", "30 days before"), earlier, strict=True))
        for words, night in ages.items():
            if night is not None and (words == "the night before" or night != earlier[0]):
                sides = _side(suite=suite, night=night), _side(suite=suite, night=newest)
                yield UsualPair(f"{suite} {words}", f"{suite}: the newest night against {words}", *sides)


def _others(data: Path, since: object) -> Iterator[UsualPair]:
    for engine, before, newest in ask(data, sql(_IMAGES, ours=_OURS), (since,)).rows:
        sides = _side(engine=engine, image=before), _side(engine=engine, image=newest)
        yield UsualPair(f"{engine} images", f"{engine}: the newest image against the one before", *sides)
    names = sorted(row[0] for row in ask(data, sql(_MACHINES, ours=_OURS, machines=MACHINES), (since,)).rows)
    for one, other in combinations(names, 2):
        yield UsualPair(f"machines {one} {other}", f"{other} against {one}", _side(machine=one), _side(machine=other))


def _side(**named: str) -> Side:
    return Side(
        ",".join(f"{key}={value}" for key, value in named.items()), {k: glob.escape(v) for k, v in named.items()}
    )
