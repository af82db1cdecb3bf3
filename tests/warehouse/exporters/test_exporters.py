"""What we export says what our rows say, in the words of the format, and our own importers read it back the same."""

import csv
import io
import json
from collections.abc import Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest
import yaml

from bench.audit.claim import Claim, Metric
from bench.errors import UsageError
from tests.data.formats.llmd.schema import SCHEMA, Schema
from tests.warehouse.conftest import NIGHT
from tests.warehouse.importers.reading import FORMATS, SAMPLES, at_hand, claims_of
from warehouse.exporters import EXPORTERS, export, read_measurements, require_nights
from warehouse.exporters.measurement import Measurement
from warehouse.load import LoadSummary

# Ours, and the published one where it is at hand.
PUBLISHED_SCHEMAS = at_hand(SAMPLES / "llmd_benchmark_report_v0.2.1_schema.json")
SCHEMAS = [
    pytest.param(SCHEMA, id="ours"),
    *(pytest.param(json.loads(path.read_text()), id="published") for path in PUBLISHED_SCHEMAS),
]
# Columns of PyTorch's table `oss_ci_benchmark_v3`, as types of DuckDB; a map of text takes objects as text.
TABLE: Mapping[str, Any] = {
    **dict.fromkeys(("timestamp", "workflow_id", "job_id"), "UBIGINT"),
    **dict.fromkeys(("schema_version", "name", "repo", "head_branch", "head_sha"), "VARCHAR"),
    "run_attempt": "UINTEGER",
    "runners": [
        {"name": "VARCHAR", "type": "VARCHAR", "cpu_info": "VARCHAR", "gpu_info": "VARCHAR", "gpu_count": "UINTEGER"}
    ],
    "benchmark": {"name": "VARCHAR", "mode": "VARCHAR", "dtype": "VARCHAR", "extra_info": "JSON"},
    "model": {"name": "VARCHAR", "type": "VARCHAR", "extra_info": "JSON"},
    "metric": {"name": "VARCHAR", "benchmark_values": ["FLOAT"], "extra_info": "JSON"},
}
METRICS: tuple[Metric, ...] = ("ttft", "tpot", "itl", "e2el")
SIZES = {"gpu_count": 8, "tp_size": 4, "pp_size": 2, "dp_size": 1}
ON_GPUS = {"gpus": ["AMD Instinct MI300X"] * 8, "engine_flags": ["-tp", "2"], **SIZES}


@pytest.fixture(scope="session")
def measured(loaded: tuple[Path, LoadSummary]) -> list[Measurement]:
    """Every measurement of the night, whatever its verdict, as if on eight GPUs."""
    found = read_measurements(loaded[0], [NIGHT], accepted_only=False)
    return [Measurement({**one.row, **ON_GPUS}) for one in found]


@pytest.fixture(scope="session")
def chat(measured: list[Measurement]) -> Measurement:
    """A closed loop with failures."""
    return next(one for one in measured if one["scenario"] == "chat")


def text_of(name: str, *measurements: Measurement) -> str:
    (text,) = export(name, measurements).files.values()
    return text


def changed(one: Measurement, **values: Any) -> Measurement:
    return Measurement({**one.row, **values})


def read_back(name: str, file: str, *measurements: Measurement) -> list[Claim]:
    return claims_of(file, text_of(name, *measurements))


def test_only_accepted_measurements_are_read_unless_asked(loaded: tuple[Path, LoadSummary]) -> None:
    accepted = read_measurements(loaded[0], [NIGHT])
    every = read_measurements(loaded[0], [NIGHT], accepted_only=False)

    assert {one["verdict"] for one in accepted} <= {"accepted"}
    assert len(accepted) < len(every)
    assert {one["outcome"] for one in every} == {"measured"}
    assert read_measurements(loaded[0], ["2020-01-01"], accepted_only=False) == []
    assert len(read_measurements(loaded[0], [], accepted_only=False)) == len(every)


