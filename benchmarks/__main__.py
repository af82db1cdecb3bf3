"""`make bench`: every benchmark, one after another."""

from benchmarks import audit_speed, billed_minutes, client_error, night_overhead, warehouse_load

for benchmark, arguments in (
    (warehouse_load, []),
    (audit_speed, []),
    (billed_minutes, []),
    (client_error, ["--capacity"]),
    (client_error, ["--faults"]),
    (night_overhead, []),
):
    print(f"\n{(benchmark.__doc__ or '').splitlines()[0]} {' '.join(arguments)}".rstrip(), flush=True)
    benchmark.main(arguments)
