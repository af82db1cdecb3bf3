"""Read the facts that a running server reports of itself."""

import http.client
import json
from typing import Any

from bench.record import ServerFacts
from infra.engines.engine_log import read_log
from infra.engines.server import RunningServer, ask, died


def look(server: RunningServer) -> ServerFacts:
    """The facts that the server reports, and how it was started."""
    version = _json(server, "/version").get("version")
    models = _json(server, "/v1/models").get("data") or [{}]
    log = read_log(server.log)
    return ServerFacts(
        engine_version=version,
        engine_build=server.engine.build,
        served_model=models[0].get("id"),
        max_model_len=models[0].get("max_model_len"),
        kv_cache_tokens=server.engine.module.kv_cache_tokens(log),
        argv=server.argv,
        environment=server.environment,
        pid=server.pid,
        cold_start_s=server.cold_start_s,
        image_digest=server.image_digest,
        attention_backend=server.engine.module.attention_backend(log),
    )


def _json(server: RunningServer, path: str) -> dict[str, Any]:
    try:
        status, text = ask(server, "GET", path)
        value = json.loads(text) if status == http.client.OK else {}
    except OSError as error:
        raise died(f"the server does not respond to {path} ({error})", server) from error
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
