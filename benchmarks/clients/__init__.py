"""The load clients of the benchmark, one file each."""

from benchmarks.clients import aiperf, bare_loop, guidellm, meter, sglang_bench, vllm_bench, vllm_rs
from benchmarks.clients.client import Client

CLIENTS: tuple[Client, ...] = (
    meter.CLIENT,
    meter.WITHOUT_KERNEL_STAMPS,
    bare_loop.CLIENT,
    vllm_bench.CLIENT,
    vllm_rs.CLIENT,
    sglang_bench.CLIENT,
    guidellm.CLIENT,
    aiperf.CLIENT,
)
