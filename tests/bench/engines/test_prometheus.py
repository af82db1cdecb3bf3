"""The numbers of a Prometheus text, as exporters and proxies write it."""

import pytest

from bench.engines import prometheus


def test_a_sample_with_a_time_stamp_is_read() -> None:
    text = 'vllm:num_requests_running{engine="0"} 3 1795555555123\nvllm:kv_cache_usage_perc 0.25 1795555555123\n'

    assert prometheus.sums(text, "vllm") == {"num_requests_running": 3.0, "kv_cache_usage_perc": 0.25}


def test_a_label_may_hold_a_brace_or_a_quote() -> None:
    text = 'vllm:request_success_total{model="a}\\"b",finished_reason="length"} 2\n'

    found = prometheus.sums(text, "vllm", ("finished_reason",))

    assert found == {"request_success_total": 2.0, "request_success_total.length": 2.0}


@pytest.mark.parametrize("line", ["vllm:other one", "vllm:other", 'vllm:other{model="a} 1', "vllm:other " + "9" * 400])
def test_a_line_that_is_no_sample_costs_only_itself(line: str) -> None:
    assert prometheus.sums(f"vllm:kept 1\n{line}\nvllm:after 2\n", "vllm") == {"kept": 1.0, "after": 2.0}


def test_metrics_of_others_and_buckets_are_left_out() -> None:
    text = '# TYPE vllm:a counter\nvllm:a 1\nvllm:a_created 9\nvllm:b_bucket{le="1"} 4\nprocess_cpu 7\nsglang:a 5\n'

    assert prometheus.sums(text, "vllm") == {"a": 1.0}
