"""Stands in for `llama-server`: the truth server with llama.cpp's flags, pages, log lines and names of counters.

    python -m tests.emulators.truth_llama --model FILE --host H --port P --alias NAME --ctx-size N --parallel N

Lines and names follow the real start in tests/data/llama-cpp.
"""

import argparse
import asyncio
import sys
from dataclasses import dataclass

from tests.emulators.truth_server import Truth, read_truth, serve

BUILD = "b1-0c1e570"
LOG = """\
0.00.005.920 I srv    load_model: loading model '{path}'
0.00.067.233 I srv    load_model: initializing, n_slots = {slots}, n_ctx_slot = {context}, kv_unified = 'false'
0.00.068.934 I srv  llama_server: model loaded
"""
COUNTERS = {"prompt_tokens_total": "prompt_tokens", "tokens_predicted_total": "generation_tokens"}


@dataclass(slots=True)
class TruthOfLlama(Truth):
    """What differs from vLLM."""

    slots: int = 1

    def metrics(self) -> str:
        """Write the Prometheus page."""
        counts = {name: self.counts[ours] for name, ours in COUNTERS.items()}
        gauges = {"requests_processing": self.running, "requests_deferred": 0}
        return "".join(f"llamacpp:{name} {value}\n" for name, value in (counts | gauges).items())

    def pages(self) -> dict[str, object]:
        """What each path answers."""
        settings = {"build_info": BUILD, "default_generation_settings": {"n_ctx": self.context}}
        models = {"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": "llamacpp"}]}
        return {"/health": {"status": "ok"}, "/props": settings, "/v1/models": models, "/metrics": self.metrics()}

    def starting(self) -> str:
        """Write the log up to the moment when it is about to listen."""
        return LOG.format(path=self.path, slots=self.slots, context=self.context)

    def listening(self, port: int) -> str:
        """Write the log's last line of a start."""
        return f"0.00.068.963 I srv  llama_server: listening on http://{self.host}:{port}\n"


def read_llama(arguments: list[str]) -> TruthOfLlama:
    """Read llama.cpp's command line; it divides its context by its slots."""
    parser = argparse.ArgumentParser(prog="llama-server", allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--ctx-size", type=int, required=True)
    parser.add_argument("--parallel", type=int, required=True)
    known, _others = parser.parse_known_args(arguments)
    listen = ["--host", known.host, "--port", known.port, "--served-model-name", known.alias]
    size = ["--max-model-len", str(known.ctx_size // known.parallel), "--no-enable-prefix-caching"]
    truth = read_truth(["serve", known.model, *listen, *size])
    said = {name: getattr(truth, name) for name in Truth.__dataclass_fields__}
    return TruthOfLlama(**said, slots=known.parallel)


if __name__ == "__main__":
    asyncio.run(serve(read_llama(sys.argv[1:])))
