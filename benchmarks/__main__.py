"""`make bench`: every benchmark, one after another."""

from benchmarks import night_overhead, warehouse_load

for benchmark in (warehouse_load, night_overhead):
    print(f"\n{(benchmark.__doc__ or '').splitlines()[0]}", flush=True)
    benchmark.main([])
