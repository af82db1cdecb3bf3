"""The least work a load client in Python can do: wait, read, time, store. It shows what a token costs on this host.

`python bare_loop.py PORT STREAMS WARMUP REQUESTS TOKENS FILE`. It has no HTTP parser, no error
handling and no schedule, and counts every read as a token. It separates a client's cost from the host's.
"""

import gc
import json
import select
import socket
import sys
from itertools import pairwise
from pathlib import Path
from time import monotonic_ns

SO_TIMESTAMPNS = 35  # 64-bit Linux
END = b"0\r\n\r\n"
READ_BYTES, ANCILLARY_BYTES, MOST_EVENTS = 16_384, 64, 4096

Read = tuple[int, object, bytes]


def request(tokens: int) -> bytes:
    """One request, the same every time."""
    body = json.dumps(
        {"model": "truth", "prompt": [17] * 64, "max_tokens": tokens, "stream": True, "return_token_ids": True}
    )
    return f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def connect(port: int) -> socket.socket:
    """A connection with kernel timestamps enabled."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.connect(("127.0.0.1", port))
    sock.setblocking(False)
    return sock


def drive(port: int, streams: int, total: int, payload: bytes) -> list[tuple[int, list[Read]]]:
    """Keep this many streams in flight; returns the send time and the reads of each response, in the order they end."""
    sockets = {sock.fileno(): sock for sock in (connect(port) for _ in range(streams))}
    poller = select.epoll()
    for fd in sockets:
        poller.register(fd, select.EPOLLIN)
    gc.collect()
    gc.freeze()
    gc.disable()
    sent: dict[int, int] = {}
    reads: dict[int, list[Read]] = {fd: [] for fd in sockets}
    for fd, sock in sockets.items():
        sent[fd] = monotonic_ns()
        sock.send(payload)
    issued = streams
    ended: list[tuple[int, list[Read]]] = []
    while len(ended) < total:
        for fd, _mask in poller.poll(0.05, MOST_EVENTS):
            data, ancillary, _flags, _address = sockets[fd].recvmsg(READ_BYTES, ANCILLARY_BYTES)
            now = monotonic_ns()
            reads[fd].append((now, ancillary, data))
            if data.endswith(END):
                ended.append((sent[fd], reads[fd]))
                reads[fd] = []
                if issued < total:
                    issued += 1
                    sent[fd] = monotonic_ns()
                    sockets[fd].send(payload)
    return ended


def main() -> None:
    """Drive the load and write the time to the first read and the gaps between reads, in milliseconds."""
    port, streams, warmup, requests, tokens = (int(word) for word in sys.argv[1:6])
    answers = sorted(drive(port, streams, warmup + requests, request(tokens)))[warmup:]
    ttft_ms, gap_ms = [], []
    for sent_ns, reads in answers:
        # The response's header is a read of its own, before the first token.
        times = [at for at, _ancillary, data in reads if b"data:" in data]
        ttft_ms.append((times[0] - sent_ns) / 1e6)
        gap_ms += [(later - at) / 1e6 for at, later in pairwise(times)]
    Path(sys.argv[6]).write_text(json.dumps({"ttft_ms": ttft_ms, "gap_ms": gap_ms}))


if __name__ == "__main__":
    main()
