"""The command of a scenario and its metric rules, as a suite writes them."""

from typing import Any

import pytest
from pydantic import ValidationError

from bench.suite.command import Command, MetricRule, NodePlace, node_environment, node_places

LOG = {"name": "tflops", "unit": "TFLOP/s", "pattern": r"tflops: (\S+)"}
TABLE = {"name": "fps", "unit": "FPS", "file": "runs.csv", "column": "avg_fps"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"column": "fps"}, "give either pattern or column"),
        ({"pattern": None}, "give either pattern or column"),
        ({"pattern": "tflops: ("}, "is not a regular expression"),
        ({"pattern": "tflops"}, "has 0 groups: give exactly one"),
        ({"pattern": "(a)(b)"}, "has 2 groups: give exactly one"),
        ({"where": {"model": "8b"}}, "where selects rows of a table: give column, or leave where out"),
        ({"file": "../out.log"}, "must be a path inside the command's folder"),
        ({"file": "/etc/passwd"}, "must be a path inside the command's folder"),
        ({"must_match_once": True, "warmup_steps": 1}, "leave warmup_steps out"),
        ({"aggregate": "median"}, "Input should be 'mean', 'last' or 'max'"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MetricRule.model_validate(LOG | change)


@pytest.mark.parametrize("file", [None, "runs.txt"])
def test_a_column_needs_a_table(file: str | None) -> None:
    with pytest.raises(ValidationError, match=r"column needs a file that ends in \.csv or \.json"):
        MetricRule.model_validate(TABLE | {"file": file})


def test_a_command_needs_rules_of_distinct_names() -> None:
    with pytest.raises(ValidationError, match="two metrics share the name 'tflops'"):
        Command.model_validate({"argv": ["train"], "metrics": [LOG, LOG]})
    with pytest.raises(ValidationError, match="at least 1 item"):
        Command.model_validate({"argv": ["train"], "metrics": []})


@pytest.mark.parametrize(
    ("name", "said"), [("NIGHTBENCH_DO_TOKEN", "is a setting of Nightbench"), ("A B", "is not the name of an environ")]
)
def test_a_secret_that_cannot_be_passed_is_refused(name: str, said: str) -> None:
    with pytest.raises(ValidationError, match=f"{name}.* {said}"):
        Command.model_validate({"argv": ["train"], "metrics": [LOG], "secret_environment": [name]})


def test_a_variable_is_public_or_secret() -> None:
    both = {"environment": {"HF_TOKEN": "x"}, "secret_environment": ["HF_TOKEN"]}
    with pytest.raises(ValidationError, match="HF_TOKEN is in environment and in secret_environment"):
        Command.model_validate({"argv": ["train"], "metrics": [LOG]} | both)


def test_each_node_is_told_its_place() -> None:
    command = Command.model_validate({"argv": ["train"], "metrics": [LOG], "nodes": 4})
    expected = {"NNODES": "4", "NODE_RANK": "3", "MASTER_ADDR": "10.0.0.1"}
    assert node_environment(command, NodePlace(3, "10.0.0.1")) == expected


def test_the_machine_whose_output_has_the_metrics_has_the_first_rank_or_the_last() -> None:
    addresses = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
    command = Command.model_validate({"argv": ["train"], "metrics": [LOG], "nodes": 3})
    assert [one.rank for one in node_places(command, addresses)] == [0, 1, 2]
    last = command.model_copy(update={"metrics_from": "last"})
    assert [one.rank for one in node_places(last, addresses)] == [2, 0, 1]
    assert {one.master for one in node_places(last, addresses)} == {"10.0.0.2"}


def test_the_nodes_variables_are_not_set_twice() -> None:
    with pytest.raises(ValidationError, match="NNODES is set from nodes: remove it from environment"):
        Command.model_validate({"argv": ["train"], "metrics": [LOG], "environment": {"NNODES": "2"}})