def test_the_engine_says_how_many_gpus_it_used(chat: Measurement) -> None:
    assert (chat.parallel, chat.gpu_count, chat.gpu) == ({"tp": 4, "pp": 2, "dp": 1}, 8, "AMD Instinct MI300X")
    assert changed(chat, gpus=[]).gpu_count == 0
    assert changed(chat, gpus=["A", "B"]).gpu is None


def test_in_an_older_lake_the_suites_flags_say_how_many_gpus_it_used(chat: Measurement) -> None:
    older = changed(chat, engine_flags=["-tp", "2", "--pipeline_parallel_size=2"], **dict.fromkeys(SIZES))

    assert (older.parallel, older.gpu_count) == ({"tp": 2, "pp": 2, "dp": 1}, 4)


def test_inferencex_rows_are_read_back_with_the_same_numbers(chat: Measurement) -> None:
    (claim,) = read_back("inferencex", "agg.json", chat)

    assert claim.lineage.format == "inferencex-agg"
    assert (claim.asked.gpu_count, claim.asked.tp_size, claim.asked.concurrency) == (8, 4, chat["concurrency_asked"])
    assert (claim.asked.isl, claim.asked.osl) == (chat["isl"], chat["osl"])
    assert claim.said.output_per_gpu_tok_per_s == pytest.approx(chat["output_throughput_tok_per_s"] / 8)
    assert claim.said.input_throughput_tok_per_s == pytest.approx(chat["total_input_tokens"] / chat["duration_s"])
    for metric in METRICS:
        assert claim.latency(metric, "mean") == pytest.approx(chat[f"{metric}_mean_ms"] / 1e3)
        assert claim.latency(metric, "median") == pytest.approx(chat[f"{metric}_p50_ms"] / 1e3)
        assert claim.latency(metric, "p99") == pytest.approx(chat[f"{metric}_p99_ms"] / 1e3)
    assert claim.remarks == ()


def test_a_report_of_llmd_is_read_back_with_the_same_numbers(chat: Measurement) -> None:
    (claim,) = read_back("llm-d", "report.json", chat)

    assert claim.lineage.format == "llm-d"
    assert (claim.said.completed, claim.said.failed) == (chat["completed"], chat["failed"])
    assert claim.said.duration_s == pytest.approx(chat["duration_s"])
    assert claim.said.total_output_tokens == chat["total_output_tokens"]
    assert claim.said.output_throughput_tok_per_s == chat["output_throughput_tok_per_s"]
    assert (claim.asked.gpu_count, claim.asked.tp_size, claim.asked.pp_size) == (8, 4, 2)
    assert (claim.asked.isl, claim.asked.concurrency) == (chat["isl"], chat["concurrency_asked"])
    for metric in METRICS:
        for ours, column in (("mean", "mean"), ("median", "p50"), ("p99", "p99")):
            assert claim.latency(metric, ours) == pytest.approx(chat[f"{metric}_{column}_ms"] / 1e3)
    assert claim.remarks == ()


@pytest.mark.parametrize(("name", "file"), [("nvidia-json", "report.json"), ("nvidia-csv", "report.csv")])
def test_nvidias_files_are_read_back_with_the_same_numbers(name: str, file: str, chat: Measurement) -> None:
    (claim,) = read_back(name, file, chat)

    assert claim.lineage.format == "nvidia"
    assert claim.said.output_throughput_tok_per_s == chat["output_throughput_tok_per_s"]
    assert (claim.asked.model, claim.asked.precision) == (chat["model"], chat["precision"])
    assert (claim.asked.gpu, claim.asked.gpu_count, claim.asked.tp_size) == ("AMD Instinct MI300X", 8, 4)
    assert (claim.asked.isl, claim.asked.osl) == (chat["isl"], chat["osl"])
    assert claim.remarks == ()


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"gpus": []}, "needs throughput per GPU"),
        ({"concurrency_asked": None}, "closed loops only"),
        ({"dp_size": 2}, "data parallel"),
        ({"is_speculative": True, "spec_method": None}, "method of speculation"),
        ({"kv_connector": "NixlConnector"}, "GPUs of the prefill server and of the decode server"),
    ],
)
def test_what_inferencex_has_no_word_for_is_left_out(chat: Measurement, values: dict[str, Any], why: str) -> None:
    found = export("inferencex", [chat, changed(chat, **values)])

    assert [why in sentence for sentence in found.left_out] == [True]
    assert len(json.loads(found.files["agg.json"])) == 1


