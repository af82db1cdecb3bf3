"""A suite that extends another file: what is merged, what the hash covers, and where errors stand."""

from pathlib import Path

import pytest

from bench.errors import SuiteError
from bench.suite.suite import Suite
from infra.loadgen.suite_file import parse_suite_file, read_suite

BASE = """\
name = "base"
repeats = 3

[model]
name = "small"
source = "generated:small?seed=0"

[engine]
version = "0.32.0"
max_model_len = 4096
flags = ["--dtype", "bfloat16"]
environment = { A = "1" }

[[scenarios]]
name = "one"
isl = 128
osl = 64
concurrency = 4
request_count = 40
"""
OWN = """\
name = "own"
extends = "base.toml"

[engine]
max_model_len = 2048
environment = { B = "2" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.toml").write_text(BASE)
    return tmp_path


def _read(folder: Path, text: str) -> tuple[Suite, str]:
    (folder / "own.toml").write_text(text)
    return read_suite(folder / "own.toml")


def _refusal(folder: Path, text: str) -> str:
    with pytest.raises(SuiteError) as caught:
        _read(folder, text)
    return str(caught.value).replace(f"{folder}/", "")


def test_tables_are_merged_key_by_key(folder: Path) -> None:
    suite, _ = _read(folder, OWN)

    assert (suite.name, suite.repeats, suite.engine.max_model_len) == ("own", 3, 2048)
    assert (suite.engine.flags, suite.engine.environment) == (("--dtype", "bfloat16"), {"A": "1", "B": "2"})
    assert [entry.name for entry in suite.scenarios] == ["one"]


def test_lists_and_arrays_of_tables_are_replaced(folder: Path) -> None:
    two = '\n[[scenarios]]\nname = "two"\nisl = 8\nosl = 8\nconcurrency = 1\nrequest_count = 9\n'
    suite, _ = _read(folder, OWN.replace("max_model_len = 2048", 'flags = ["--eager"]') + two)

    assert (suite.engine.flags, [entry.name for entry in suite.scenarios]) == (("--eager",), ["two"])


def test_several_models_replace_the_one_that_is_extended(folder: Path) -> None:
    models = "".join(f'\n[[models]]\nname = "{seed}"\nsource = "generated:small?seed={seed}"\n' for seed in (1, 2))

    assert [entry.name for entry in _read(folder, OWN + models)[0].scenarios] == ["one@1", "one@2"]


def test_a_scenario_has_the_id_of_one_written_out(folder: Path) -> None:
    suite, digest = _read(folder, OWN)
    changed = BASE.replace("4096", "2048").replace('"1" }', '"1", B = "2" }')
    (folder / "base.toml").write_text(changed)
    plain, _ = read_suite(folder / "base.toml")

    assert plain.expand()[0].scenario_id == suite.expand()[0].scenario_id
    assert _read(folder, OWN)[1] != digest  # the hash covers the extended file too


def test_paths_of_an_extended_file_are_relative_to_that_file(folder: Path) -> None:
    (folder / "shared").mkdir()
    traced = 'arrivals = "trace"\ntrace = "arrivals.csv"'
    (folder / "shared" / "base.toml").write_text(BASE.replace("concurrency = 4", traced).replace("= 40", "= 2"))
    (folder / "shared" / "arrivals.csv").write_text("arrival_s\n1\n2\n")

    suite, _ = _read(folder, OWN.replace("base.toml", "shared/base.toml"))

    assert suite.scenarios[0].trace == str((folder / "shared" / "arrivals.csv").resolve())


@pytest.mark.parametrize(
    ("own", "base", "why"),
    [
        (OWN.replace("max_model_len", "max_model_lenn"), BASE,
         "own.toml:5: unknown key 'engine.max_model_lenn'; did you mean 'max_model_len'?"),
        (OWN, BASE.replace("flags =", "flagz ="), "base.toml:11: unknown key 'engine.flagz'; did you mean 'flags'?"),
        (OWN, BASE.replace("osl = 64\n", ""), "base.toml:14: the key 'scenarios.0.osl' is missing"),
        (OWN.replace("2048", "64"), BASE, "base.toml:16: scenario 'one' needs isl + osl = 192 tokens of context"),
        (OWN, BASE + "not TOML", "own.toml:2: extends: base.toml: not TOML:"),
        (OWN, BASE.replace("name =", 'extends = "own.toml"\nname =', 1),
         "base.toml:1: extends: the files extend each other in a circle: own.toml extends base.toml extends own.toml"),
        (OWN.replace("base.toml", "own.toml"), BASE, "own.toml:2: extends: the files extend each other in a circle"),
        (OWN.replace("base.toml", "bse.toml"), BASE, "own.toml:2: extends: the suite bse.toml cannot be read"),
        (OWN.replace('"base.toml"', '["base.toml"]'), BASE, "own.toml:2: extends: give the path of one suite file"),
    ],
)  # fmt: skip
def test_an_error_names_the_file_and_line_of_its_key(folder: Path, own: str, base: str, why: str) -> None:
    (folder / "base.toml").write_text(base)

    assert _refusal(folder, own).startswith(why)


def test_the_second_method_of_the_70b_report_has_its_own_loads_and_the_machine_of_the_first() -> None:
    suites = Path(__file__).parents[3] / "suites"
    first, second = (parse_suite_file(suites / f"llama-3.3-70b-mi300x{end}.toml")[0] for end in ("", "-concurrency"))

    loads = [(entry.osl, entry.concurrency, entry.request_count) for entry in second.scenarios]
    assert loads == [(osl, users, 10 * users) for osl in (128, 1024) for users in (1, 4, 8, 16, 32, 64)]
    assert (second.machine.kind, second.local) == (first.machine.kind, first.local)
    assert {entry.base_name for entry in second.scenarios}.isdisjoint(entry.base_name for entry in first.scenarios)
