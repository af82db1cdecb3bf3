"""Commands that copy run folders to the bucket and back."""

from typing import Annotated

import typer

from bench.errors import ObjectStoreError, UsageError
from flows.cli.arguments import NightsArgument, examples, read_settings
from flows.show import console

commands = typer.Typer()


@commands.command(epilog=examples("nightbench upload", "nightbench upload 2026-03-01T010000Z"))
def upload(nights: NightsArgument = None) -> None:
    """Upload the run folders that the bucket lacks. Exits 3 if some are still missing there."""
    from infra.storage import store  # noqa: PLC0415
    from infra.storage.accepted import is_night  # noqa: PLC0415
    from infra.storage.bucket import require_bucket_location, upload_night  # noqa: PLC0415

    settings = read_settings()
    require_bucket_location(settings)
    for night in nights or ():
        if not is_night(night):
            raise UsageError(f"{night!r} is not the id of a night: {settings.data / 'runs'} has them")
        store.read_night(settings.data, night)
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
    """Download nights from the bucket: what is missing here or changed there. `nightbench load NIGHT` loads one.

    A file that changed here since the last upload or fetch is kept and named; `nightbench upload NIGHT` uploads it.
    """
    from infra.storage import bucket  # noqa: PLC0415

    settings = read_settings()
    for night in nights or []:
        fetched = bucket.fetch(settings, night)
        changed = len(fetched.files) + len(fetched.removed)
        console.line(f"{night}: {len(fetched.runs)} runs fetched, {changed} other files changed")
        if fetched.kept:
            console.warn(f"{night}: kept as changed here since the last upload: {', '.join(fetched.kept)}")
    if not nights:
        console.line("\n".join(bucket.nights_in_bucket(settings)) or "the bucket has no nights")
