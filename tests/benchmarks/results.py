"""Results made by hand."""

from datetime import UTC, datetime

from benchmarks.client_faults import ROLE_FIRST
from benchmarks.client_result import ClientHost, FaultRun, Numbers, Result, Run
from benchmarks.clients.client import POOLED
from benchmarks.clients.meter import KERNEL, OWN


def numbers(**changes: object) -> Numbers:
    perfect = {
        **dict.fromkeys(Numbers.model_fields, 0.0),
        "itl_metric": POOLED,
        "live_streams": 100.0,
        "load_share": 1.0,
        "cpu_us_per_token": 10.0,
        "ok": 300,
        "failed": 0,
    }
    return Numbers.model_validate({**perfect, **changes})


def run(client: str, rows: dict[str, Numbers], **changes: object) -> Run:
    plain = {"client": client, "streams": 100, "ttft_ms": 200.0, "itl_ms": 20.0, "output_tokens": 100, "repeat": 0}
    return Run.model_validate(
        {**plain, "place": 0, "wall_s": 10.0, "rows": rows, "remark": None, "reason": None, **changes}
    )


def meter_run(ttft_ms: float = 0.1, itl_ms: float = 0.01, **changes: object) -> Run:
    found = numbers(ttft_mean_error_ms=ttft_ms, itl_p99_error_ms=itl_ms)
    return run("meter", {KERNEL: found, OWN: found}, **changes)


def peer_run(client: str, ttft_ms: float, itl_ms: float, **changes: object) -> Run:
    return run(client, {client: numbers(ttft_mean_error_ms=ttft_ms, itl_p99_error_ms=itl_ms)}, **changes)


def fault(client: str, *counts: int | None, ttft_ms: float | None = 100.0, reason: str | None = None) -> FaultRun:
    ok, failed, tokens = counts or (None, None, None)
    return FaultRun(
        fault=ROLE_FIRST,
        client=client,
        ok=ok,
        failed=failed,
        output_tokens=tokens,
        ttft_mean_ms=ttft_ms,
        itl_mean_ms=None,
        reason=reason,
    )


def result(*runs: Run, faults: tuple[FaultRun, ...] = ()) -> Result:
    return Result(
        made_at=datetime(2026, 3, 1, tzinfo=UTC),
        command="python -m benchmarks.client_error --made-by-hand",
        seed=7,
        host=ClientHost(cpu_model="A | CPU", cores=2, kernel="6.1", python="3.11.7"),
        versions={"meter": "1"},
        runs=runs,
        faults=faults,
    )
