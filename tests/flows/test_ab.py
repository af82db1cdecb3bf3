"""`nightbench ab`: both sides in turns in one night, the answer as Markdown, and the exit code of a gate."""

import json
import re
import tomllib
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from bench.errors import UsageError
from bench.record import NightRecord
from flows.ab import SideOfEngine, parse_side, write_ab_suite
from flows.cli import app
from infra.settings import Settings
from infra.storage import store
from tests.flows.conftest import NightFixture
from tests.flows.test_bisect_nights import SUITE
from tests.warehouse.folders import Shape, Told, write_run

ROUNDS = 3


class Machines:
    """Stands for the machine: it measures at once; side B takes `slower` times as long for each token."""

    def __init__(self, data: Path) -> None:
        self.data, self.slower, self.is_failing = data, 1.0, False

    def measure(self, _settings: Settings, night: NightRecord, _progress: object, **_more: object) -> None:
        for run in store.missing_runs(self.data, night):
            slower = self.slower if run.scenario.name.endswith("@b") else 1.0
            drift = 1 + 0.001 * run.order
            told = Told("failed", "server", "out of memory") if self.is_failing else Told()
            write_run(self.data, night, run, Shape(gap_ms=5.0 * slower * drift), told)


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nights_without_prefect: None) -> Machines:
    del nights_without_prefect
    found = Machines(tmp_path / "data")
    monkeypatch.setattr("flows.nightly.try_machines", found.measure)
    monkeypatch.setattr("flows.temporary_server.temporary_server", nullcontext)
    monkeypatch.setattr("flows.cli.ab.handle_stop_signals", lambda _data: None)  # this process is pytest's
    return found


def ab(folder: Path, *more: str) -> Result:
    (folder / "suite.toml").write_text(SUITE)
    asked = ["ab", str(folder / "suite.toml"), "--b", "--max-num-seqs 64", "--rounds", str(ROUNDS)]
    return CliRunner().invoke(app, ["--data", str(folder / "data"), *asked, *more])


def test_a_slower_side_is_a_confirmed_loss_in_markdown_and_fails_the_gate(tmp_path: Path, machines: Machines) -> None:
    machines.slower = 1.5

    found = ab(tmp_path)

    assert found.exit_code == 1, found.output
    (night,) = store.nights(tmp_path / "data")
    assert "### Nightbench: a loss is confirmed" in found.stdout
    assert "A is `the suite's engine`, B is `--max-num-seqs 64`." in found.stdout
    assert re.search(r"\| \*\*loss\*\* \| `chat` \| `tpot_p50_ms` \|.*\+(49|50|51)\.\d % \[", found.stdout)
    assert f"nightbench open {night}" in found.stdout


def test_equal_sides_pass_the_gate_and_a_side_that_failed_does_not(tmp_path: Path, machines: Machines) -> None:
    passed = ab(tmp_path, "--json")
    answer = json.loads(passed.stdout[passed.stdout.index("{\n") :])
    machines.is_failing = True
    failed = ab(tmp_path)

    assert passed.exit_code == 0, passed.output
    assert {pair["verdict"] for pair in answer["pairs"]} <= {"equivalent", "inconclusive"}
    assert {(pair["a_leases"], pair["b_leases"]) for pair in answer["pairs"]} == {(ROUNDS, ROUNDS)}
    assert failed.exit_code == 1
    assert "nothing was compared" in failed.stdout
    assert "failed: out of memory" in failed.stdout


def test_equal_engines_and_two_releases_on_one_side_are_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(SUITE)
    data = tmp_path / "data"

    found = CliRunner().invoke(app, ["--data", str(data), "ab", str(tmp_path / "suite.toml"), "--plan"])

    assert "'a' and 'b' are equal" in str(found.exception)
    with pytest.raises(UsageError, match=r"names '0\.31' and '0\.32': give one version or image"):
        parse_side("0.31 0.32")
    with pytest.raises(UsageError, match="close the quotes"):
        parse_side("--flag 'open")


def test_a_plan_says_how_many_runs_and_starts_it_takes(tmp_path: Path) -> None:
    assert "24 runs and 9 server starts" in ab(tmp_path, "--plan").stdout


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("", SideOfEngine("the suite's engine")),
        ("0.32.0", SideOfEngine("0.32.0", "0.32.0")),
        ("org/x@sha256:1 --a 1", SideOfEngine("org/x@sha256:1 --a 1", "org/x@sha256:1", (), ("--a", "1"))),
        ("V_X=a=b -q", SideOfEngine("V_X=a=b -q", None, ("V_X=a=b",), ("-q",))),
    ],
)
def test_a_side_is_a_release_then_variables_then_flags(text: str, side: SideOfEngine) -> None:
    assert parse_side(text) == side


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_any_text_of_a_side_stays_one_string_of_the_suite(text: str) -> None:
    side = SideOfEngine("x", text, (f"X={text}",), (f"-{text}",))

    (variant,) = tomllib.loads(side.toml("a"))["variants"]

    assert variant.get("version", variant.get("image")) == text
    assert (variant["environment"], variant["flags"]) == ({"X": text}, [f"-{text}"])


def test_a_text_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(SUITE)

    with pytest.raises(UsageError, match="not valid Unicode"):
        write_ab_suite(tmp_path, tmp_path / "suite.toml", (SideOfEngine("a"), SideOfEngine("b", "\udcff")), 2)


@pytest.mark.matrix
def test_two_sides_on_the_truth_server_differ_by_what_they_were_given(served: NightFixture) -> None:
    """The server of side B sends a token each 15 ms, that of side A each 5 ms."""
    suite = served.write_suite().read_text().partition('[[scenarios]]\nname = "two"')[0]
    served.suite.write_text(suite)

    found = served.cli("ab", str(served.suite), "--b", "TRUTH_ITL_MS=15", "--rounds", str(ROUNDS))

    assert found.returncode == 1, found.stderr
    change = re.search(r"\*\*loss\*\* \| `one` \| `tpot_p50_ms` \| [\d.]+ \| [\d.]+ \| \+([\d.]+) % ", found.stdout)
    assert change is not None, found.stdout
    assert 120 < float(change[1]) < 280
    assert served.leftovers() == []
