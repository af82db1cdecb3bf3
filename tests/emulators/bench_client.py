"""Stands in for `vllm bench serve`: the same flags and result file, over real HTTP, late by a known time.

Each first token is reported BENCH_LATE_MS later than it came, so that a calibration has something to find.
"""

import argparse
import http.client
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

LATE_S = float(os.environ.get("BENCH_LATE_MS", "0")) / 1e3


def read_flags(argv: list[str]) -> argparse.Namespace:
    """The flags that this client minds; of the others it reads nothing."""
    parser = argparse.ArgumentParser()
    for name in ("base-url", "endpoint", "model", "result-dir", "result-filename"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("random-input-len", "random-output-len", "num-prompts", "num-warmups", "max-concurrency"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser.parse_known_args(argv)[0]


def event_times(asked: argparse.Namespace) -> Iterator[float]:
    """When one request was sent, then when each of its tokens came."""
    where = urlsplit(asked.base_url)
    body = {
        "model": asked.model,
        "prompt": list(range(300, 300 + asked.random_input_len)),
        "max_tokens": asked.random_output_len,
        "stream": True,
        "ignore_eos": True,
        "stream_options": {"include_usage": True},
    }
    with closing(http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)) as connection:
        yield time.monotonic()
        connection.request("POST", asked.endpoint, json.dumps(body))
        for line in connection.getresponse():
            if line.startswith(b"data: {") and json.loads(line[6:])["choices"]:
                yield time.monotonic()


def main(argv: list[str]) -> None:
    """Send what is asked and write the result file."""
    asked = read_flags(argv)
    with ThreadPoolExecutor(asked.max_concurrency) as pool:
        list(pool.map(lambda _at: list(event_times(asked)), range(asked.num_warmups)))
        began = time.monotonic()
        times = list(pool.map(lambda _at: list(event_times(asked)), range(asked.num_prompts)))
        duration = time.monotonic() - began
    tokens = [len(one) - 1 for one in times]
    result = {
        "num_prompts": asked.num_prompts,
        "duration": duration,
        "output_throughput": sum(tokens) / duration,
        "input_lens": [asked.random_input_len] * len(times),
        "output_lens": tokens,
        "start_times": [one[0] for one in times],
        "ttfts": [one[1] - one[0] + LATE_S for one in times],
        "itls": [[late - early for early, late in pairwise(one[1:])] for one in times],
        "errors": [""] * len(times),
    }
    Path(asked.result_dir, asked.result_filename).write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
