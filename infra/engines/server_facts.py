"""Read the facts that a running server reports of itself."""

import http.client
import json
from typing import Any

from bench.engines.config import parallel_sizes, parse_flags
from bench.server_facts import ServerFacts
from infra.engines.engine_log import read_log
from infra.engines.server import RunningServer, ask, died

MODELS = "/v1/models"


def look(server: RunningServer) -> ServerFacts:
    """The facts that the server reports, and how it was started."""
    engine = server.engine.module
    pages = {path: _json(server, path) for path in {*engine.FACT_PAGES, MODELS}}
    version, max_model_len = engine.read_facts(pages)
    models = pages[MODELS].get("data") or [{}]
    log = read_log(server.log)
    return ServerFacts(
        engine_version=version,
        engine_build=server.engine.build,
        served_model=models[0].get("id"),
        max_model_len=max_model_len,
        kv_cache_tokens=engine.kv_cache_tokens(log),
        argv=server.argv,
        environment=server.environment,
        pid=server.pid,
        cold_start_s=server.cold_start_s,
        image_digest=server.image_digest,
        attention_backend=engine.attention_backend(log),
        parallel=parallel_sizes(parse_flags(server.argv)),
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
