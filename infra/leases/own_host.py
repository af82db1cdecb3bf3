"""Waits for a host of your own that other nights take first."""

from bench.errors import HostInUseError
from infra.clock import Clock
from infra.clouds.abilities import OneHostCloud
from infra.clouds.cloud import Cloud
from infra.leases.acquire import take_lease
from infra.leases.offers import LeaseRequest
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.reporting import Say


def take_lease_of_free_host(
    cloud: Cloud, ledger: Ledger, clock: Clock, request: LeaseRequest, *, night: str, say: Say
) -> Lease:
    """Take the lease; where another night is first, wait until that one has ended and try again."""
    while True:
        try:
            return take_lease(cloud, ledger, clock, request, night=night, say=say)
        except HostInUseError:
            if not isinstance(cloud, OneHostCloud):
                raise
            cloud.wait_until_free(say)
