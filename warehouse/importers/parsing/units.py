"""Factors from the units in files to ours."""

TIME = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
TIME |= {"s/token": 1.0, "ms/token": 1e-3}
TOKEN_RATE = dict.fromkeys(
    ("tokens/s", "tokens/sec", "tokens/second", "tok/s", "tok/sec", "tps", "output tokens/sec"), 1.0
)
REQUEST_RATE = dict.fromkeys(
    ("requests/s", "requests/sec", "requests/second", "req/s", "queries/s", "samples/s", "queries/sec"), 1.0
)
COUNT = dict.fromkeys(("count", "requests", "tokens", "request", "token"), 1.0)
MEMORY_GIB = {"bytes": 2.0**-30, "b": 2.0**-30, "kib": 2.0**-20, "mib": 2.0**-10, "gib": 1.0, "tib": 2.0**10}
MEMORY_GIB |= {"mb": 1e6 / 2**30, "gb": 1e9 / 2**30, "tb": 1e12 / 2**30}
POWER = {"w": 1.0, "watts": 1.0, "mw": 1e-3, "kw": 1e3}
ENERGY = {"j": 1.0, "mj": 1e-3, "kj": 1e3, "wh": 3600.0, "kwh": 3.6e6, "uj": 1e-6}
