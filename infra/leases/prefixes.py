"""Earlier prefixes: what was rented under another NIGHTBENCH_PREFIX than today's is found and released by its own."""

import copy
from collections.abc import Iterable

from infra.clouds.cloud import Cloud
from infra.ledger.lease import Lease


def prefix_in(name: str) -> str:
    """The prefix in a name of ours; it has no hyphen."""
    return name.partition("-")[0]


def prefix_of(lease: Lease, usual: str) -> str:
    """The prefix in the name of a lease's machine; the usual one where no name was chosen yet."""
    return prefix_in(lease.name) if lease.name else usual


def for_lease(cloud: Cloud, lease: Lease) -> Cloud:
    """The same cloud with the prefix that a lease was rented under."""
    return _with_prefix(cloud, prefix_of(lease, cloud.prefix))


def _with_prefix(cloud: Cloud, prefix: str) -> Cloud:
    """The same cloud, which takes for ours what has this prefix."""
    if cloud.prefix == prefix:
        return cloud
    found = copy.copy(cloud)
    found.prefix = prefix
    return found


def by_prefix(cloud: Cloud, leases: Iterable[Lease]) -> list[Cloud]:
    """The cloud with its own prefix first, and then with each other one that a lease there was rented under."""
    earlier = {prefix_of(lease, cloud.prefix) for lease in leases if lease.cloud == cloud.name} - {cloud.prefix}
    return [cloud, *(_with_prefix(cloud, prefix) for prefix in sorted(earlier))]
