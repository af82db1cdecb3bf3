"""Sessions in the warehouse: columns of their run, and a row each."""

from pathlib import Path

import pytest

from tests.warehouse.folders import Shape, Told, write_night, write_run
from warehouse.lake.query import run_sql
from warehouse.load import load_night

NIGHT = "2026-03-01"
OF_SESSIONS = (
    *("trace_format", "trace_sha256", "trace_speed", "trace_from_s"),
    *("session", "turn", "sessions_done", "sessions_open_mean", "session_e2e_mean_s", "session_e2e_p50_s"),
    *("session_e2e_p99_s", "session_p50_tok_per_s", "usd_per_session"),
    *("planned_cache_hit_share", "server_cache_hit_share", "ev_replay_late_p99_ms", "ev_sessions_open_share"),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 400 sessions of two turns: 16 prompt tokens each, 8 of the second in the cache; the last one failed."""
    data = tmp_path_factory.mktemp("sessions")
    shape = Shape(requests=800, warmup=0, concurrency=2, turns=2, failed=1, gap_ms=2.0, tokens=11)
    night = write_night(data, NIGHT, {"talks": shape})
    hits: dict[str, float] = {"prefix_cache_queries_total": 12800, "prefix_cache_hits_total": 3200}
    write_run(data, night, night.runs[0], shape, Told(counters=hits))
    load_night(data, NIGHT)
    return data


def test_a_run_has_its_sessions_and_its_cache_hits_as_shares(data: Path) -> None:
    (row,) = run_sql(data, f"SELECT {', '.join(OF_SESSIONS[6:15])}, duration_s FROM measurements").dicts()

    assert row["sessions_done"] == 399
    assert row["sessions_open_mean"] == pytest.approx(1.0, abs=0.01)  # both turns of one are sent at the same time
    times = [row[f"session_e2e_{name}_s"] for name in ("mean", "p50", "p99")]
    assert times == pytest.approx([0.04] * 3, abs=0.001)
    assert row["session_p50_tok_per_s"] == pytest.approx(22 / 0.08, rel=0.01)
    assert row["usd_per_session"] == pytest.approx(2.0 / 3600 * row["duration_s"] / 399)
    assert (row["planned_cache_hit_share"], row["server_cache_hit_share"]) == (0.25, 0.25)


def test_each_session_is_a_row(data: Path) -> None:
    rows = run_sql(data, "SELECT * FROM sessions ORDER BY session").dicts()

    assert len(rows) == 400
    first = rows[0]
    assert (first["turns"], first["turns_done"], first["input_tokens"], first["output_tokens"]) == (2, 2, 32, 22)
    assert first["e2e_s"] == pytest.approx(0.04, abs=0.001)
    assert first["waited_s"] == pytest.approx(0.08, abs=0.001)
    assert (first["cached_share_planned"], first["cached_share"]) == (0.25, 0.25)
    assert (rows[-1]["turns"], rows[-1]["turns_done"]) == (2, 1)
