"""Run an engine as two servers behind a router: one computes the prompts, the other one the answers.

    disaggregated_program.py '{"port": 8000, "prefill": {...}, "decode": {...}, "prefill_log": FILE}'

Each server has `argv`, `port` and `environment`, the variables that it gets beside ours. The prefill server logs into
`prefill_log`, and the decode server where this program does.

A request for a completion first goes to the prefill server, for one token that is not used, and then, with the
`kv_transfer_params` of that answer, to the decode server, whose bytes pass through as they come. All else is the decode
server's. `/health` is good when both are, and `/metrics` has the counters of all three. The program exits with 1 when a
server exits by itself, and ends both on SIGTERM. Standard library only, of Python 3.11.
"""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMPLETIONS = ("/v1/completions", "/v1/chat/completions")
READ_MAX = 1 << 20  # bytes of a message's head, and of what is read at once
PAGE_S, LOOK_S, STOP_S = 10.0, 0.2, 10.0
LOG_TAIL = 100  # lines of the prefill server's log that are shown when it exits
# As vLLM's connectors take it: the prefill server keeps the blocks until the decode server has read them.
REMOTE_DECODE = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    **dict.fromkeys(("remote_engine_id", "remote_block_ids", "remote_host", "remote_port")),
}
RUNNING, WAITING = "vllm:num_requests_running{", "vllm:num_requests_waiting{"
END_OF_STREAM = b"0\r\n\r\n"


@dataclass
class Timed:
    """How many waits there were, and their seconds."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one more."""
        self.count += 1
        self.seconds += seconds


@dataclass
class Router:
    """The ports of both servers, and what was counted."""

    prefill: int
    decode: int
    requests: int = 0
    in_flight: int = 0
    prefills: Timed = field(default_factory=Timed)  # from a request to the end of its prefill
    handovers: Timed = field(default_factory=Timed)  # from there to the first bytes of a token

    async def page(self, path: str) -> tuple[int, bytes]:
        """The status and text of `/health` and `/metrics`."""
        asked = [asyncio.to_thread(fetch, port, path) for port in (self.prefill, self.decode)]
        (prefill_status, prefill), (decode_status, decode) = await asyncio.gather(*asked)
        status = max(prefill_status, decode_status)
        if path != "/metrics" or status != http.client.OK:
            return status, b""
        # A request that is between the servers, or in the mail to one, is one that the engine has.
        waiting = gauge(prefill, WAITING) + gauge(decode, WAITING)
        # Under the engine's own prefix, so that who reads its counters reads these as well.
        own = {
            "num_requests_running": max(self.in_flight - waiting, 0.0),
            "router_requests_total": float(self.requests),
        }
        for name, timed in (("router_prefill_seconds", self.prefills), ("router_handover_seconds", self.handovers)):
            own |= {f"{name}_sum": timed.seconds, f"{name}_count": float(timed.count)}
        lines = "".join(f"vllm:{name} {value}\n" for name, value in own.items())
        return status, (named(decode, "decode", RUNNING) + named(prefill, "prefill") + lines).encode()


def gauge(page: str, name: str) -> float:
    """The sum of a gauge of a page over its labels."""
    return sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(name))


def named(page: str, server: str, renamed: str = "vllm:") -> str:
    """The engine's samples of a page; those that begin with `renamed` get the server before their names."""

    def in_page(line: str) -> str:
        if line.startswith(WAITING):  # what waits at either server adds up
            return line.replace("{", f'{{server="{server}",', 1)
        return line.replace("vllm:", f"vllm:{server}_", 1) if line.startswith(renamed) else line

    return "".join(in_page(line) for line in page.splitlines(keepends=True) if line.startswith("vllm:"))


def fetch(port: int, path: str) -> tuple[int, str]:
    """The status and text of a page of a server; 503 where it does not respond."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PAGE_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return http.client.SERVICE_UNAVAILABLE, ""
    finally:
        connection.close()


@dataclass
class Message:
    """The start line, the headers and the body of a request or an answer."""

    start: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """What a request asks for, without its query."""
        return self.start.split(" ")[1].partition("?")[0]

    def encoded(self) -> bytes:
        """The message as it is sent."""
        headers = self.headers | {"content-length": str(len(self.body))}
        lines = [self.start, *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


async def read_message(reader: asyncio.StreamReader) -> Message:
    """The next message of a connection; IncompleteReadError where there is none."""
    start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "transfer-encoding" in headers:
        msg = "the message has no content-length"
        raise ValueError(msg)
    return Message(start, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a server."""
    return await asyncio.open_connection("127.0.0.1", port, limit=READ_MAX)


