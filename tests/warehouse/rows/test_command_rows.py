"""A run of a command becomes a row without tokens, and a row of `command_metrics` for each metric."""

import json
from dataclasses import asdict

import pytest

from bench import evidence_columns as ev
from bench.audit.evidence.evidence import Observed
from bench.audit.rules.night import NIGHT_RULES
from bench.errors import UnreadableResultError
from bench.loadgen.drivers.command import CommandMetric, CommandOutput, read_metrics
from bench.record import RunRecord
from bench.suite.workload import Workload
from tests.bench.builders import HOST, run_record, with_workload
from warehouse.judging.night_verdicts import judge_night
from warehouse.rows.run_folder import RunFiles, RunId
from warehouse.rows.run_rows import RunRows, run_rows

RULE = {"name": "tflops", "unit": "TFLOP/s", "pattern": r"tflops: (\S+)", "warmup_steps": 1}
WORK = Workload.model_validate({"driver": "command", "command": {"argv": ["train"], "metrics": [RULE]}})


def _rows(kept: bytes, **changes: object) -> RunRows:
    record: RunRecord = run_record(with_workload(WORK)).model_copy(update={"server": None, "accuracy": None} | changes)
    files = RunFiles(record.model_dump_json().encode(), {"metrics.json": kept})
    return run_rows(RunId(record.night, record.scenario_id, record.repeat), files)


def test_a_command_has_its_metrics_and_no_tokens() -> None:
    assert WORK.command is not None
    found = read_metrics(WORK.command, CommandOutput("tflops: 1\ntflops: 10\ntflops: 14\n"))
    rows = _rows(json.dumps([asdict(one) for one in found]).encode())

    assert rows.command_metrics is not None
    [metric] = rows.command_metrics.to_pylist()
    names = ("metric", "unit", "value", "samples", "mean", "min", "max")
    assert [metric[name] for name in names] == ["tflops", "TFLOP/s", 12.0, 2, 12.0, 10.0, 14.0]
    assert metric["stdev"] == pytest.approx(8**0.5)
    unknown = ("isl", "osl", "request_count", "concurrency_asked", "completed", "output_throughput_tok_per_s")
    assert {rows.measurement[name] for name in unknown} == {None}
    assert (rows.measurement["outcome"], rows.requests, rows.asked) == ("measured", None, None)


def _row_of(unit: str, value: float) -> RunRows:
    metric = CommandMetric("speed", unit, value, 1, value, None, value, value)
    host = HOST.model_copy(update={"gpus": ("AMD Instinct MI300X", "AMD Instinct MI300X")})
    return _rows(json.dumps([asdict(metric)]).encode(), host=host)


@pytest.mark.parametrize(
    ("unit", "value", "share"),
    [
        ("TFLOP/s/GPU", 1307.45, 0.5),  # the highest dense peak of an MI300X, with 8 bits, is 2614.9
        ("TFLOP/s", 2614.9, 0.5),  # of both GPUs
        ("tok/s", 3000.0, None),
    ],
)
def test_compute_is_compared_with_the_highest_peak_of_the_gpus(unit: str, value: float, share: float | None) -> None:
    found = {name: one.value for name, one in _row_of(unit, value).evidence.items() if isinstance(one, Observed)}
    assert found == ({} if share is None else {ev.TRAIN_MFU: pytest.approx(share)})


def test_what_is_above_the_compute_of_the_gpus_is_rejected() -> None:
    rows = _row_of("TFLOP/s/GPU", 3000.0)

    judged = judge_night([rows.measurement], {rows.measurement["run_id"]: rows.evidence})

    assert set(judged.verdicts.values()) == {"rejected"}
    [found] = [one for one in judged.findings if one["code"] == "roofline_compute"]
    assert found["status"] == "FAIL"
    assert "speed: 3000 of 2614.9 dense TFLOP/s of 1 x MI300X" in found["message"]


def test_a_failed_command_has_its_reason_and_no_metrics() -> None:
    reason = "the metric tflops: the pattern 'x' matches nothing in the log: correct the rule"
    rows = _rows(b"", outcome="failed", stage="measure", reason=reason)
    assert (rows.command_metrics, rows.measurement["reason"]) == (None, reason)


def test_metrics_that_are_none_are_an_error_that_names_their_file() -> None:
    with pytest.raises(UnreadableResultError, match=r"metrics\.json cannot be read"):
        _rows(b"{")


def test_only_the_rules_of_the_host_apply_to_a_command() -> None:
    found = {rule.family for rule in NIGHT_RULES if rule.applies("closed", "command")}
    assert found == {"host"}
