"""Commands that copy run folders to the bucket and back."""

from typing import Annotated

import typer

from bench.errors import ObjectStoreError
from flows.cli.arguments import NightsArgument, examples, read_settings
from flows.show import console

commands = typer.Typer()


@commands.command(epilog=examples("nightbench upload", "nightbench upload 2026-03-01T010000Z"))
def upload(nights: NightsArgument = None) -> None:
    """Upload the run folders that the bucket lacks. Exits 3 if some are still missing there."""
    from infra.storage import store  # noqa: PLC0415
    from infra.storage.bucket import require_bucket_location, upload_night  # noqa: PLC0415

    settings = read_settings()
    require_bucket_location(settings)
    requested, failed = nights or store.nights(settings.data), False
    if not requested:
        console.line(f"nothing to upload: {settings.data / 'runs'} has no nights")
    for night in requested:
        warnings = upload_night(settings, night, settings.s3_patience_s)
        failed |= bool(warnings)
        for warning in warnings:
            console.error(warning)
        if not warnings:
            console.line(f"{night}: every run is uploaded")
    if failed:
        raise typer.Exit(ObjectStoreError.exit_code)


@commands.command(epilog=examples("nightbench fetch", "nightbench fetch 2026-03-01T010000Z"))
def fetch(
    nights: Annotated[
        list[str] | None, typer.Argument(metavar="[NIGHT]...", help="Nights; default: list those in the bucket.")
    ] = None,
) -> None:
    """Download nights from the bucket; files that exist here are kept. `nightbench load NIGHT` loads one."""
    from infra.storage import bucket  # noqa: PLC0415

    settings = read_settings()
    for night in nights or []:
        console.line(f"{night}: {bucket.fetch(settings, night)} runs fetched")
    if not nights:
        console.line("\n".join(bucket.nights_in_bucket(settings)) or "the bucket has no nights")
