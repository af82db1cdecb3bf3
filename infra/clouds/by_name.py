"""The clouds that machines are rented from, by name: `RENTED[name]` opens one."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from bench.cost.invoice import InvoiceItem
from infra.clouds.command import opening as command
from infra.clouds.digitalocean import opening as digitalocean
from infra.clouds.module import CloudModule
from infra.settings import Settings

# To add a cloud, write its folder and name it here. `default` rents from the first one that is set up.
_OPENINGS: tuple[CloudModule, ...] = (digitalocean, command)
RENTED: Mapping[str, CloudModule] = MappingProxyType({one.NAME: one for one in _OPENINGS})
# What reads the invoice that a cloud's console exports as a file.
INVOICE_FILES: Mapping[str, Callable[[Path], list[InvoiceItem]]] = MappingProxyType(
    {digitalocean.NAME: digitalocean.read_invoice_file}
)


def set_up(settings: Settings) -> dict[str, CloudModule]:
    """The clouds that machines can be rented from with these settings."""
    return {name: one for name, one in RENTED.items() if one.why_closed(settings) is None}


def named(settings: Settings) -> dict[str, CloudModule]:
    """The clouds that settings name, also where these are wrong now, as with a folder that is not mounted."""
    return {name: one for name, one in RENTED.items() if one.is_named(settings)}
