import json

import numpy as np
import pytest

from bench.errors import UnreadableResultError
from tests.data.formats.closed_loop import closed_loop
from tests.warehouse.importers.reading import FORMATS, claims_at, claims_of

HERE = FORMATS / "inference_perf"
CLIENT, SERVER = "stage_0_lifecycle_metrics.json", "stage_0_prometheus_metrics.json"


def test_the_client_says_seconds() -> None:
    run = closed_loop(seed=11)

    (claim,) = claims_at(HERE / CLIENT)

    assert claim.latency("ttft", "mean") == pytest.approx(run.ttft_s.mean())
    assert claim.latency("tpot", "p99") == pytest.approx(np.percentile(run.tpot_s, 99))
    assert claim.latency("e2el", "p999") == pytest.approx(np.percentile(run.e2el_s, 99.9))
    assert claim.said.request_throughput_per_s == pytest.approx(400 / run.duration_s)
    assert (claim.said.completed, claim.said.failed, claim.said.total_output_tokens) == (400, 0, 51_200)


def test_the_servers_file_of_the_same_stage_is_laid_beside() -> None:
    run, server = closed_loop(seed=11), claims_at(HERE / CLIENT)[0].server

    assert server is not None
    assert (server.requests, server.prompt_tokens, server.generated_tokens) == (400, 204_800, 51_200)
    assert server.ttft_mean_s == pytest.approx(run.ttft_s.mean() * 0.98)
    assert server.preemptions == 0


@pytest.mark.parametrize("told", [37.5, {"mean": 37.5}], ids=["alone", "as a mean"])
def test_hits_of_the_prefix_cache_and_preemptions_are_told_as_a_number_or_as_a_mean(told: object) -> None:
    report = json.loads((HERE / SERVER).read_text())
    report["successes"] |= {"prefix_cache_hit_percent": told, "num_preemptions_total": told}

    server = claims_of(SERVER, json.dumps(report))[0].server

    assert server is not None
    assert (server.prefix_hits, server.prefix_queries) == (76_800, 204_800)
    assert server.preemptions == 37.5


def test_without_the_servers_file_nothing_is_said_of_it() -> None:
    assert claims_of(CLIENT, (HERE / CLIENT).read_text())[0].server is None


def test_a_servers_file_that_is_broken_is_a_remark_and_no_end() -> None:
    beside = {SERVER.replace(".", "__"): "{"}

    (claim,) = claims_of(CLIENT, (HERE / CLIENT).read_text(), **beside)

    assert claim.server is None
    assert claim.said.completed == 400
    assert [remark.code for remark in claim.remarks] == ["unreadable_value"]
    assert SERVER in claim.remarks[0].message


def test_the_servers_file_says_whose_side_it_is() -> None:
    (beside,), (alone,) = claims_at(HERE / SERVER), claims_of(SERVER, (HERE / SERVER).read_text())

    assert beside.lineage.place == f"the server's side of {CLIENT}"
    assert alone.lineage.place == ""
    assert alone.said.completed is None
    assert alone.server is not None


def test_a_summary_without_load_is_read() -> None:
    report = json.loads((HERE / CLIENT).read_text()) | {"load_summary": {}}

    (claim,) = claims_of("summary_lifecycle_metrics.json", json.dumps(report))

    assert claim.asked.request_count is None
    assert claim.said.completed == 400


def test_a_mean_of_more_tokens_than_a_number_holds_gives_no_total() -> None:
    report = json.loads((HERE / CLIENT).read_text())
    report["successes"]["output_len"] = {"mean": 1e308}

    (claim,) = claims_of(CLIENT, json.dumps(report))

    assert claim.said.total_output_tokens is None


def test_a_requested_rate_makes_it_an_open_loop() -> None:
    report = json.loads((HERE / CLIENT).read_text())
    report["load_summary"]["requested_rate"] = 5.0

    asked = claims_of(CLIENT, json.dumps(report))[0].asked

    assert (asked.request_rate_per_s, asked.is_open_loop) == (5.0, True)


