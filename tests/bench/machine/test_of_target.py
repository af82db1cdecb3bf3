"""Which machines of a suite a night measures: a cloud has no host of your own, and one host is one machine."""

from pathlib import Path

import pytest

from bench.errors import SuiteError, UsageError
from bench.machine.of_target import left_to_you
from bench.suite.target import parse_target
from infra.loadgen.suite_file import make_night, parse_suite_file, refuse_forced_resume

DIVE = Path(__file__).parents[3] / "suites" / "rocm-cuda-deep-dive.toml"
OWN = {"a100", "rx7900xtx", "rtx4090"}


def _machines(target: str, machine: str | None = None) -> set[str | None]:
    night = make_night(DIVE, target, poc=False, is_draft=True, machine=machine)
    return {run.scenario.machine.name for run in night.runs}


def test_a_cloud_measures_all_machines_but_hosts_of_your_own() -> None:
    suite = parse_suite_file(DIVE)[0]

    assert _machines("digitalocean") == {"mi300x", "h100", "mi300x8"}
    assert _machines("local") == {"mi300x", "h100", "mi300x8"} | OWN
    (said,) = left_to_you(suite, parse_target("digitalocean"))
    assert said == (
        "digitalocean does not measure a100, rx7900xtx, rtx4090, which the suite leaves to hosts of your own: "
        "--target ssh:user@host --machine a100 measures one"
    )
    assert list(left_to_you(suite, parse_target("local"))) == []


def test_the_machine_that_is_named_is_the_only_one() -> None:
    night = make_night(DIVE, "ssh:ann@gpu1", poc=False, is_draft=True, machine="a100")

    assert {run.scenario.name for run in night.runs} == {
        f"vllm/concurrency={count}@llama-3.1-70b-w8a8@a100" for count in (1, 32)
    }
    assert (night.suite.machine.gpu, night.suite.machine.gpu_count) == ("A100-80", 1)
    assert _machines("digitalocean", "mi300x8") == {"mi300x8"}


@pytest.mark.parametrize(
    ("target", "machine", "error", "why"),
    [
        ("ssh:ann@gpu1", None, SuiteError, r"runs on 6 machines .* say with --machine which of them it is"),
        ("ssh:ann@gpu1", "b200", UsageError, r"has no machine 'b200', which --machine names; it has: mi300x, h100, "),
        ("http://127.0.0.1:9", "a100", UsageError, r"http://127.0.0.1:9 is one server; leave --machine out"),
    ],
)
def test_what_a_target_cannot_be_is_refused_with_what_to_do(
    target: str, machine: str | None, error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        make_night(DIVE, target, poc=False, is_draft=True, machine=machine)


def test_a_suite_of_hosts_of_your_own_only_is_refused_by_a_cloud(tmp_path: Path) -> None:
    text = DIVE.with_name("llama-3.3-70b-mi300x.toml").read_text()
    path = tmp_path / "own.toml"
    path.write_text(text.replace('kind = "gpu-mi300x1-192gb"', 'kind = "own"'))

    with pytest.raises(SuiteError, match=r"every machine of .*own\.toml is a host of your own, which digital"):
        make_night(path, "digitalocean", poc=False, is_draft=True)
    with pytest.raises(UsageError, match="its one machine has no name: leave --machine out"):
        make_night(path, "ssh:ann@gpu1", poc=False, is_draft=True, machine="mine")


def test_a_resumed_night_keeps_its_machines() -> None:
    with pytest.raises(UsageError, match="--machine and --resume exclude each other"):
        refuse_forced_resume("2026-03-01T010000Z", force=False, machine="a100")