class Conversation:
    """One connection of a client, and one to the decode server that no other client uses: answers keep their order."""

    def __init__(self, router: Router, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._router, self._reader, self._writer = router, reader, writer
        self._decode: asyncio.StreamWriter | None = None
        self._passing: asyncio.Task[None] | None = None
        self._handed_over_at: float | None = None  # of a request whose first token has not come
        self._is_in_flight = False

    async def hold(self) -> None:
        """Route until a side closes; a client that leaves takes its connection to the decode server with it."""
        try:
            while True:
                await self._route(await read_message(self._reader))
        except ValueError as error:
            self._send(http.client.BAD_GATEWAY, f"the router cannot pass this on: {error}".encode())
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._count(is_in_flight=False)
            if self._passing is not None:
                self._passing.cancel()
            for writer in (self._decode, self._writer):
                if writer is not None:
                    writer.close()

    async def _route(self, request: Message) -> None:
        if request.path in {"/health", "/metrics"}:
            self._send(*await self._router.page(request.path))
            return
        body = json.loads(request.body) if request.path in COMPLETIONS else {}
        # The log-probabilities of a prompt are those of the server that computes it.
        if request.path in COMPLETIONS and not body.get("echo") and "prompt_logprobs" not in body:
            self._count(is_in_flight=True)
            began = time.monotonic()
            answer = await self._prefill(request, body)
            if answer.start.split(" ")[1] != str(int(http.client.OK)):
                self._count(is_in_flight=False)
                self._writer.write(answer.encoded())
                return
            self._handed_over_at = time.monotonic()
            self._router.requests += 1
            self._router.prefills.add(self._handed_over_at - began)
            handed = json.loads(answer.body).get("kv_transfer_params")
            request.body = json.dumps(body | ({"kv_transfer_params": handed} if handed else {})).encode()
        if self._decode is None:
            reader, self._decode = await connect(self._router.decode)
            self._passing = asyncio.create_task(self._pass_on(reader))
        self._decode.write(request.encoded())
        await self._decode.drain()

    async def _prefill(self, request: Message, body: dict[str, Any]) -> Message:
        """The prefill server's answer of one token; a connection that is kept would be closed by the server one day."""
        left_out = {"stream", "stream_options", "min_tokens", "max_tokens", "max_completion_tokens"}
        short = {name: value for name, value in body.items() if name not in left_out}
        limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        asked = short | {limit: 1, "stream": False, "kv_transfer_params": REMOTE_DECODE}
        reader, writer = await connect(self._router.prefill)
        try:
            headers = request.headers | {"connection": "close"}
            writer.write(Message(request.start, headers, json.dumps(asked).encode()).encoded())
            await writer.drain()
            return await read_message(reader)
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader) -> None:
        """Send the client what the decode server writes, until that closes."""
        with contextlib.suppress(OSError):
            while written := await reader.read(READ_MAX):
                # The headers of a stream come before its first token, and hold no JSON.
                if self._handed_over_at is not None and b"{" in written:
                    self._router.handovers.add(time.monotonic() - self._handed_over_at)
                    self._handed_over_at = None
                if written.endswith((END_OF_STREAM, b"}")):
                    self._count(is_in_flight=False)
                self._writer.write(written)
                await self._writer.drain()
        self._writer.close()

    def _count(self, *, is_in_flight: bool) -> None:
        """Count the connection's request in, or out where it is not yet."""
        self._router.in_flight += is_in_flight - self._is_in_flight
        self._is_in_flight = is_in_flight

    def _send(self, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {int(status)} Router\r\ncontent-type: text/plain; charset=utf-8\r\n"
        self._writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)


def start(part: dict[str, Any], log: Path | None) -> subprocess.Popen[bytes]:
    """Start a server, which logs into a file or where this program does."""
    with contextlib.ExitStack() as stack:
        sink = None if log is None else stack.enter_context(log.open("ab"))
        environment = os.environ | part["environment"]
        return subprocess.Popen(part["argv"], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=environment)


async def serve(plan: dict[str, Any], servers: dict[str, subprocess.Popen[bytes]]) -> int:
    """Route until a signal to stop (0), or until a server exits (1)."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    router = Router(plan["prefill"]["port"], plan["decode"]["port"])
    held: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(Conversation(router, reader, writer).hold())
        held.add(task)
        task.add_done_callback(held.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", plan["port"], backlog=2048, limit=READ_MAX)
    while all(server.poll() is None for server in servers.values()):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), LOOK_S)
            break
    listener.close()
    for task in list(held):
        task.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    return int(not stopped.is_set())


def end(servers: dict[str, subprocess.Popen[bytes]]) -> None:
    """End both servers; whoever started this program ends what does not go by itself."""
    for server in servers.values():
        server.terminate()
    for server in servers.values():
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(STOP_S)


def main(plan: dict[str, Any]) -> int:
    """Start both servers, route, and end them."""
    log = Path(plan["prefill_log"])
    servers = {"prefill": start(plan["prefill"], log)}
    try:
        servers["decode"] = start(plan["decode"], None)
        code = asyncio.run(serve(plan, servers))
        exited = [(name, server.returncode) for name, server in servers.items() if server.poll() is not None]
    finally:
        end(servers)
    for name, status in exited if code else ():
        if name == "prefill":
            sys.stdout.write("".join(log.read_text("utf-8", "replace").splitlines(keepends=True)[-LOG_TAIL:]))
        sys.stdout.write(f"the {name} server exited with status {status}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
