"""What the canary of earlier nights reached on healthy machines of one kind."""

from pathlib import Path

from bench.machine.canary import KEPT_SHARE_MIN
from bench.machine.canary_history import EarlierCanary
from catalog.read import find_gpu
from warehouse.lake.bucket.filesystem import lake_files
from warehouse.lake.query import ask
from warehouse.sql import sql

# A lease counts as healthy if its canaries ran to their end, and none was unfit or fell as `canary_fell` says.
_EARLIER = """
WITH of_kind AS (
    SELECT canary.* FROM canary JOIN leases USING (night, lease_id)
    WHERE night < ? AND leases.cloud = ? AND leases.kind IS NOT DISTINCT FROM ?
),
unhealthy AS (
    SELECT night, lease_id FROM of_kind WHERE unfit IS NOT NULL OR test IS NULL
    UNION
    SELECT before.night, before.lease_id
    FROM of_kind AS before JOIN of_kind AS after
        ON (before.night, before.lease_id, before.test) = (after.night, after.lease_id, after.test)
        AND before.device IS NOT DISTINCT FROM after.device AND before.peer IS NOT DISTINCT FROM after.peer
    WHERE before.position = 'before' AND after.position = 'after' AND after.value < {{ kept }} * before.value
)
SELECT night, gpu, test, median(value) FROM of_kind ANTI JOIN unhealthy USING (night, lease_id)
WHERE position = 'before' AND gpu IS NOT NULL AND value IS NOT NULL
GROUP BY ALL ORDER BY ALL
"""


def read_earlier_canaries(data: Path, night: str, cloud: str, kind: str | None) -> list[EarlierCanary]:
    """What each test reached on each night before `night`, on healthy machines of this kind; oldest night first."""
    if not lake_files(data).is_dir():
        return []
    rows = ask(data, sql(_EARLIER, kept=KEPT_SHARE_MIN), (night, cloud, kind)).rows
    known = {name: find_gpu(name) for name in {row[1] for row in rows}}
    return [
        EarlierCanary(night, gpu.gpu, test, value)
        for night, name, test, value in rows
        if (gpu := known[name]) is not None
    ]