def test_a_report_of_llmd_calls_a_prefill_and_a_decode_server_no_replica(chat: Measurement) -> None:
    one, two = (json.loads(text_of("llm-d", row)) for row in (chat, changed(chat, kv_connector="NixlConnector")))

    assert [part["standardized"]["role"] for part in one["scenario"]["stack"]] == ["replica"]
    assert not two["scenario"].get("stack")
    assert two["results"] == one["results"]
    jsonschema.validate(two, SCHEMA)


def test_a_report_of_llmd_says_what_the_row_says(chat: Measurement) -> None:
    report = json.loads(text_of("llm-d", chat))
    aggregate = report["results"]["request_performance"]["aggregate"]

    assert (report["version"], report["run"]["uid"]) == ("0.2.1", chat["run_id"])
    assert aggregate["requests"]["total"] == chat["completed"] + chat["failed"]
    assert aggregate["requests"]["failures"] == chat["failed"] == 10
    assert aggregate["latency"]["time_to_first_token"]["mean"] == chat["ttft_mean_ms"]
    assert aggregate["latency"]["request_latency"]["p99"] == chat["e2el_p99_ms"]
    assert aggregate["throughput"]["output_token_rate"] == {
        "units": "tokens/s",
        "mean": chat["output_throughput_tok_per_s"],
    }
    (server,) = report["scenario"]["stack"]
    assert server["standardized"]["accelerator"]["parallelism"] == {"tp": 4, "pp": 2, "dp": 1}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_report_of_llmd_is_valid_by_its_schema(schema: Schema, measured: list[Measurement]) -> None:
    bare = changed(measured[0], gpus=[], driver_version=None, nightbench_version=None, isl=None, started_at=None)

    for one in (*measured, bare):
        jsonschema.validate(json.loads(text_of("llm-d", one)), schema)


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("path", [(), ("run",), ("scenario", "load"), ("results", "request_performance", "aggregate")])
def test_the_schema_of_llmd_refuses_an_unknown_key(schema: Schema, path: tuple[str, ...], chat: Measurement) -> None:
    report = json.loads(text_of("llm-d", chat))
    reduce(getitem, path, report)["novelty"] = 1

    with pytest.raises(jsonschema.ValidationError, match="'novelty' was unexpected"):
        jsonschema.validate(report, schema)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_twin_of_llmd_is_valid_by_the_schema(schema: Schema) -> None:
    jsonschema.validate(yaml.safe_load((FORMATS / "llmd/report.yaml").read_text()), schema)


def test_several_reports_of_llmd_are_several_files(measured: list[Measurement]) -> None:
    files = export("llm-d", measured).files

    assert len(files) == len(measured) > 1
    assert all("/" not in name for name in files)


def test_nvidias_table_says_which_tokens_and_how_many_gpus(chat: Measurement) -> None:
    (row,) = csv.DictReader(io.StringIO(text_of("nvidia-csv", chat)))

    assert row["Throughput"] == f"{chat['output_throughput_tok_per_s']!r} output tokens/sec"
    assert (row["GPU"], row["TP"], row["PP"]) == ("8x AMD Instinct MI300X", "4", "2")
    assert row["Concurrency"] == str(chat["concurrency_asked"])


