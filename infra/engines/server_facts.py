"""Read the facts that a running server reports of itself."""

import http.client
import re
from collections.abc import Mapping
from typing import Any

from bench.engines.config import parallel_sizes, parse_flags
from bench.engines.start_log import TimedStart, read_start
from bench.foreign_json import count, first, members, parse, text
from bench.server_facts import ServerFacts, StartPhases
from infra.engines.engine_log import read_log
from infra.engines.server import RunningServer, ask, died

MODELS = "/v1/models"


def look(server: RunningServer) -> ServerFacts:
    """The facts that the server reports, and how it was started."""
    engine = server.engine.module
    pages = {path: _json(server, path) for path in {*engine.FACT_PAGES, MODELS}}
    version, max_model_len = engine.read_facts(pages)
    log = read_log(server.log)
    return ServerFacts(
        engine_version=version,
        engine_build=server.engine.build,
        served_model=text(first(pages[MODELS].get("data")).get("id")),
        max_model_len=max_model_len,
        kv_cache_tokens=engine.kv_cache_tokens(log) if server.attached is None else _told_kv_cache(server, pages),
        argv=server.argv,
        environment=server.environment,
        prefill_argv=server.prefill_argv,
        endpoint=server.attached.facts if server.attached else None,
        pid=server.pid,
        cold_start_s=server.cold_start_s,
        image_digest=server.image_digest,
        attention_backend=engine.attention_backend(log),
        parallel=parallel_sizes(parse_flags(server.argv)) if server.attached is None else None,
        start=_start(server, log),
    )


def _start(server: RunningServer, log: str) -> StartPhases | None:
    """Where the time of its start went, by its log up to the line that means ready; None if we did not start it."""
    if server.started_at is None or server.cold_start_s is None:
        return None
    engine = server.engine.module
    before, ready, _ = log.partition(engine.READY_LINE)
    # A process logs the local time, in the time zone of this host.
    timed = TimedStart(server.started_at.astimezone(), server.cold_start_s, server.first_answer_s)
    return read_start(before + ready, engine.START_LOG, timed)


def _told_kv_cache(server: RunningServer, pages: Mapping[str, dict[str, Any]]) -> int | None:
    """How many tokens the KV cache of a server that is not ours holds, as its pages say; None if they do not."""
    told = pages.get("/get_server_info", {}).get("max_total_num_tokens")
    if told is not None or not (server.attached and server.attached.has_metrics):
        return count(told)
    labels = re.search(r"^vllm:cache_config_info\{(.*)\}", _page(server, "/metrics"), re.MULTILINE)
    size = None if labels is None else re.search(r'\bkv_cache_size_tokens="(\d{1,18})"', labels[1])
    return None if size is None else int(size[1])


def _json(server: RunningServer, path: str) -> dict[str, Any]:
    try:
        return members(parse(_page(server, path)))
    except ValueError:
        return {}


def _page(server: RunningServer, path: str) -> str:
    """The text of a page, empty where the server has none; ServerDiedError where it does not respond."""
    try:
        status, text = ask(server, "GET", path)
    except OSError as error:
        raise died(f"the server does not respond to {path} ({error})", server) from error
    return text if status == http.client.OK else ""
