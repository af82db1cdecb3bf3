import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.audit.claim import Claim
from bench.errors import ToldBesideError
from tests.data.formats.vllm_serve.make import plain, short_run
from tests.warehouse.importers.reading import FORMATS, claims_at, claims_of

OFFLINE, SWEEP = FORMATS / "vllm_offline", FORMATS / "vllm_sweep"
REAL = Path(__file__).parents[2] / "data/vllm-results"


def changed(name: str, **values: Any) -> Claim:
    result = json.loads((OFFLINE / name).read_text())
    (claim,) = claims_of("run.json", json.dumps({**result, **values}))
    return claim


def test_throughput_counts_tokens_in_and_out() -> None:
    (claim,) = claims_at(OFFLINE / "throughput.json")

    assert (claim.lineage.format, claim.said.duration_s, claim.said.completed) == ("vllm-throughput", 125.5, 1000)
    assert claim.said.total_throughput_tok_per_s == pytest.approx(384_000 / 125.5)
    assert claim.said.output_throughput_tok_per_s is None


def test_a_throughput_of_zero_is_a_failure() -> None:
    claim = changed("throughput.json", tokens_per_second=0.0)

    assert [remark.code for remark in claim.remarks] == ["failed_not_zero"]


def test_latency_is_of_whole_batches_in_order() -> None:
    (claim,) = claims_at(OFFLINE / "latency.json")

    assert claim.series is not None
    assert claim.series.iteration_s is not None
    assert claim.latency("e2el", "mean") == pytest.approx(claim.series.iteration_s.mean())
    assert set(claim.latency_s["e2el"]) == {"mean", "p10", "p25", "median", "p75", "p90", "p99"}


@pytest.mark.parametrize("value", [["x"], "x", [[1.0]], {"a": 1}])
def test_iterations_that_are_no_numbers_are_left_out(value: Any) -> None:
    claim = changed("latency.json", latencies=value)

    assert claim.series is None
    assert [remark.code for remark in claim.remarks] == ["unreadable_value"]


def test_no_iterations_are_no_series() -> None:
    assert changed("latency.json", latencies=[]).series is None


@pytest.mark.parametrize(
    ("name", "rate"), [("vllm_bench_throughput.json", 786.518008356371), ("vllm_bench_latency.json", None)]
)
def test_real_results_are_read(name: str, rate: float | None) -> None:
    (claim,) = claims_at(REAL / name)

    assert (claim.asked.model, claim.said.total_throughput_tok_per_s, claim.remarks) == ("models/small", rate, ())


@pytest.mark.parametrize(("name", "places"), [("summary.json", ["[0]", "[1]"]), ("summary.csv", ["line 2", "line 3"])])
def test_each_run_of_a_sweep_is_a_claim(name: str, places: list[str]) -> None:
    found = claims_at(SWEEP / name)

    assert [claim.lineage.place for claim in found] == places
    assert {claim.lineage.format for claim in found} == {"vllm-sweep"}
    assert [claim.remarks for claim in found] == [(), ()]


def test_a_table_and_a_list_of_a_sweep_say_the_same() -> None:
    run, claim = short_run(13), claims_at(SWEEP / "summary.csv")[0]

    assert claim.said.output_throughput_tok_per_s == pytest.approx(run.output_tok_per_s)
    assert (claim.asked.concurrency, claim.asked.request_rate_per_s, claim.asked.is_open_loop) == (2, None, False)
    assert claim.latency("e2el", "mean") == pytest.approx(run.e2el_s.mean())
    assert claim.unread["run_number"] == "0"


def test_a_list_in_a_cell_is_a_list_again() -> None:
    header, first, _ = (SWEEP / "summary.csv").read_text().splitlines()

    (claim,) = claims_of("summary.csv", f'{header},output_lens\n{first},"[8, 8]"\n')

    assert claim.series is not None
    assert claim.series.output_tokens is not None
    assert claim.series.output_tokens.tolist() == [8, 8]


def pytorch(metrics: dict[str, list[float]], **others: Any) -> str:
    """The records that vLLM writes for these metrics; each has all other numbers of the result."""
    benchmark, model = {"name": "vLLM benchmark", "extra_info": {"args": {}}}, {"name": "example/dense-8b"}
    return json.dumps(
        [
            {
                "benchmark": benchmark,
                "model": model,
                "metric": {"name": name, "benchmark_values": values} | {"extra_info": others},
            }
            for name, values in metrics.items()
        ]
    )


def test_pytorch_records_together_are_their_result() -> None:
    result = {key: value for key, value in plain(short_run(1)).items() if key != "model_id"}
    names = [name for name in result if name.endswith("_ms")]
    text = pytorch({name: [result.pop(name)] for name in names}, **result)

    (claim,) = claims_of("run.pytorch.json", text)

    (whole,) = claims_of("run.json", json.dumps(plain(short_run(1))))
    assert (claim.said, claim.latency_s, claim.asked) == (whole.said, whole.latency_s, whole.asked)
    assert claim.lineage.format == "vllm-pytorch"


@pytest.mark.parametrize("name", ["latency.json", "throughput.json"])
def test_pytorch_records_of_an_offline_run_are_its_result(name: str) -> None:
    result = json.loads((OFFLINE / name).read_text())
    metrics = (
        {"latency": result.pop("latencies")}
        if "latencies" in result
        else {"tokens_per_second": [result.pop("tokens_per_second")]}
    )

    (claim,) = claims_of(f"{name[:-5]}.pytorch.json", pytorch(metrics, **result))

    (whole,) = claims_at(OFFLINE / name)
    assert (claim.said, claim.latency_s) == (whole.said, whole.latency_s)


def test_pytorch_records_beside_their_result_are_no_claim() -> None:
    with pytest.raises(ToldBesideError, match="repeats run"):
        claims_of("run.pytorch.json", pytorch({"mean_ttft_ms": [1.0]}), run__json="{}")


def test_errors_that_a_table_has_as_python_writes_them_are_read(tmp_path: Path) -> None:
    run = {"num_prompts": 3, "duration": 10.0, "completed": 2, "request_throughput": 0.2, "request_rate": "inf"}
    run |= {"model_id": "m", "input_lens": [9, 9, 9], "output_lens": [2, 2, 0], "ttfts": [0.1, 0.1, 0.0]}
    run |= {"itls": [[0.1], [0.1], []], "errors": ["", "", "Bad: 'x'"], "start_times": [0.0, 1.0, 2.0], "run_number": 0}
    pd.DataFrame([run]).to_csv(tmp_path / "summary.csv")

    (claim,) = claims_at(tmp_path / "summary.csv")

    assert claim.series is not None
    assert claim.series.is_ok is not None
    assert claim.series.is_ok.tolist() == [True, True, False]
