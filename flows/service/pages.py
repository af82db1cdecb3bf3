"""The web server of the pages: the static site and the pages of nights, read-only, on this computer.

`python -m flows.service.pages DATA HOST PORT` serves DATA/site at /, DATA/reports at /reports/ and a
profiler's traces at /runs/. Nothing else of the data folder can be read through it.
"""

import base64
import hashlib
import re
import sys
from functools import cache, partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from nights.files import TRACE
from warehouse.report.figures import save_script

REPORTS = "/reports/"
START = "index.html"
_OF_THIS_COMPUTER = ("127.0.0.1", "localhost")


@cache
def policy() -> str:
    """The content security policy: a page runs our own scripts only, and loads nothing from elsewhere.

    So a script in a model's answer or in an imported table never runs. Charts compile their expressions, which needs
    `unsafe-eval`; it does not let a page's own text run.
    """
    inline = base64.b64encode(hashlib.sha256(save_script().encode()).digest()).decode()
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'unsafe-eval' 'sha256-{inline}'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "connect-src 'self'",
            *(f"{name} 'none'" for name in ("base-uri", "form-action", "frame-ancestors")),
        )
    )


def _host_name(host: str) -> str | None:
    """The name in a header `Host`, with a port or without one; None of what is not one."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


class Pages(SimpleHTTPRequestHandler):
    """Answers GET and HEAD with files of the two folders."""

    server_version, sys_version = "nightbench", ""

    def __init__(self, *arguments: object, data: Path, **keywords: object) -> None:
        self._data = data
        super().__init__(*arguments, **keywords)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        """The file of an address; `..` never leaves its folder, which the library sees to."""
        address = urlsplit(path).path
        is_report = address.startswith(REPORTS)
        if re.fullmatch(TRACE, address.removeprefix("/")):
            return str(self._data / address.removeprefix("/"))
        self.directory = str(self._data / ("reports" if is_report else "site"))
        return super().translate_path(address.removeprefix(REPORTS.rstrip("/")) if is_report else address)

    def send_head(self):  # type: ignore[no-untyped-def] # noqa: ANN201 - a file, typed by the library
        """Refuse a foreign page that resolves its own name to this computer, and say what is missing at the start."""
        if _host_name(self.headers.get("Host") or "") not in _OF_THIS_COMPUTER:
            self.send_error(HTTPStatus.FORBIDDEN, "This server answers to 127.0.0.1 and localhost only")
            return None
        if urlsplit(self.path).path == "/" and not (self._data / "site" / START).exists():
            self.send_error(HTTPStatus.NOT_FOUND, "The site is written after the first night, or by `nightbench site`")
            return None
        return super().send_head()

    def list_directory(self, path: object) -> None:  # noqa: ARG002 - the library's name
        """No list of files."""
        self.send_error(HTTPStatus.NOT_FOUND, "No such page")

    def end_headers(self) -> None:
        """Add the policy to every answer; a page that was written again is read again."""
        self.send_header("Content-Security-Policy", policy())
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log no request."""


def serve(data: Path, host: str, port: int) -> ThreadingHTTPServer:
    """A server of these pages that listens; `serve_forever` answers."""
    policy()  # before the first request: it imports the warehouse
    return ThreadingHTTPServer((host, port), partial(Pages, data=data))


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])).serve_forever()
