"""Stands in for the `vllm` executable: the same words, endpoints and shapes, with known times and chosen faults.

    truth_server.py serve MODEL --host H --port P [vLLM's other flags]      truth_server.py --version

Times come from TRUTH_TTFT_MS, TRUTH_ITL_MS and TRUTH_START_S, faults from TRUTH_FAULT (comma-separated; `name:N`
strikes every N-th completion, `numerics:N` all questions for log-probabilities of a prompt from the N-th on).
TRUTH_KNEE is the number of requests beyond which each takes longer in proportion, as of a full server. TRUTH_LOG names
a file that gets one JSON line for each thing written, stamped just before the write. TRUTH_TLS names a PEM file with
key and certificate, TRUTH_API_KEY what each request must carry; `hosted` is what a hosted API lacks, and `proxied`
shows a proxy. Lines, chunks and errors follow vLLM 0.32.0.
"""

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

VERSION = "0.32.0"
BLOCK_TOKENS = 16  # the prefix cache counts whole blocks
FIRST_WORD_ID = 264
RATE_LIMITED = 429
COUNTERS = ("prompt_tokens", "generation_tokens", "num_preemptions", "prefix_cache_queries", "prefix_cache_hits")
TIER_COUNTERS = ("external_prefix_cache_queries", "external_prefix_cache_hits")
FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")
FAULTS = {
    *(
        "oom_at_start",
        "never_ready",
        "slow_child",
        "wrong_version",
        "miscount",
        "die_after",
        "http500",
        "drop_reuse",
        "close_unsaid",
    ),
    *("sse_error", "cut", "short", "stall", "garbage", "no_done", "no_usage", "tokens_per_event", "events_per_write"),
    *(
        "rate_limit",
        "redirect",
        "hosted",
        "proxied",
        "quotes_key",
        "caches_answers",
        "ignores_cancel",
        "adapter_missing",
        "odd_vectors",
        "keeps_kv",
    ),
    *("role_first", "reasoning", "ping", "finish_apart", "usage_running", "numerics", "no_logprobs"),
}

OOM_LINES = """\
(EngineCore pid=4242) ERROR 11-21 12:00:03 [core.py:1010] EngineCore failed to start.
(EngineCore pid=4242) ERROR 11-21 12:00:03 [core.py:1010] ValueError: To serve at least one request with the model's \
max seq len ({context}), (0.12 GiB KV cache is needed, which is larger than the available KV cache memory (0.06 GiB). \
Based on the available memory, the estimated maximum model length is {fits}. Try increasing `gpu_memory_utilization` \
(which also controls CPU memory on the CPU backend) or decreasing `max_model_len` when initializing the engine. \
See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details.
(APIServer pid=4241) RuntimeError: Engine core initialization failed. See root cause above. \
Failed core proc(s): {{'EngineCore': 1}}
"""

START_LINES = """\
(APIServer pid={pid}) INFO {now} [utils.py:233] non-default args: {{'model_tag': '{path}', 'port': {port}}}
(APIServer pid={pid}) INFO {now} [model.py:547] Resolved architecture: LlamaForCausalLM
(APIServer pid={pid}) INFO {now} [model.py:1510] Using max model len {context}
(EngineCore pid={pid}) INFO {now} [core.py:93] Initializing a V1 LLM engine (v{version}) with config: \
model='{path}', dtype=torch.bfloat16, max_seq_len={context}
(EngineCore pid={pid}) INFO {now} [cpu_model_runner.py:55] Starting to load model {path}...
(EngineCore pid={pid}) INFO {now} [default_loader.py:314] Loading weights took 0.02 seconds
(EngineCore pid={pid}) INFO {now} [cpu_worker.py:120] Explicitly set (1.0/20.34) GiB for KV cache on node 0.
(EngineCore pid={pid}) INFO {now} [kv_cache_utils.py:1229] CPU KV cache size: 524,288 tokens, \
Maximum concurrency for {context:,} tokens per request: {concurrency:.2f}x
(EngineCore pid={pid}) INFO {now} [core.py:214] init engine (profile, create kv cache, warmup model) \
took 0.01 s
(APIServer pid={pid}) INFO {now} [api_server.py:1900] Starting vLLM server on http://{host}:{port}
"""

READY_LINES = """\
(APIServer pid={pid}) INFO:     Started server process [{pid}]
(APIServer pid={pid}) INFO:     Waiting for application startup.
(APIServer pid={pid}) INFO:     Listening on port {port}
(APIServer pid={pid}) INFO:     Application startup complete.
"""

