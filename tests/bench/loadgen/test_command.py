"""Metrics of a command, read from its log and its files by the rules of the suite."""

from typing import Any

import pytest

from bench.errors import LoadDriverError
from bench.loadgen.drivers.command import CommandOutput, read_metrics
from bench.suite.command import Command

STEPS = "".join(f"step {step} loss 2.5 tflops: {100 + step}\n" for step in range(6))
RUNS = "model,avg_fps\nflux,1.5\nflux,2.5\nother,9\n"


def read(rule: dict[str, Any], log: str = STEPS, dropped: int = 0, files: dict[str, str] | None = None) -> Any:
    whole = {"name": "speed", "unit": "TFLOP/s", **rule}
    command = Command.model_validate({"argv": ["train"], "metrics": [whole]})
    [metric] = read_metrics(command, CommandOutput(log, dropped, files or {}))
    return metric


LOG = {"pattern": r"tflops: (\S+)"}


@pytest.mark.parametrize(("aggregate", "value"), [("mean", 104.0), ("last", 105.0), ("max", 105.0)])
def test_steps_of_the_warm_up_are_left_out(aggregate: str, value: float) -> None:
    metric = read(LOG | {"warmup_steps": 3, "aggregate": aggregate})
    assert (metric.value, metric.samples, metric.low, metric.high) == (value, 3, 103.0, 105.0)
    assert (metric.mean, metric.stdev) == (104.0, 1.0)


def test_one_sample_has_no_spread() -> None:
    assert read(LOG | {"warmup_steps": 5}).stdev is None


def test_a_column_is_read_from_the_selected_rows() -> None:
    rule = {"file": "runs.csv", "column": "avg_fps", "where": {"model": "flux"}, "aggregate": "last"}
    metric = read(rule, files={"runs.csv": RUNS})
    assert (metric.value, metric.samples, metric.unit) == (2.5, 2, "TFLOP/s")


@pytest.mark.parametrize("text", ['[{"model": "flux", "avg_fps": 2.5}]', '{"model": "flux", "avg_fps": 2.5}'])
def test_json_is_a_table_of_rows_or_one_row(text: str) -> None:
    rule = {"file": "runs.json", "column": "avg_fps", "where": {"model": "flux"}, "must_match_once": True}
    assert read(rule, files={"runs.json": text}).value == 2.5


@pytest.mark.parametrize(
    ("rule", "files", "sentence"),
    [
        ({"pattern": r"fps: (\S+)"}, {}, r"the metric speed: the pattern 'fps: .*' matches nothing in the log"),
        (LOG | {"must_match_once": True}, {}, r"the metric speed matches 6 times in the log.*must match once"),
        (LOG | {"warmup_steps": 6}, {}, "the metric speed has 6 values in the log.*6 of them are warm-up"),
        ({"pattern": r"loss (\S+ \w+)"}, {}, "the metric speed: '2.5 tflops' in the log is not a finite number"),
        (
            {"file": "runs.csv", "column": "fps"},
            {"runs.csv": RUNS},
            "runs.csv has no column fps: it has model, avg_fps",
        ),
        ({"file": "runs.csv", "column": "avg_fps", "where": {"model": "x"}}, {"runs.csv": RUNS}, "matches nothing"),
        ({"file": "runs.csv", "column": "avg_fps"}, {}, "the command did not write runs.csv"),
        ({"file": "runs.json", "column": "fps"}, {"runs.json": "{"}, "runs.json cannot be read as JSON"),
        ({"file": "runs.json", "column": "fps"}, {"runs.json": "[1]"}, "runs.json is not a table"),
    ],
)
def test_a_rule_that_does_not_fit_says_why(rule: dict[str, Any], files: dict[str, str], sentence: str) -> None:
    with pytest.raises(LoadDriverError, match=sentence):
        read(rule, files=files)


@pytest.mark.parametrize("value", ["nan", "inf", "1,234.5"])
def test_only_finite_numbers_count(value: str) -> None:
    with pytest.raises(LoadDriverError, match=f"'{value}' in the log is not a finite number"):
        read(LOG, log=f"tflops: {value}\n")


def test_a_rate_below_zero_is_no_measurement_and_a_loss_may_be() -> None:
    with pytest.raises(LoadDriverError, match=r"the metric speed: -3 TFLOP/s in the log is below zero"):
        read(LOG, log="tflops: -3\n")
    assert read(LOG | {"unit": "nat"}, log="tflops: -3\n").value == -3.0


@pytest.mark.parametrize("rule", [{"aggregate": "mean"}, {"aggregate": "max"}, {"must_match_once": True}])
def test_steps_that_were_dropped_with_the_output_are_not_averaged_over(rule: dict[str, Any]) -> None:
    with pytest.raises(LoadDriverError, match=r"7 bytes of the log were dropped.*write them to a file"):
        read(LOG | rule, dropped=7)


def test_the_last_step_is_known_where_output_was_dropped() -> None:
    metric = read(LOG | {"aggregate": "last", "warmup_steps": 6}, dropped=7)  # the warm-up is before what was dropped
    assert (metric.value, metric.samples, metric.stdev) == (105.0, 1, None)
