"""The command that opens the page of a night."""

from typing import Annotated

import typer

from flows.cli.arguments import examples, known_nights, read_settings
from flows.show import console

commands = typer.Typer()


@commands.command("open", epilog=examples("nightbench open", "nightbench open 2026-03-01T010000Z"))
def open_night(
    night: Annotated[str | None, typer.Argument(metavar="[NIGHT]", help="Night; default: the newest.")] = None,
) -> None:
    """Open the page of a night in the browser and print its path; without a display, print the path only.

    The page is written if the night has none.
    """
    from flows.show.browser import open_page  # noqa: PLC0415
    from infra.storage import store  # noqa: PLC0415

    data = read_settings().data.absolute()
    known = known_nights(data)
    name = store.read_night(data, night or known[-1]).night
    page = data / "reports" / f"{name}.html"
    if not page.exists():
        from warehouse.report.page import write_report  # noqa: PLC0415

        page = write_report(data, name)
    console.line(str(page))
    open_page(page)