DEAD_LINE = (
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. "
    "See stack trace (above) for the root cause."
)
STUBBORN_CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def read_faults(text: str) -> dict[str, int]:
    """Read TRUTH_FAULT; a misspelt fault stops the server, since a test would pass for the wrong reason."""
    pairs = (part.strip().partition(":") for part in text.split(",") if part.strip())
    faults = {name: int(number or 1) for name, _colon, number in pairs}
    unknown = set(faults) - FAULTS
    if unknown:
        raise SystemExit(f"truth_server: unknown fault {sorted(unknown)}")
    return faults


@dataclass(slots=True)
class Truth:
    """What the server does and what it has counted."""

    model: str
    path: str
    host: str
    port: int
    context: int
    is_caching: bool
    tells_cached: bool
    tells_times: bool
    embeds: bool
    ttft_s: float
    itl_s: float
    start_s: float
    knee: float
    faults: dict[str, int]
    log: TextIO | None
    adapters: tuple[str, ...] = ()
    kv_role: str = ""  # kv_producer computes prompts for a server that is kv_consumer; "": neither
    trace_folder: Path | None = None  # of its profiler
    traced_from: int = 0  # completions before the trace began
    reporter: asyncio.Server | None = None
    completions: int = 0
    weighed: int = 0
    running: int = 0
    prefill_s: float = 0.0
    prefills: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)
    seen: set[tuple[int, ...]] = field(default_factory=set)
    answered: set[tuple[int, ...]] = field(default_factory=set)  # whole prompts

    def strikes(self, fault: str, number: int) -> bool:
        """Whether this completion, counted from 1, is the N-th."""
        return fault in self.faults and number % self.faults[fault] == 0

    def note(self, kind: str, request_id: str, **more: object) -> None:
        """Log what is about to happen."""
        if self.log is not None:
            entry = {"kind": kind, "request_id": request_id, "at_ns": time.monotonic_ns(), **more}
            self.log.write(json.dumps(entry) + "\n")
            self.log.flush()

    def cached(self, prompt: list[int]) -> int:
        """Count the prompt's tokens found in the prefix cache: whole blocks of a prompt seen before."""
        if not self.is_caching:
            return 0
        self.counts["prefix_cache_queries"] += len(prompt)
        blocks = len(prompt) // BLOCK_TOKENS
        prefixes = [tuple(prompt[: number * BLOCK_TOKENS]) for number in range(1, blocks + 1)]
        # The last token is always computed, for its logits: a prompt is never found whole.
        found = (len(prefix) for prefix in prefixes if prefix in self.seen and len(prefix) < len(prompt))
        hits = max(found, default=0)
        self.seen.update(prefixes)
        self.counts["prefix_cache_hits"] += hits
        return hits

    def received(self, prompt: list[int], body: dict[str, Any]) -> int:
        """Count the prompt's tokens that a prefill server computed: whole blocks, and never the last token."""
        if self.kv_role != "kv_consumer":
            return 0
        is_handed_over = (body.get("kv_transfer_params") or {}).get("do_remote_prefill")
        hits = (len(prompt) - 1) // BLOCK_TOKENS * BLOCK_TOKENS if is_handed_over else 0
        self.counts["external_prefix_cache_queries"] += len(prompt)
        self.counts["external_prefix_cache_hits"] += hits
        return hits

    def handing_over(self, ask: "Ask") -> dict[str, Any]:
        """Where the decode server finds the blocks of a prompt, as NIXL's connector tells it; empty: not asked for."""
        is_asked = (ask.body.get("kv_transfer_params") or {}).get("do_remote_decode")
        if self.kv_role != "kv_producer" or not is_asked or "keeps_kv" in self.faults:
            return {}
        blocks = list(range(len(ask.prompt) // BLOCK_TOKENS))
        where = {"remote_engine_id": "truth", "remote_block_ids": blocks, "remote_host": self.host, "remote_port": 1}
        return {"kv_transfer_params": {"do_remote_prefill": True, "do_remote_decode": False, **where}}

    def is_kept(self, ask: "Ask") -> bool:
        """Whether the answer comes out of a cache of whole answers; it is kept from now on."""
        if "caches_answers" not in self.faults:
            return False
        is_kept = tuple(ask.prompt) in self.answered
        self.answered.add(tuple(ask.prompt))
        return is_kept

    @property
    def slowness(self) -> float:
        """How many times as long a step takes now as in an empty server."""
        return max(1.0, self.running / self.knee)

    def metrics(self) -> str:
        """Write the Prometheus page."""
        labels = f'engine="0",model_name="{self.model}"'
        gauges = {"num_requests_running": self.running, "num_requests_waiting": 0, "kv_cache_usage_perc": 0}
        lines = []
        for name, value in gauges.items():
            lines += [f"# TYPE vllm:{name} gauge", f"vllm:{name}{{{labels}}} {float(value)}"]
        for name in COUNTERS + (TIER_COUNTERS if self.kv_role else ()):
            count = float(self.counts[name])
            lines += [f"# TYPE vllm:{name}_total counter", f"vllm:{name}_total{{{labels}}} {count}"]
            lines += [f"# TYPE vllm:{name}_created gauge", f"vllm:{name}_created{{{labels}}} 1.7e+09"]
        # There is no queue here: what is taken is scheduled at once.
        for name, spent in {"request_prefill_time": self.prefill_s, "request_queue_time": 0.0}.items():
            lines += [f"# TYPE vllm:{name}_seconds histogram", f"vllm:{name}_seconds_sum{{{labels}}} {spent}"]
            lines.append(f"vllm:{name}_seconds_count{{{labels}}} {float(self.prefills)}")
        lines.append("# TYPE vllm:request_success_total counter")
        for reason in FINISH_REASONS:
            named = f'engine="0",finished_reason="{reason}",model_name="{self.model}"'
            lines.append(f"vllm:request_success_total{{{named}}} {float(self.finished[reason])}")
        return "\n".join(lines) + "\n"

    def pages(self) -> dict[str, object]:
        """What each path answers: a text as it is, anything else as JSON."""
        version = "9.9.9" if "wrong_version" in self.faults else VERSION
        model = {"id": self.model, "object": "model", "owned_by": "vllm", "root": self.path}
        models = [model | {"id": name, "max_model_len": self.context} for name in (self.model, *self.adapters)]
        return {
            "/health": "",
            "/ping": "",
            "/load": {"server_load": self.running},
            "/version": {"version": version},
            "/v1/models": {"object": "list", "data": models},
            "/metrics": self.metrics(),
        }

    def starting(self) -> str:
        """Write the log up to the moment when it is about to listen."""
        words = {"path": self.path, "host": self.host, "port": self.port, "context": self.context, "pid": os.getpid()}
        words["now"] = time.strftime("%m-%d %H:%M:%S")
        return START_LINES.format(version=VERSION, concurrency=524_288 / self.context, **words)

    def listening(self, port: int) -> str:
        """Write the log's last lines of a start."""
        return READY_LINES.format(pid=os.getpid(), port=port)


@dataclass(frozen=True, slots=True)
class Ask:
    """One completion request, with what the server decided about it."""

    number: int
    request_id: str
    prompt: list[int]
    cached: int
    output_tokens: int
    is_chat: bool
    body: dict[str, Any]
    received: int = 0

    @property
    def asked_tokens(self) -> int:
        """The limit the client set; 16 where it set none."""
        return asked_tokens(self.body)

    def option(self, key: str) -> object:
        """Read a member of the body."""
        return self.body.get(key)


class RefusedError(Exception):
    """An answer in vLLM's error shape."""

    def __init__(self, status: int, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": status}}


def token_ids(prompt: object) -> list[int]:
    """Take a prompt as ids; a text costs one token a word and one for BOS."""
    if isinstance(prompt, str):
        return [1] + [FIRST_WORD_ID + sum(word.encode()) % 9000 for word in prompt.split()]
    if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
        return prompt
    raise RefusedError(400, "Bad Request", "Either prompt or prompt_embeds must be provided and non-empty.")


def asked_tokens(body: dict[str, Any]) -> int:
    """Read the limit by either of its names."""
    return int(body.get("max_completion_tokens") or body.get("max_tokens", 16))


def chat_ids(messages: object) -> list[int]:
    """Take a chat as ids: each message costs its words and, as by a template, two more; an image costs 256."""
    if not isinstance(messages, list) or not messages:
        raise RefusedError(400, "Bad Request", "messages must be a list that is not empty.", "messages")
    ids = [1]
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        words = " ".join(part["text"] for part in parts if part["type"] == "text").split()
        images = sum(part["type"] == "image_url" for part in parts)
        ids += [2, *(FIRST_WORD_ID + sum(word.encode()) % 9000 for word in words), *[7] * (256 * images), 3]
    return ids


def check_ask(truth: Truth, body: dict[str, Any], prompt: list[int]) -> int:
    """Return how many tokens to write, or refuse as vLLM refuses."""
    if body.get("model") not in (truth.model, *truth.adapters):
        message = f"The model `{body.get('model')}` does not exist. Valid aliases: {truth.model}."
        raise RefusedError(404, "NotFoundError", message, "model")
    if "hosted" in truth.faults:
        require_hosted(body)
    grammar = (body.get("structured_outputs") or {}).get("grammar")
    if grammar is not None and not grammar.startswith("root ::="):
        raise RefusedError(400, "BadRequestError", "Invalid grammar specification.")
    wanted = asked_tokens(body)
    if wanted > truth.context:
        message = (
            f"max_tokens={wanted} cannot be greater than max_model_len={truth.context}. Please request fewer output "
            f"tokens. (parameter=max_tokens, value={wanted})"
        )
        raise RefusedError(400, "BadRequestError", message, "max_tokens")
    if len(prompt) > truth.context - 1:
        message = (
            f"This model's maximum context length is {truth.context} tokens. However, your prompt contains at least "
            f"{len(prompt)} input tokens, which exceeds this limit even without any output tokens. Please reduce the "
            f"length of the input prompt. (parameter=input_tokens, value={len(prompt)})"
        )
        raise RefusedError(400, "BadRequestError", message, "input_tokens")
    return int(min(wanted, truth.context - len(prompt)))


def require_hosted(body: dict[str, Any]) -> None:
    """Refuse what hosted APIs refuse: token ids as a prompt, and parameters that are vLLM's alone."""
    foreign = sorted({"ignore_eos", "min_tokens", "return_token_ids", "prompt_logprobs"} & body.keys())
    if foreign:
        raise RefusedError(400, "invalid_request_error", f"Unrecognized request argument supplied: {foreign[0]}")
    if "messages" not in body:
        raise RefusedError(404, "invalid_request_error", "This is a chat model: use v1/chat/completions.")


def take_ask(truth: Truth, headers: dict[str, str], raw: bytes, *, is_chat: bool) -> Ask:
    """Read, check and count a request, or refuse it."""
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise RefusedError(400, "Bad Request", f"JSON decode error: {error}") from error
    prompt = chat_ids(body.get("messages")) if is_chat else token_ids(body.get("prompt"))
    prompt = prompt[-(body.get("truncate_prompt_tokens") or len(prompt)) :]
    wanted = check_ask(truth, body, prompt)
    if "prompt_logprobs" in body:
        # Neither counted among the completions that faults strike, nor read from the prefix cache.
        return Ask(0, headers.get("x-request-id", "truth-0"), prompt, 0, wanted, is_chat, body)
    truth.completions += 1
    number = truth.completions
    request_id = headers.get("x-request-id", f"truth-{number}")
    if truth.strikes("rate_limit", number):
        raise RefusedError(RATE_LIMITED, "RateLimitError", "Too many requests.")
    if truth.strikes("http500", number):
        raise RefusedError(500, "InternalServerError", DEAD_LINE.partition(": ")[2])
    written = max(wanted // 2, 1) if truth.strikes("short", number) else wanted
    cached, received = truth.cached(prompt), truth.received(prompt, body)
    return Ask(number, request_id, prompt, cached, written, is_chat, body, received)


def chunk(truth: Truth, ask: Ask, **parts: object) -> dict[str, Any]:
    """Build a completion chunk, or the whole of an answer that is not streamed."""
    kind = ("chatcmpl", "chat.completion.chunk") if ask.is_chat else ("cmpl", "text_completion")
    named = {"id": f"{kind[0]}-{ask.request_id}", "object": kind[1], "created": 1_790_000_000}
    return {**named, "model": truth.model, **parts}


def usage(truth: Truth, ask: Ask) -> dict[str, Any]:
    """Build vLLM's usage object."""
    prompt, written = len(ask.prompt), ask.output_tokens
    details = {"cached_tokens": ask.cached + ask.received} if truth.tells_cached else None
    total = prompt + written
    return {
        "prompt_tokens": prompt,
        "total_tokens": total,
        "completion_tokens": written,
        "prompt_tokens_details": details,
    }


def finish_reason(ask: Ask) -> str:
    """Say `length` when all was written that was asked for."""
    return "length" if ask.output_tokens >= ask.asked_tokens else "stop"


def choice(truth: Truth, ask: Ask, first: int, tokens: int, *, is_last: bool) -> dict[str, Any]:
    """Build the choice that carries these tokens; the first one also carries the prompt's ids, as vLLM's does."""
    ids = [FIRST_WORD_ID + (ask.number + first + place) % 9000 for place in range(tokens)]
    wants_ids = bool(ask.option("return_token_ids"))
    text = "".join(f" w{token}" for token in ids)
    channel = "reasoning" if first < truth.faults.get("reasoning", 0) else "content"
    return {
        "index": 0,
        **({"delta": {channel: text}} if ask.is_chat else {"text": text}),
        "logprobs": None,
        "finish_reason": finish_reason(ask) if is_last and "finish_apart" not in truth.faults else None,
        "stop_reason": None,
        "prompt_token_ids": ask.prompt if wants_ids and first == 0 else None,
        "token_ids": ids if wants_ids else None,
    }


def weighed(truth: Truth, ask: Ask) -> dict[str, Any]:
    """Build the choice that tells each prompt token's log-probability, and tokens that follow from the prompt alone."""
    truth.weighed += 1
    is_off = 0 < truth.faults.get("numerics", 0) <= truth.weighed
    lost = 0.25 if is_off else 0.0
    told = [{str(token): {"logprob": -1.0 - token % 16 / 8 - lost, "rank": 1}} for token in ask.prompt[1:]]
    name = ask.body["model"]
    is_adapted = name != truth.model and ("adapter_missing" not in truth.faults or name != truth.adapters[-1])
    start = sum(ask.prompt) + is_off + (1 + truth.adapters.index(name) if is_adapted else 0)
    return {
        **choice(truth, ask, 0, ask.output_tokens, is_last=True),
        "finish_reason": finish_reason(ask),
        "prompt_token_ids": ask.prompt,
        "prompt_logprobs": None if "no_logprobs" in truth.faults else [None, *told],
        "token_ids": [FIRST_WORD_ID + (start * (place + 1)) % 9000 for place in range(ask.output_tokens)],
    }


def opening(truth: Truth, ask: Ask) -> bytes:
    """Write what precedes the first token: a chat's role, and a comment where asked for."""
    role = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ping = b": ping\n\n" if "ping" in truth.faults else b""
    return ping + (event(chunk(truth, ask, choices=[role])) if ask.is_chat else b"")


def closing(truth: Truth, ask: Ask) -> bytes:
    """Write the finish reason in a chunk without text, where it is to come apart."""
    empty: dict[str, Any] = {"delta": {"content": ""}} if ask.is_chat else {"text": ""}
    last = {"index": 0, **empty, "logprobs": None, "finish_reason": finish_reason(ask), "stop_reason": None}
    return event(chunk(truth, ask, choices=[last])) if "finish_apart" in truth.faults else b""


def event(content: object) -> bytes:
    """Write one server-sent event."""
    return f"data: {json.dumps(content, separators=(',', ':'))}\n\n".encode()


@dataclass(slots=True)
class Times:
    """When one answer was scheduled and its tokens were made, on the server's own clock."""

    scheduled_s: float
    first_s: float = 0.0
    last_s: float = 0.0

    def metrics(self, tokens: int) -> dict[str, float]:
        """Build vLLM's `metrics` object; a one-token answer has no mean gap, and what is missing is left out."""
        decode_s, inference_s = self.last_s - self.first_s, self.last_s - self.scheduled_s
        found = {
            "time_to_first_token_ms": (self.first_s - self.scheduled_s) * 1e3,
            "generation_time_ms": decode_s * 1e3,
            "queue_time_ms": 0.0,
            "tokens_per_second": tokens / inference_s if inference_s > 0 else 0.0,
        }
        return found | ({"mean_itl_ms": decode_s / (tokens - 1) * 1e3} if tokens > 1 else {})


Written = tuple[str, int, bytes]  # kind, tokens, bytes of the event


def broken_event(truth: Truth, number: int) -> bytes | None:
    """Write what an answer says instead of its second half."""
    if truth.strikes("garbage", number):
        return b'data: {"id": "cmpl-\xff not json\n\n'
    if truth.strikes("sse_error", number):
        message = "EngineCore encountered an issue."
        return event({"error": {"message": message, "type": "InternalServerError", "param": None, "code": 500}})
    return None


async def half_way(truth: Truth, ask: Ask) -> None:
    """Do what the faults ask for once half of the answer is written."""
    if truth.faults.get("die_after", 0) == ask.number and truth.reporter is not None:
        truth.reporter.close()  # first, or a client quick enough could still connect to a dying process
        sys.stderr.write(f"{DEAD_LINE}\n")
        sys.stderr.flush()
        os._exit(0)
    if truth.strikes("cut", ask.number):
        raise ConnectionAbortedError
    if truth.strikes("stall", ask.number):
        await asyncio.Event().wait()


async def token_events(truth: Truth, ask: Ask) -> AsyncIterator[list[Written]]:
    """Yield what goes into each write, at its time; the times do not drift with the server's load."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    batch: list[Written] = [("opening", 0, opening(truth, ask))]
    if "role_first" in truth.faults:
        yield batch
        batch = []
    per_event = truth.faults.get("tokens_per_event", 1)
    pace = 0.0 if truth.is_kept(ask) else truth.slowness
    for first in range(0, ask.output_tokens, per_event):
        due += (per_event * truth.itl_s if first or ask.received else truth.ttft_s) * pace
        await asyncio.sleep(due - loop.time())
        tokens = min(per_event, ask.output_tokens - first)
        is_last = first + tokens >= ask.output_tokens
        said = choice(truth, ask, first, tokens, is_last=is_last)
        running = {"usage": usage(truth, ask) | {"completion_tokens": first + tokens}}
        more = running if "usage_running" in truth.faults else {}
        batch.append(("token", tokens, event(chunk(truth, ask, choices=[said], **more))))
        if is_last or sum(kind == "token" for kind, _tokens, _bytes in batch) >= truth.faults.get(
            "events_per_write", 1
        ):
            yield batch
            batch = []
    yield [("closing", 0, closing(truth, ask))]


async def answer_events(truth: Truth, ask: Ask) -> AsyncIterator[list[Written]]:
    """Yield the whole answer: tokens, usage, [DONE]; or as much of it as the faults leave."""
    written = 0
    is_struck = False
    times = Times(time.monotonic())
    async for batch in token_events(truth, ask):
        times.last_s = time.monotonic()
        if written == 0:
            times.first_s = times.last_s
            truth.prefill_s += times.first_s - times.scheduled_s
            truth.prefills += 1
        broken = broken_event(truth, ask.number)
        if written >= ask.output_tokens // 2 and not is_struck:
            is_struck = True
            await half_way(truth, ask)
            if broken is not None:
                yield [("broken", 0, broken)]
                break
        yield batch
        written += sum(tokens for _kind, tokens, _bytes in batch)
    options = ask.option("stream_options")
    if isinstance(options, dict) and options.get("include_usage") and not truth.strikes("no_usage", ask.number):
        told = {"metrics": times.metrics(ask.output_tokens)} if truth.tells_times else {}
        yield [("usage", 0, event(chunk(truth, ask, choices=[], usage=usage(truth, ask), **told)))]
    if not truth.strikes("no_done", ask.number):
        yield [("done", 0, b"data: [DONE]\n\n")]


class Conversation:
    """One connection: requests in, answers out."""

    def __init__(self, truth: Truth, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._truth = truth
        self._reader = reader
        self._writer = writer
        self._more = "via: 1.1 front\r\n" if "proxied" in truth.faults else ""
        self._written = 0  # tokens of the answer under way

    async def hold(self) -> None:
        """Answer until either side closes."""
        try:
            is_first = True
            while await self._answer_one(is_first=is_first):
                is_first = False
        except ConnectionAbortedError:
            self._writer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writer.close()

    async def _answer_one(self, *, is_first: bool) -> bool:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _colon, value in (line.partition(":") for line in head[1:])}
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        method, target, _version = head[0].split(" ")
        if not is_first and "drop_reuse" in self._truth.faults:
            return False
        path = target.partition("?")[0]
        if self._may_not(method, headers):
            said = {"error": {"message": f"Incorrect API key provided: {headers.get('authorization')}", "code": 401}}
            await self._send(401, "application/json", json.dumps(said).encode())
        elif "redirect" in self._truth.faults:
            self._more = "location: https://elsewhere.example/v1\r\n"
            await self._send(307, "text/plain", b"")
        elif method == "POST" and path == "/v1/embeddings" and self._truth.embeds:
            await self._embed(body)
        elif method == "POST" and path in {"/v1/completions", "/v1/chat/completions"} and not self._truth.embeds:
            await self._complete(headers, body, is_chat="chat" in path)
        else:
            await self._page(method, path)
        # As llama.cpp's server: it announces nothing, and closes after its answer.
        return "close_unsaid" not in self._truth.faults and headers.get("connection", "").lower() != "close"

    def _may_not(self, method: str, headers: dict[str, str]) -> bool:
        if method == "POST" and "quotes_key" in self._truth.faults:
            return True
        key = os.environ.get("TRUTH_API_KEY")
        return key is not None and headers.get("authorization") != f"Bearer {key}"

    async def _page(self, method: str, path: str) -> None:
        truth = self._truth
        pages = truth.pages()
        if method == "POST" and truth.trace_folder is not None:
            profile(truth, path)
            pages = {"/start_profile": "", "/stop_profile": ""}
            method = "GET"
        if "hosted" in truth.faults:
            pages = {"/v1/models": {"object": "list", "data": [{"id": truth.model, "object": "model"}]}}
        page = pages.get(path) if method == "GET" else None
        if page is None:
            await self._send(404, "application/json", b'{"detail":"Not Found"}')
        elif isinstance(page, str):
            await self._send(200, "text/plain; version=0.0.4; charset=utf-8", page.encode())
        else:
            await self._send(200, "application/json", json.dumps(page).encode())

    async def _send(self, status: int, kind: str, body: bytes) -> None:
        head = (
            f"HTTP/1.1 {status} Truth\r\nserver: uvicorn\r\ncontent-length: {len(body)}\r\ncontent-type: {kind}\r\n"
            f"{self._more}\r\n"
        )
        self._writer.write(head.encode() + body)
        await self._writer.drain()

    async def _complete(self, headers: dict[str, str], body: bytes, *, is_chat: bool) -> None:
        try:
            ask = take_ask(self._truth, headers, body, is_chat=is_chat)
        except RefusedError as refused:
            self._more += "retry-after: 7\r\n" if refused.status == RATE_LIMITED else ""
            await self._send(refused.status, "application/json", json.dumps(refused.body).encode())
            self._more = self._more.removesuffix("retry-after: 7\r\n")
            return
        if "prompt_logprobs" in ask.body:
            await self._weigh(ask)
            return
        self._truth.running += 1
        self._truth.note("received", ask.request_id, running=self._truth.running, prompt=len(ask.prompt))
        self._truth.counts["prompt_tokens"] += len(ask.prompt)
        try:
            await (self._stream(ask) if ask.option("stream") else self._whole(ask))
        except (ConnectionError, asyncio.CancelledError):
            self._end(ask, "abort")
            raise

    async def _embed(self, raw: bytes) -> None:
        """Answer with the vector of one prompt, as vLLM's pooling runner does."""
        truth = self._truth
        prompt = token_ids(json.loads(raw).get("input"))
        truth.completions += 1
        number = truth.completions
        truth.running += 1
        await asyncio.sleep(truth.ttft_s)
        truth.running -= 1
        truth.counts["prompt_tokens"] += len(prompt) + ("miscount" in truth.faults)
        truth.finished["stop"] += 1
        vector = [0.0] * 8 if truth.strikes("odd_vectors", number) else [token / 10_000 for token in (prompt * 8)[:8]]
        data = [{"index": 0, "object": "embedding", "embedding": vector}]
        counted = {"prompt_tokens": len(prompt), "total_tokens": len(prompt), "completion_tokens": 0}
        said = {"id": f"embd-{number}", "object": "list", "model": truth.model, "data": data, "usage": counted}
        await self._send(200, "application/json", json.dumps(said).encode())

    def _end(self, ask: Ask, reason: str) -> None:
        self._truth.running -= 1
        self._truth.finished[reason] += 1
        self._truth.counts["generation_tokens"] += "miscount" in self._truth.faults
        self._truth.note("ended", ask.request_id, running=self._truth.running)

    async def _whole(self, ask: Ask) -> None:
        async for _batch in token_events(self._truth, ask):
            pass  # a plain answer is sent when its last token is there
        self._truth.counts["generation_tokens"] += ask.output_tokens
        whole = choice(self._truth, ask, 0, ask.output_tokens, is_last=True)
        whole["finish_reason"] = finish_reason(ask)
        whole |= {"message": {"role": "assistant", **whole.pop("delta")}} if ask.is_chat else {}
        self._end(ask, finish_reason(ask))
        more = {"usage": usage(self._truth, ask), **self._truth.handing_over(ask)}
        answer = chunk(self._truth, ask, choices=[whole], **more)
        await self._send(200, "application/json", json.dumps(answer).encode())

    async def _weigh(self, ask: Ask) -> None:
        """Answer at once with the prompt's log-probabilities and the likeliest tokens: what a load is not made of."""
        self._truth.counts["prompt_tokens"] += len(ask.prompt)
        self._truth.counts["generation_tokens"] += ask.output_tokens
        self._truth.finished[finish_reason(ask)] += 1
        said = chunk(self._truth, ask, choices=[weighed(self._truth, ask)], usage=usage(self._truth, ask))
        await self._send(200, "application/json", json.dumps(said).encode())

    async def _stream(self, ask: Ask) -> None:
        head = f"HTTP/1.1 200 OK\r\nserver: uvicorn\r\n{self._more}content-type: text/event-stream; charset=utf-8\r\n"
        self._writer.write(f"{head}x-request-id: {ask.request_id}\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        watch = asyncio.create_task(self._pump(ask))
        gone = asyncio.create_task(self._gone())
        await asyncio.wait({watch, gone}, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        # Where this host is busy, writing fails before the look at the connection.
        if not watch.done() or isinstance(watch.exception(), ConnectionError):
            watch.cancel()
            if "ignores_cancel" in self._truth.faults:
                self._truth.counts["generation_tokens"] += ask.output_tokens - self._written
            raise ConnectionResetError
        await watch
        self._end(ask, finish_reason(ask))
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def _pump(self, ask: Ask) -> None:
        self._written = 0
        async for batch in answer_events(self._truth, ask):
            content = b"".join(written for _kind, _tokens, written in batch)
            if not content:
                continue  # an empty chunk would end the answer
            for kind, tokens, _written in batch:
                self._truth.note(kind, ask.request_id, tokens=tokens)
                self._truth.counts["generation_tokens"] += tokens
                self._written += tokens
            self._writer.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
            await self._writer.drain()

    async def _gone(self) -> None:
        """Return once the client has left: a connection that is lost is one without a transport to write to."""
        while not (self._reader.at_eof() or self._writer.transport.is_closing()):  # noqa: ASYNC110 -- nothing to await
            await asyncio.sleep(0.01)


def profile(truth: Truth, path: str) -> None:
    """Begin a trace, or write it as vLLM's torch profiler does: an event for each completion since then."""
    if path == "/start_profile":
        truth.traced_from = truth.completions
    elif path == "/stop_profile" and truth.trace_folder is not None:
        names = ["aten::mm"] * (truth.completions - truth.traced_from)
        events = [{"ph": "X", "cat": "cpu_op", "name": name, "ts": at, "dur": 1} for at, name in enumerate(names)]
        trace = truth.trace_folder / "rank0.1795668121034021675.pt.trace.json.gz"
        trace.write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()))
        (truth.trace_folder / "rank0.profiler_out.txt").write_text("Self CPU time total: 1ms\n")


def say(text: str) -> None:
    """Write log lines where vLLM writes them."""
    sys.stderr.write(text)
    sys.stderr.flush()


def fail_at_start(truth: Truth) -> None:
    """Die as vLLM does when the KV cache does not fit; half of the context would."""
    fits = truth.context // 2 // BLOCK_TOKENS * BLOCK_TOKENS
    say(OOM_LINES.format(context=truth.context, fits=fits))
    raise SystemExit(1)


def stop_on(loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    """Stop in an orderly way on the usual two signals."""
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)


async def serve(truth: Truth) -> None:
    """Start as vLLM starts, serve until told to stop, and end with 0."""
    stopped = asyncio.Event()
    stop_on(asyncio.get_running_loop(), stopped)
    if "slow_child" in truth.faults:
        subprocess.Popen([sys.executable, "-c", STUBBORN_CHILD])  # noqa: ASYNC220 -- before anything is served
    say(truth.starting())
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), truth.start_s)
    if "oom_at_start" in truth.faults:
        fail_at_start(truth)
    if "never_ready" in truth.faults:
        await stopped.wait()
    if not stopped.is_set():
        await listen(truth, stopped)
    say(f"(APIServer pid={os.getpid()}) INFO:     Application shutdown complete.\n")


async def listen(truth: Truth, stopped: asyncio.Event) -> None:
    """Answer until stopped."""
    conversations: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(Conversation(truth, reader, writer).hold())
        conversations.add(task)
        task.add_done_callback(conversations.discard)

    tls = None
    if "TRUTH_TLS" in os.environ:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(os.environ["TRUTH_TLS"])
    server = await asyncio.start_server(accept, truth.host, truth.port, backlog=2048, limit=1 << 26, ssl=tls)
    truth.reporter = server
    say(truth.listening(server.sockets[0].getsockname()[1]))
    await stopped.wait()
    server.close()
    for task in list(conversations):
        task.cancel()
    await asyncio.gather(*conversations, return_exceptions=True)


def read_truth(arguments: list[str]) -> Truth:
    """Read the command line and the environment; flags of vLLM that change nothing here are let pass."""
    parser = argparse.ArgumentParser(prog="vllm", allow_abbrev=False)
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name")
    parser.add_argument("--max-model-len", type=int, default=4096)
    parser.add_argument("--lora-modules", nargs="+", default=[])
    parser.add_argument("--profiler-config.torch_profiler_dir", dest="traces", type=Path)
    parser.add_argument("--no-enable-prefix-caching", action="store_true")
    parser.add_argument("--enable-prompt-tokens-details", action="store_true")
    parser.add_argument("--enable-per-request-metrics", action="store_true")
    parser.add_argument("--runner", default="auto")
    parser.add_argument("--kv-transfer-config", type=json.loads, default={})
    known, _others = parser.parse_known_args(arguments)
    log = os.environ.get("TRUTH_LOG")
    return Truth(
        model=known.served_model_name or known.model,
        path=known.model,
        host=known.host,
        port=known.port,
        context=known.max_model_len,
        is_caching=not known.no_enable_prefix_caching,
        tells_cached=known.enable_prompt_tokens_details,
        tells_times=known.enable_per_request_metrics,
        embeds=known.runner == "pooling",
        kv_role=known.kv_transfer_config.get("kv_role", ""),
        ttft_s=float(os.environ.get("TRUTH_TTFT_MS", "20")) / 1000,
        itl_s=float(os.environ.get("TRUTH_ITL_MS", "2")) / 1000,
        knee=float(os.environ.get("TRUTH_KNEE", "inf")),
        trace_folder=known.traces,
        adapters=tuple(one.partition("=")[0] for one in known.lora_modules),
        start_s=float(os.environ.get("TRUTH_START_S", "0.2")),
        faults=read_faults(os.environ.get("TRUTH_FAULT", "")),
        log=Path(log).open("a", encoding="utf-8") if log else None,
    )


def main(arguments: list[str]) -> None:
    """Be `vllm`."""
    if arguments == ["--version"]:
        sys.stdout.write(f"{VERSION}+truth\n")
        return
    asyncio.run(serve(read_truth(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
