"""Prefect's server with a content security policy: its pages load nothing from, and send nothing to, another host.

`python -m flows.service.prefect_server` is what `prefect server start` runs, with that policy. Prefect's second UI, at
/v2, asks a host of Amplitude although every opt-out is set, and the setting that turns it off changes the default only.
"""

import re
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

# The UIs compile the schemas of their forms, which needs `unsafe-eval`; they get no script from elsewhere to run.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "worker-src 'self' blob:",
        "connect-src 'self' ws://127.0.0.1:* ws://localhost:*",
        *(f"{name} 'none'" for name in ("object-src", "frame-ancestors")),
    )
)
_HTML = re.compile(rb"text/html\b")


class ContentPolicy:
    """Adds the policy to every page that is answered."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer as the application does, with the header on pages."""

        async def send_with_policy(message: MutableMapping[str, Any]) -> None:
            headers = message.get("headers", [])
            if message["type"] == "http.response.start" and _is_page(headers):
                message["headers"] = [*headers, (b"content-security-policy", POLICY.encode())]
            await send(message)

        await self._app(scope, receive, send_with_policy)


def _is_page(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name.lower() == b"content-type" and _HTML.match(value) for name, value in headers)


def main() -> None:
    """Serve until a signal; Prefect's settings say where and with which database."""
    import uvicorn  # noqa: PLC0415 - takes seconds
    from prefect.server.api.server import create_app  # noqa: PLC0415
    from prefect.settings import get_current_settings  # noqa: PLC0415

    settings = get_current_settings().server
    app = create_app(final=True)
    app.add_middleware(ContentPolicy)
    uvicorn.run(
        app,
        host=settings.api.host,
        port=settings.api.port,
        timeout_keep_alive=settings.api.keepalive_timeout,
        log_level=settings.logging_level.lower(),
    )


if __name__ == "__main__":
    main()
