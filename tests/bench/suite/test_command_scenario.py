"""A scenario of kind `command`: no requests, no server, and ids of other scenarios that stay."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from bench.cost.forecast import Assumptions, Price, forecast_rented
from bench.errors import SuiteError
from bench.machine_nights import machine_nights
from bench.plan import describe_load
from bench.suite.parse import parse_suite
from bench.suite.scaling import scaled
from bench.suite.workload import Workload
from catalog.read import read_catalog
from infra.loadgen.suite_file import make_night, require_runnable
from tests.bench.builders import with_workload

COMMAND = {
    "argv": ["python", "train.py"],
    "metrics": [{"name": "tflops", "unit": "TFLOP/s", "pattern": r"tflops: (\S+)", "warmup_steps": 3}],
}


def test_a_command_needs_no_lengths_and_no_counts() -> None:
    work = Workload.model_validate({"driver": "command", "command": COMMAND})
    assert (work.is_offline, work.isl, work.concurrency) == (True, 1, 1)
    assert Workload.model_validate_json(work.model_dump_json()) == work


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"isl": 128}, "a command sends no requests: leave isl out"),
        ({"request_count": 5}, "leave request_count out"),
        ({"warmup_count": 2}, "leave warmup_count and the keys of prompts out"),
        ({"workers": 2}, "command is one process"),
        ({"command": None}, 'command needs driver = "command"'),
    ],
)
def test_what_is_about_requests_is_refused_beside_a_command(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Workload.model_validate({"driver": "command", "command": COMMAND} | keys)


@pytest.mark.parametrize(("program", "said"), [("{engine_python}", "python"), ("/usr/bin/train", "train")])
def test_a_plan_names_the_program_of_a_command(program: str, said: str) -> None:
    work = Workload.model_validate({"driver": "command", "command": COMMAND | {"argv": [program]}})
    assert describe_load(with_workload(work)) == f"command {said}"


def test_what_a_command_does_moves_the_id() -> None:
    works = [
        Workload.model_validate({"driver": "command", "command": COMMAND | {"argv": argv}})
        for argv in (["python", "a.py"], ["python", "b.py"])
    ]
    assert with_workload(works[0]).scenario_id != with_workload(works[1]).scenario_id


def test_a_secret_in_the_environment_of_a_command_is_refused_with_its_line() -> None:
    text = (Path(__file__).parents[3] / "suites" / "amd-mi300x-training.toml").read_text()
    with pytest.raises(SuiteError, match=r"s\.toml:\d+: .*API_TOKEN looks like a secret"):
        parse_suite(text.replace("environment = {", 'environment = { API_TOKEN = "x",', 1), "s.toml")


RATE = """{ name = "tflops_per_gpu", unit = "TFLOP/s/GPU", pattern = 'Avg TFLOP/s,? ([0-9.]+"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "timeout_s = 10800",
            "timeout_s = 10800\nnodes = 4",
            r"nodes = 4, and .* runs on the same machine with 1: give each number",
        ),
        (
            'unit = "TFLOP/s/GPU"',
            'unit = "Gigaflops"',
            r"unit: unknown unit: use one of .*TFLOP/s/GPU.*got 'Gigaflops'",
        ),
        (f"metrics = [\n  {RATE})'", f"metrics = [{RATE}'", r"is not a regular expression: missing \)"),
        ("aggregate =", "agregate =", r"unknown key .*agregate.*"),
    ],
)
def test_a_command_that_cannot_run_is_refused_at_its_line(before: str, after: str, said: str) -> None:
    text = (Path(__file__).parents[3] / "suites" / "amd-mi300x-training.toml").read_text()
    changed = text.replace(before, after, 1)
    [line] = [number for number, one in enumerate(changed.splitlines(), 1) if after.splitlines()[-1] in one][:1]
    with pytest.raises(SuiteError, match=rf"s\.toml:(?P<line>\d+): .*{said}") as caught:
        parse_suite(changed, "s.toml")
    assert str(caught.value).startswith(f"s.toml:{line}: ")


def test_on_this_computer_one_command_stands_for_all() -> None:
    text = (Path(__file__).parents[3] / "suites" / "amd-mi300x-training.toml").read_text()
    suite = parse_suite(text, "s.toml")
    assert suite.local is not None
    assert len(suite.scenarios) == 24
    here, command = scaled(suite, suite.local), suite.local.command
    assert command is not None
    on_two = command.model_copy(update={"nodes": 2})  # of the rows of 2, 4 and 8
    assert [entry.command for entry in here.scenarios] == [command, on_two, on_two, on_two, command]  # one a machine
    with pytest.raises(SuiteError, match=r"add \[local.command\]"):
        scaled(suite, suite.local.model_copy(update={"command": None}))


def test_a_command_without_its_driver_is_refused() -> None:
    with pytest.raises(ValidationError, match="give both, or neither"):
        Workload.model_validate({"isl": 8, "osl": 4, "request_count": 1, "concurrency": 1, "command": COMMAND})


@pytest.mark.parametrize(
    ("nodes", "budget_usd", "usd_per_hour", "usd_max"), [(1, None, 20.72, 145.04), (8, 1160.0, 165.76, 1160.32)]
)
def test_a_plan_has_the_price_of_all_nodes(
    nodes: int, budget_usd: float | None, usd_per_hour: float, usd_max: float
) -> None:
    path = Path(__file__).parents[3] / "suites" / "amd-mi300x-training.toml"
    night = make_night(path, "digitalocean", poc=False, is_draft=True)
    [part] = [one for one in machine_nights(night) if one.suite.nodes == nodes and one.suite.machine.gpu == "MI300X"]
    machine = part.suite.machine.model_copy(update={"budget_usd": budget_usd, "lease_minutes": 420})
    part = part.model_copy(update={"suite": part.suite.model_copy(update={"machine": machine, "budget_usd": None})})

    found = forecast_rented(part, None, Price(20.72, "told"), read_catalog(), Assumptions())

    assert found.price.usd_per_hour == pytest.approx(usd_per_hour)
    assert found.usd_max == pytest.approx(usd_max)
    assert [one for one in found.doubts if "usd_per_hour_max" in one] == []  # it is of one node
    assert found.prepare is not None
    assert found.prepare.usd_per_hour == 20.72  # an image is built on one machine


def test_an_own_host_is_one_node(tmp_path: Path) -> None:
    suite = tmp_path / "s.toml"
    suite.write_text(NODES)
    with pytest.raises(
        SuiteError, match=r"runs a command on 2 machines at once, and --target ssh:me@host:22 is one host"
    ):
        require_runnable(suite, "ssh:me@host", poc=False)


NODES = """
name = "two"
[model]
name = "none"
source = "generated:small?seed=0"
[engine]
name = "vllm"
version = "0.32.0"
max_model_len = 1024
[[scenarios]]
name = "train"
driver = "command"
[scenarios.command]
argv = ["true"]
nodes = 2
metrics = [{ name = "m", unit = "s", pattern = '(\\\\d+)' }]
"""
