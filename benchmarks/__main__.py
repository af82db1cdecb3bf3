"""`make bench`: every benchmark, one after another."""

from benchmarks import client_error, night_overhead, warehouse_load

for benchmark in (warehouse_load, client_error, night_overhead):
    print(f"\n{(benchmark.__doc__ or '').splitlines()[0]}", flush=True)
    benchmark.main([])
