"""A good file of each ending is mutated and written as it was; a mutation that the file contradicts is found."""

import csv
import io
import json
from pathlib import Path

import pytest

from benchmarks.mutated_files import mutable
from benchmarks.mutations import FORMATS, Judged, Outcome, Reason, lines, outcomes

TREE = {"ttft": {"mean": 2.0, "p50": 1}, "requests": [{"tokens": 3, "ok": True}] * 10}


def test_each_number_is_scaled_exchanged_with_its_neighbour_and_put_in_another_unit(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(TREE))

    found = {(one.number, one.kind): json.loads(one.text) for one in mutable(path).mutations()}

    assert found["ttft.mean", "x10"]["ttft"] == {"mean": 20.0, "p50": 1}
    assert found["ttft.mean and p50", "swapped"]["ttft"] == {"mean": 1, "p50": 2.0}
    assert found["ttft*", "unit"]["ttft"] == {"mean": 2000.0, "p50": 1000}
    assert found["requests[].tokens", "x2"]["requests"] == [{"tokens": 6, "ok": True}] * 10
    assert len(found["lists of 10", "dropped"]["requests"]) == 9


@pytest.mark.parametrize(
    "name", ["nvidia/table.csv", "mlperf/offline_summary.txt", "llmd/report.yaml", "aiperf/alone.jsonl"]
)
def test_a_file_of_each_ending_is_written_again_as_it_was(name: str) -> None:
    file = mutable(FORMATS / name)

    again = file.write(file.tree)

    if name.endswith(".csv"):
        assert list(csv.reader(io.StringIO(again))) == list(csv.reader(io.StringIO(file.text)))
    elif name.endswith(".txt"):
        assert again == file.text
    else:
        assert again


def test_an_error_is_found_or_has_a_reason() -> None:
    reason = Reason("nvidia", r".*(Length).*", "told once")

    found = list(outcomes(FORMATS / "nvidia/table.csv", [reason]))

    assert {one.alone for one in found if not one.rules} == {"told once"}
    assert {one.number for one in found if "label_conflict" in one.rules} >= {"[].TP"}
    missed = Outcome("a", "f", "[].x", "x2", ())
    assert any("MISSED, though the file tells it twice: f [].x" in line for line in lines([missed]))
    assert "a: 0 of 1 of what is told twice" in lines([missed])


def test_a_cell_of_a_column_that_is_not_read_is_no_number_of_the_file() -> None:
    path = FORMATS / "vllm_sweep/summary.csv"
    mutated = {one.number: one.text for one in mutable(path).mutations() if one.kind == "x2"}

    numbers = Judged(path, path.read_text()).numbers

    assert Judged(path, mutated["[].burstiness"]).numbers == numbers
    assert Judged(path, mutated["[].completed"]).numbers != numbers
