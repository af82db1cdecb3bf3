"""The calls this cloud answers, one file a kind of resource."""

from importlib import import_module

FILES = (
    "account",
    "actions",
    "creating",
    "destroying",
    "droplets",
    "images",
    "invoices",
    "offers",
    "projects",
    "snapshots",
    "tags",
    "volumes",
)


def load() -> None:
    """Let every file register its routes."""
    for name in FILES:
        import_module(f"{__name__}.{name}")