def test_normalized_time_is_not_loaded_as_tpot() -> None:
    (claim,) = claims_at(HERE / CLIENT)

    assert "successes.latency.normalized_time_per_output_token" in claim.unread


def stage(**load: object) -> str:
    """A stage of two requests, with this load."""
    report = json.loads((HERE / CLIENT).read_text())
    report["load_summary"] = {"count": 2, **load}
    report["successes"]["count"] = 2
    return json.dumps(report)


def request(start_s: float, tokens: int) -> dict[str, object]:
    """A request of the run, with this many tokens by the server and twice as many by the client."""
    response = {
        "output_tokens": 2 * tokens,
        "server_usage": {"prompt_tokens": 9, "completion_tokens": tokens},
        "output_token_times": [start_s + 0.1, start_s + 0.2],
    }
    computed = {"time_to_first_token": 0.1, "time_per_output_token": 0.01}
    info = {"response_metrics": response}
    return {"start_time": start_s, "end_time": start_s + 0.5, "info": info, "computed_metrics": computed}


def test_a_closed_loop_writes_a_rate_that_it_does_not_keep() -> None:
    asked = claims_of(CLIENT, stage(requested_rate=40.0, concurrency=4))[0].asked

    assert (asked.concurrency, asked.request_rate_per_s, asked.is_open_loop) == (4, None, False)


@pytest.mark.parametrize("by_server", ["true", "false"])
def test_requests_of_all_stages_are_told_apart_by_when_they_were_sent(by_server: str) -> None:
    requests = [request(at, tokens) for at, tokens in ((30.0, 7), (10.0, 5), (40.0, 8), (20.0, 6))]
    config = f"report:\n  request_lifecycle:\n    use_server_output_tokens: {by_server}\n"
    beside = {
        CLIENT: stage(),
        "per_request_lifecycle_metrics.json": json.dumps(requests),
        "config.yaml": f"api:\ndata:\nload:\n{config}",
    }

    (claim,) = claims_of("stage_1_lifecycle_metrics.json", stage(), **beside)

    assert claim.series is not None
    assert claim.series.start_s is not None
    assert claim.series.start_s.tolist() == [30.0, 40.0]
    assert claim.series.output_tokens is not None
    assert claim.series.output_tokens.tolist() == ([7, 8] if by_server == "true" else [14, 16])
    assert claim.series.e2el_s == pytest.approx([0.5, 0.5])
    assert claim.series.gap_s == pytest.approx([0.1, 0.1])


def test_a_file_of_other_requests_is_no_series() -> None:
    beside = {"per_request_lifecycle_metrics.json": json.dumps([request(1.0, 5)])}

    assert claims_of(CLIENT, stage(), **beside)[0].series is None


def test_requests_alone_are_a_run_of_requests() -> None:
    failed = {**request(4.0, 0), "error": {"error_type": "timeout", "error_msg": "no answer"}}

    (claim,) = claims_of("per_request_lifecycle_metrics.json", json.dumps([request(1.0, 5), request(2.0, 7), failed]))

    assert (claim.said.completed, claim.said.failed, claim.said.total_output_tokens) == (2, 1, 12)
    assert claim.said.duration_s == pytest.approx(1.5)
    assert claim.series is not None
    assert claim.series.ttft_s == pytest.approx([0.1] * 3)


def test_an_entry_that_is_no_request_is_named() -> None:
    with pytest.raises(UnreadableResultError, match=r"requests\[1\] = 3 is not an object"):
        claims_of("per_request_lifecycle_metrics.json", json.dumps([request(1.0, 5), 3]))


@pytest.mark.parametrize(("factor", "has_tpot"), [(1.0, True), (4.0, False)])
def test_gaps_between_events_of_several_tokens_are_no_tpot(factor: float, *, has_tpot: bool) -> None:
    report = json.loads((HERE / CLIENT).read_text())
    latency = report["successes"]["latency"]
    for name in ("time_per_output_token", "inter_token_latency"):
        latency[name] = {statistic: factor * value for statistic, value in latency[name].items()}

    (claim,) = claims_of(CLIENT, json.dumps(report))

    assert ("tpot" in claim.latency_s, "itl" in claim.latency_s) == (has_tpot, True)
