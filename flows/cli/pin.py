"""The command that pins a suite's references."""

from typing import TYPE_CHECKING

import typer

from flows.cli.arguments import SuiteArgument, examples, read_settings
from flows.show import console

if TYPE_CHECKING:
    from bench.suite.pins import PinnedPrice
    from bench.suite.suite import Suite
    from infra.settings import Settings

commands = typer.Typer()


@commands.command(
    epilog=examples("nightbench pin suites/local.toml", "nightbench pin suites/llama-3.3-70b-mi300x.toml")
)
def pin(suite: SuiteArgument) -> None:
    """Write SUITE.lock.toml: the commit, the image digest and the prices that the suite's references name now.

    Nights read the lock, so that they stay comparable until the suite is pinned again. Rents and downloads nothing.
    """
    from bench.suite.pins import Lock  # noqa: PLC0415
    from infra.loadgen.suite_file import parse_suite_file  # noqa: PLC0415
    from infra.loadgen.suite_lock import resolve_references, write_lock  # noqa: PLC0415
    from infra.models.transfer_process import Hub  # noqa: PLC0415

    settings = read_settings()
    parsed, _source = parse_suite_file(suite)
    hub = Hub(settings.hub_endpoint, stall_s=settings.hub_stall_s)
    lock = Lock(suite=parsed.name, pins=resolve_references(parsed, hub), prices=_prices(settings, parsed))
    path = write_lock(lock, suite)
    rows = [{"reference": one.reference, "pinned": one.pinned.rpartition("@")[2]} for one in lock.pins]
    rows += [{"reference": f"{one.cloud} {one.kind}", "pinned": f"{one.usd_per_hour:.2f} USD/h"} for one in lock.prices]
    if rows:
        console.table(rows, f"{parsed.name}: what its references name now")
    if parsed.engine.track:
        console.line(f"{parsed.engine.image}:{parsed.engine.track} is not pinned: each new night resolves it")
    console.line(f"{path}: {len(lock.pins)} references and {len(lock.prices)} prices pinned")


def _prices(settings: "Settings", suite: "Suite") -> "tuple[PinnedPrice, ...]":
    """The prices at every cloud with a token; none for a suite that rents nothing."""
    from infra.clouds.by_name import RENTED, set_up  # noqa: PLC0415
    from infra.leases.offers import pin_prices  # noqa: PLC0415

    if suite.machine.is_here:
        return ()
    found = set_up(settings)
    if not found:
        console.warn(
            f"no prices are pinned: {'; '.join(filter(None, (one.why_closed(settings) for one in RENTED.values())))}"
        )
    return tuple(price for one in found.values() for price in pin_prices(one.open_cloud(settings), suite.machine))