def test_nvidias_reports_have_a_row_for_a_run_that_failed_with_the_reason(chat: Measurement) -> None:
    why = "the server ran out of memory"
    failed = changed(chat, outcome="failed", verdict="failed", reason=why, scenario="broken")

    row = list(csv.DictReader(io.StringIO(text_of("nvidia-csv", chat, failed))))[1]
    told = json.loads(text_of("nvidia-json", chat, failed))["benchmarks"]

    assert (row["Throughput"], row["Reason"]) == ("N/A", why)
    assert ("error" in told[0], told[1]["error"], "throughput_tokens_per_sec" in told[1]) == (False, why, False)
    for name, file in (("nvidia-csv", "report.csv"), ("nvidia-json", "report.json")):
        claims = claims_of(file, text_of(name, chat, failed))
        assert [claim.said.output_throughput_tok_per_s for claim in claims][1:] in ([], [None])  # never 0


def test_nvidias_report_is_one_for_each_model_and_machine(chat: Measurement) -> None:
    other = changed(chat, model="another", e2el_mean_ms=None)

    files = export("nvidia-json", [chat, chat, other]).files

    first, second = (json.loads(files[name]) for name in ("report-1.json", "report-2.json"))
    assert [len(report["benchmarks"]) for report in (first, second)] == [2, 1]
    assert first["metadata"]["gpu"] == "8x AMD Instinct MI300X"
    assert first["benchmarks"][0]["avg_latency_sec"] == pytest.approx(chat["e2el_mean_ms"] / 1e3)
    assert "avg_latency_sec" not in second["benchmarks"][0]


@pytest.mark.parametrize("throughput", [None, 0.0])
def test_a_failure_is_never_a_zero(chat: Measurement, throughput: float | None) -> None:
    failed = changed(chat, output_throughput_tok_per_s=throughput)

    for name in ("nvidia-json", "nvidia-csv"):
        with pytest.raises(UsageError, match=r"nothing to export: .* the output token throughput is unknown"):
            export(name, [failed])


def test_a_record_of_pytorch_is_one_number(chat: Measurement) -> None:
    records = json.loads(text_of("pytorch", changed(chat, itl_p999_ms=None)))
    values = {record["metric"]["name"]: record["metric"]["benchmark_values"] for record in records}

    assert values["output_tokens_per_second"] == [chat["output_throughput_tok_per_s"]]
    assert values["median_ttft_ms"] == [chat["ttft_p50_ms"]]
    assert "p999_itl_ms" not in values
    assert {record["schema_version"] for record in records} == {"v3"}
    assert {record["model"]["name"] for record in records} == {chat["model"]}
    assert records[0]["benchmark"]["extra_info"]["args"]["tp_size"] == 4


