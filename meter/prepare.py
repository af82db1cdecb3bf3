"""Requests serialized before the load: head, body and id in one bytes object, sent with one call."""

import hashlib
import json
from dataclasses import dataclass, replace

from meter.embeddings import request_body
from meter.plan import Plan
from meter.popularity import draw_models
from meter.prompts import Prompt, make_prompts


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """One request, ready for the wire."""

    index: int  # place in the order of sending, warm-up first
    phase: str  # "warmup" or "measured"
    request_id: str
    payload: bytes
    body_sha256: str
    prompt: Prompt
    model: str = ""  # the name that it asks for


def _body(plan: Plan, prompt: Prompt, model: str) -> bytes:
    if plan.is_embedding:
        return json.dumps(request_body(model, prompt.parts) | plan.extra_body, separators=(",", ":")).encode()
    # Chat knows the limit by two names, the older of them deprecated.
    limit = "max_completion_tokens" if "messages" in prompt.parts else "max_tokens"
    ours = {
        "model": model,
        **prompt.parts,
        limit: prompt.output_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return json.dumps({**ours, **plan.extra_body}, separators=(",", ":")).encode()


def _payload(plan: Plan, heading: str, request_id: str, body: bytes) -> bytes:
    accepted = "application/json" if plan.is_embedding else "text/event-stream"
    head = (
        f"POST {plan.path} HTTP/1.1\r\n{heading}Content-Type: application/json\r\n"
        f"Accept: {accepted}\r\nX-Request-Id: {request_id}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1") + body


def prepare(plan: Plan, host: str, run_id: str, authorization: str = "") -> list[PreparedRequest]:
    """Write out every request of the plan; `run_id` keeps ids of different runs apart in the server's log.

    `authorization`: the line of each head with the API key, which is in no report.
    """
    heading = f"Host: {host}\r\n{authorization}"
    requests = []
    prompts, models = make_prompts(plan.prompts, plan.total_count, plan.output_tokens), draw_models(plan)
    for index, (prompt, model) in enumerate(zip(prompts, models, strict=True)):
        phase = "warmup" if index < plan.warmup_count else "measured"
        request_id = f"meter-{run_id}-{index:06d}"
        body = _body(plan, prompt, model)
        payload = _payload(plan, heading, request_id, body)
        stored = replace(prompt, parts={})  # the payload holds them in a tenth of the memory
        requests.append(
            PreparedRequest(index, phase, request_id, payload, hashlib.sha256(body).hexdigest(), stored, model)
        )
    return requests
