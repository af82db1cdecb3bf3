"""What is sold, and where."""

from tests.emulators.digitalocean.replies import Reply, paged
from tests.emulators.digitalocean.routing import Call, route
from tests.emulators.digitalocean.world import VPC_UUID


@route("GET", "/v2/sizes", "sizes:read")
def sizes(call: Call) -> Reply:
    return paged("sizes", [size.json() for size in call.state.sizes.values()], call.request, call.base)


@route("GET", "/v2/regions", "regions:read")
def regions(call: Call) -> Reply:
    return paged("regions", [call.state.region_json(slug) for slug in call.state.regions], call.request, call.base)


@route("GET", "/v2/vpcs", "vpc:read")
def vpcs(call: Call) -> Reply:
    shown = [
        {
            "id": VPC_UUID,
            "urn": f"do:vpc:{VPC_UUID}",
            "name": f"default-{slug}",
            "region": slug,
            "ip_range": "10.128.0.0/16",
            "description": "",
            "default": True,
            "created_at": "2026-01-01T00:00:00Z",
        }
        for slug in call.state.regions
    ]
    return paged("vpcs", shown, call.request, call.base)


@route("GET", "/v2/reserved_ips", "reserved_ip:read")
def reserved_ips(call: Call) -> Reply:
    return paged("reserved_ips", [], call.request, call.base)


@route("GET", "/v2/firewalls", "firewall:read")
def firewalls(call: Call) -> Reply:
    return paged("firewalls", [], call.request, call.base)