def test_records_of_pytorch_fit_the_table_of_its_dashboards(measured: list[Measurement]) -> None:
    records = json.loads(text_of("pytorch", *measured))

    with duckdb.connect() as connection:
        for record in records[:: len(records) // 20]:  # a mistyped value raises
            connection.execute(
                "SELECT from_json_strict(?::JSON, ?)", [json.dumps(record), json.dumps(_types_of(record, TABLE))]
            )

    assert len({record["job_id"] for record in records}) == len({one["run_id"] for one in measured})
    assert {record["benchmark"]["extra_info"]["args"]["night"] for record in records} == {NIGHT}


def test_records_of_pytorch_are_read_back_with_the_same_numbers(measured: list[Measurement]) -> None:
    claims = read_back("pytorch", "records.json", *measured)

    assert {claim.lineage.format for claim in claims} == {"pytorch"}
    assert len(claims) == len(measured)
    for claim, one in zip(claims, measured, strict=True):
        assert claim.said.output_throughput_tok_per_s == one["output_throughput_tok_per_s"]
        assert (claim.asked.model, claim.asked.gpu, claim.asked.tp_size) == (one["model"], "AMD Instinct MI300X", 4)
        assert (claim.asked.isl, claim.asked.concurrency) == (one["isl"], one["concurrency_asked"])
        assert claim.latency("ttft", "median") == pytest.approx(one["ttft_p50_ms"] / 1e3)
        assert claim.remarks == ()


def test_a_report_of_llmd_has_its_stack_on_a_cpu_too(chat: Measurement) -> None:
    on_cpu = changed(chat, gpus=[], gpu_count=None, cpu_model="AMD EPYC 9654")

    (server,) = json.loads(text_of("llm-d", on_cpu))["scenario"]["stack"]
    (claim,) = read_back("llm-d", "report.json", on_cpu)

    accelerator = server["standardized"]["accelerator"]
    assert (accelerator["model"], accelerator["count"]) == ("AMD EPYC 9654", 0)
    assert (claim.asked.model, claim.asked.gpu, claim.asked.gpu_count) == (chat["model"], None, None)


@pytest.mark.parametrize(
    ("gpu", "key"), [("AMD Instinct MI300X", "mi300x"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA B200", "b200")]
)
def test_inferencex_has_its_own_key_for_a_gpu(chat: Measurement, gpu: str, key: str) -> None:
    (row,) = json.loads(text_of("inferencex", changed(chat, gpus=[gpu] * 8)))

    assert row["hw"] == key


def test_a_gpu_that_inferencex_does_not_know_is_left_out(chat: Measurement) -> None:
    found = export("inferencex", [chat, changed(chat, gpus=["NVIDIA L40S"] * 8)])

    assert "InferenceX has no key for NVIDIA L40S; its keys are b200" in found.left_out[0]


@pytest.mark.parametrize(("name", "file"), [("nvidia-json", "report.json"), ("nvidia-csv", "report.csv")])
def test_rows_of_nvidias_files_are_told_apart(name: str, file: str, chat: Measurement) -> None:
    other = changed(chat, scenario="another", run_id="another/run")

    one, two = read_back(name, file, chat, other)

    assert one.asked.concurrency == two.asked.concurrency == chat["concurrency_asked"]
    assert one.label.startswith("chat ")
    assert two.label.startswith("another ")
    assert chat["run_id"] in text_of(name, chat)


def test_an_unknown_night_is_named_with_the_nearest(loaded: tuple[Path, LoadSummary]) -> None:
    require_nights(loaded[0], [NIGHT])

    with pytest.raises(UsageError, match=f"2020-01-01 is not a night of the warehouse: .*{NIGHT}"):
        require_nights(loaded[0], [NIGHT, "2020-01-01"])


@pytest.mark.parametrize("name", EXPORTERS)
def test_no_null_and_no_nan_stands_in_an_export(name: str, measured: list[Measurement]) -> None:
    for text in export(name, measured).files.values():
        assert "null" not in text
        assert "NaN" not in text
        assert "None" not in text


def test_a_format_that_there_is_none_of_is_refused_with_those_there_are(chat: Measurement) -> None:
    with pytest.raises(UsageError, match="'excel' is not an export format; formats: llm-d, inferencex, nvidia-json"):
        export("excel", [chat])


def test_nothing_accepted_is_said_and_not_written() -> None:
    with pytest.raises(UsageError, match="these nights have no accepted measurement; --all"):
        export("pytorch", [])


def _types_of(value: Any, types: Any) -> Any:
    """The types of the parts that a record has; KeyError for a part that the table does not have."""
    if isinstance(types, dict):
        return {name: _types_of(part, types[name]) for name, part in value.items()}
    return [_types_of(value[0], types[0])] if isinstance(types, list) else types


def test_inferencex_has_the_experts_and_the_speculation_of_a_run(chat: Measurement) -> None:
    speculative = changed(chat, ep_size=8, is_speculative=True, spec_method="eagle3")
    found = [json.loads(text_of("inferencex", one))[0] for one in (chat, speculative)]

    assert [(row["ep"], row.get("spec_decoding")) for row in found] == [(1, None), (8, "eagle3")]
