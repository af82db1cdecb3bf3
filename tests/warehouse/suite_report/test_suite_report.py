"""A suite's report: means with intervals, published figures beside them, and what is refused or not known."""

import csv
import io
import json
import math
from pathlib import Path
from statistics import mean, stdev

import pytest

from bench.errors import UsageError
from bench.suite.parse import parse_suite
from bench.suite.report import Report, ReportTable
from bench.suite.suite import ScenarioEntry, Suite
from catalog.read import machine_size
from infra.loadgen.suite_file import parse_suite_file
from tests.warehouse.folders import Shape, Told, suite, write_night, write_run
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.suite_report.build import build_report, build_table
from warehouse.suite_report.files import write_suite_report
from warehouse.suite_report.formats import FORMATS
from warehouse.suite_report.measured import Measured, NightValues
from warehouse.suite_report.published import differing_terms, figure_of_columns, find_figure, named_figure, other_terms

SUITES = Path(__file__).parents[3] / "suites"
NIGHT = "2026-03-01"
T_975_2 = 4.3027  # of two degrees of freedom, from a table
SHAPES = {"chat": Shape(requests=400), "slow": Shape(requests=400, tokens=16), "broken": Shape(tokens=9)}
METRIC = "output_throughput_tok_per_s"


def _with(*tables: ReportTable) -> Suite:
    return suite(SHAPES).model_copy(update={"report": Report(title="<Synthetic>", tables=tables)})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One night with three repeats of two scenarios, and a scenario whose runs failed."""
    folder = tmp_path_factory.mktemp("reported")
    night = write_night(folder, NIGHT, SHAPES, repeats=3)
    for run in night.runs:
        told = Told("failed", "server", "the <server> ran out of memory") if run.scenario.name == "broken" else Told()
        write_run(folder, night, run, SHAPES[run.scenario.name], told)
    load_night(folder, NIGHT)
    return folder


def test_a_scenario_has_the_mean_of_its_good_runs_with_its_interval(data: Path) -> None:
    rows = build_report(data, _with(ReportTable(title="All"))).tables[0].rows
    runs = run_sql(
        data, f"SELECT {METRIC} FROM standing WHERE scenario = 'chat' AND verdict IN ('accepted', 'suspect')"
    )
    values = [row[0] for row in runs.rows]
    half = T_975_2 * stdev(values) / math.sqrt(3)

    chat = rows[0]
    assert (chat["scenario"], chat["runs"], len(values)) == ("chat", 3, 3)
    assert chat[METRIC] == pytest.approx(mean(values))
    assert chat[f"{METRIC}_high"] - chat[f"{METRIC}_low"] == pytest.approx(2 * half, rel=1e-4)


def test_a_scenario_that_is_measured_with_an_equal_one_has_a_row_of_its_own(data: Path) -> None:
    asked = _with(ReportTable(title="Again", only="again")).model_copy(update={"merged": {"again": "chat"}})

    (again,) = build_report(data, asked).tables[0].rows

    chat = build_report(data, _with(ReportTable(title="All"))).tables[0].rows[0]
    assert again == chat | {"scenario": "again"}


def test_keys_of_the_sources_requests_that_differ_from_ours_are_noted(data: Path) -> None:
    stated = Report(tables=(ReportTable(title="All"),), requests={"temperature": 0.7, "ignore_eos": True, "seed": 1})

    report = build_report(data, suite(SHAPES).model_copy(update={"report": stated}))

    equal, other = report.notes
    assert equal.endswith("like those of the sources in: ignore_eos True")
    assert other.endswith("differ from ours: temperature: 0.7 published, 0.0 here; seed: 1 published, not set here")
    assert other in FORMATS["md"](report)


def test_a_report_says_where_its_sources_state_no_sampling_temperature(data: Path) -> None:
    tables = (ReportTable(title="All"),)
    whole = suite(SHAPES)
    warm = tuple(one.model_copy(update={"temperature": 0.7}) for one in whole.scenarios)

    def notes(scenarios: tuple[ScenarioEntry, ...], **requests: bool | float | str) -> tuple[str, ...]:
        stated = Report(tables=tables, sources=("seed0_runara",), requests=requests)
        return build_report(data, whole.model_copy(update={"report": stated, "scenarios": scenarios})).notes

    assert notes(warm) == ("The sources state no sampling temperature; it is 0.7 here",)
    assert notes(warm, temperature=0.7) == ("The requests are like those of the sources in: temperature 0.7",)


def test_the_note_of_a_table_stands_below_its_heading_in_every_format(data: Path) -> None:
    report = build_report(data, _with(ReportTable(title="All", note="Lengths are a <guess>")))

    written = {name: write(report) for name, write in FORMATS.items()}
    assert "## All\n\nLengths are a <guess>.\n\n| scenario" in written["md"]
    assert "<p>Lengths are a &lt;guess&gt;.</p>" in written["html"]
    assert json.loads(written["json"])["tables"][0]["note"] == "Lengths are a <guess>"
    assert list(csv.reader(io.StringIO(written["csv"])))[1][2:] == ["All", "0", "note", "Lengths are a <guess>"]


def test_a_scenario_whose_runs_failed_has_no_number_and_the_reason(data: Path) -> None:
    report = build_report(data, _with(ReportTable(title="All"), ReportTable(title="Cost", kind="cost")))
    broken = report.tables[0].rows[2]

    assert (broken["verdict"], broken[METRIC], broken["reason"]) == ("failed", None, "the <server> ran out of memory")
    assert report.tables[1].rows[2]["usd_per_mtok_output"] is None
    written = {name: write(report) for name, write in FORMATS.items()}
    assert "| broken | tiny |" in written["md"]
    assert "| failed | 3 | N/A | N/A | N/A | the <server> ran out of memory |" in written["md"]
    assert "the &lt;server&gt; ran out of memory" in written["html"]
    assert "<h1>&lt;Synthetic&gt;</h1>" in written["html"]
    assert json.loads(written["json"])["tables"][0]["rows"][2][METRIC] is None
    cells = list(csv.DictReader(io.StringIO(written["csv"])))
    found = [cell["value"] for cell in cells if (cell["table"], cell["row"], cell["column"]) == ("All", "3", METRIC)]
    assert found == ["N/A"]


def test_a_pivot_has_a_cell_for_each_pair_of_keys(data: Path) -> None:
    table = ReportTable(title="By length", kind="pivot", rows="osl", columns="concurrency")
    rows = build_report(data, _with(table)).tables[0].rows

    assert [(row["osl"], type(row["concurrency=4"])) for row in rows] == [(8, float), (9, str), (16, float)]
    assert rows[1]["concurrency=4"] == "N/A"


def test_the_price_of_tokens_follows_from_the_price_of_an_hour(data: Path) -> None:
    report = build_report(data, _with(ReportTable(title="All"), ReportTable(title="Cost", kind="cost")))
    rows = report.tables[1].rows
    own = next(row for row in rows if (row["price"], row["scenario"]) == ("at the night's own price", "chat"))
    (usd,) = run_sql(data, "SELECT DISTINCT usd_per_hour FROM measurements").rows[0]
    rate = report.tables[0].rows[0][METRIC]

    assert own["usd_per_hour"] == usd
    assert own["usd_per_day"] == pytest.approx(24 * usd)
    by_kind = {kind: own[f"usd_per_mtok_{kind}"] for kind in ("input", "output", "total")}
    shares = {"input": 8 / 16, "output": 1, "total": 8 / 24}  # of 16 tokens in and 8 out
    assert by_kind == pytest.approx({kind: share * usd / 3600 / rate * 1e6 for kind, share in shares.items()})


def test_each_machine_has_its_own_price() -> None:
    suite_of_work, _ = parse_suite_file(SUITES / "llama-4-mi300x-h200.toml")
    table = next(one for one in suite_of_work.report.tables if one.kind == "cost")
    paid = {"mi300x": 16.0, "h200": 28.0}
    counted = {METRIC: 1000.0, "total_input_tokens": 10, "total_output_tokens": 10}
    values = {
        one.name: Measured("accepted", (counted | {"usd_per_hour": paid[str(one.machine.name)]},))
        for one in suite_of_work.expand()
    }

    rows = build_table(suite_of_work, table, NightValues(NIGHT, values)).rows

    machines = {one.name: one.machine for one in suite_of_work.expand()}
    for row in rows:
        machine = machines[row["scenario"]]
        size, is_listed = machine_size(None, machine.kind), row["price"] == "at the listed price"
        assert row["usd_per_hour"] == (size.usd_per_hour if is_listed and size else paid[str(machine.name)])
        assert row["usd_per_mtok_output"] == pytest.approx(row["usd_per_hour"] / 3600 / 1000 * 1e6)
    assert len({(row["price"], row["usd_per_hour"]) for row in rows}) == 4


def test_the_h100_of_the_70b_report_stands_beside_its_mi300x_as_published(data: Path) -> None:
    suite_of_work, _ = parse_suite_file(SUITES / "llama-3.3-70b-mi300x.toml")
    table = next(one for one in suite_of_work.report.tables if one.kind == "published")
    stated = Report(tables=(table,), sources=suite_of_work.report.sources)

    rows = build_report(data, suite(SHAPES).model_copy(update={"report": stated})).tables[0].rows

    told = [(row["metric"], row["gpu"], row["value"]) for row in rows]
    assert told[:2] == [
        ("single_user_throughput", "MI300X", "~33"),
        ("single_user_throughput", "NVIDIA H100 80GB", "~47"),
    ]
    assert [metric for metric, _gpu, _value in told] == [metric for metric in table.metrics for _each in range(2)]
    assert all(row["published_verdict"] for row in rows)


def test_every_row_of_amds_page_finds_its_own_figure() -> None:
    page = parse_suite((SUITES / "amd-mi300x-throughput.toml").read_text(), "amd")
    metrics = {"vllm-throughput": "throughput_gen", "vllm-latency": "latency_avg"}
    found = [find_figure(one, page.report.sources, metrics[one.workload.driver]) for one in page.expand()]

    figures = [one for one in found if one is not None]
    assert len(figures) == len(found) == 40
    assert len({id(one.row) for one in figures}) == 40
    assert figures[0].row.value == "16622.2"


def test_every_training_row_names_its_own_figure_and_an_impossible_one_is_rejected() -> None:
    page, _ = parse_suite_file(SUITES / "amd-mi300x-training.toml")
    sources = page.report.sources
    found = {
        name: named_figure(table, name, sources)[0] for table in page.report.tables for name in table.figures
    }  # fmt: skip

    figures = [one for one in found.values() if one is not None]
    assert sorted(found) == sorted(one.name for one in page.expand())
    assert len({id(one.row) for one in figures}) == len(found) == 24
    assert {name: one.verdict for name, one in zip(found, figures, strict=True) if one.verdict != "accepted"} == {
        "megatron/DeepSeek-V2-Lite@mi300x": "rejected",  # 10,570 TFLOP/s of a GPU that does 1,307
        "flux/Flux,BF16@mi300x": "unchecked",  # images a second, of which no roofline is known
    }


@pytest.mark.parametrize(
    ("columns", "count"), [({"model": "Llama 3.1 8B with FSDP"}, 8), ({"model": "none of theirs"}, 0)]
)
def test_columns_that_name_no_figure_or_several_are_refused(columns: dict[str, str], count: int) -> None:
    with pytest.raises(UsageError, match=f"{count} published figures of train_tflops_per_gpu have"):
        figure_of_columns(columns, ("seed1_amd_performance_results",), "train_tflops_per_gpu")


def test_other_terms_refuse_a_comparison_and_a_newer_engine_does_not() -> None:
    page = parse_suite((SUITES / "llama-3.3-70b-mi300x.toml").read_text(), "runara")
    scenario = page.expand()[0]
    figure = find_figure(scenario, page.report.sources, "output_throughput")
    assert figure is not None
    same = {
        "model_source": "hf:meta-llama/Llama-3.3-70B-Instruct@abc",
        "precision": "fp8",
        "gpus": ["AMD Instinct MI300X VF"],
        "gpu_count": 1,
        "isl": 128,
        "osl": 2048,
        "concurrency_asked": 1,
        "engine": "vllm",
        "engine_version_found": "0.32.0",
    }

    assert list(differing_terms(figure, scenario, Measured("accepted", (same,)))) == []
    assert list(other_terms(figure, Measured("accepted", (same,)))) == [
        "engine: vLLM 0.9.2 (ROCm 7.0.0) published, vllm 0.32.0 here"
    ]
    other = same | {"gpus": ["NVIDIA H100 80GB HBM3"], "precision": "bf16", "isl": 130}
    said = list(differing_terms(figure, scenario, Measured("accepted", (other,))))
    assert [one.partition(":")[0] for one in said] == ["precision", "GPU", "isl"]
    assert "isl: 128 published, 130 here" in said


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (ReportTable(title="Wrong", metrics=("speed",)), "'speed' is not a numeric column"),
        (ReportTable(title="Wrong", kind="pivot", rows="colour", columns="osl"), "'colour' is not a key of a scenario"),
    ],
)
def test_a_table_that_cannot_be_filled_is_refused(data: Path, table: ReportTable, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        build_report(data, _with(table))


@pytest.mark.parametrize(
    ("night", "name", "why"),
    [
        (None, "other", "no night of the suite 'other' is loaded"),
        (NIGHT, "other", "not of 'other'"),
        ("1999", None, "1999"),
    ],
)
def test_a_night_that_is_not_there_or_of_another_suite_is_named(
    data: Path, night: str | None, name: str | None, why: str
) -> None:
    asked = _with(ReportTable(title="All"))
    asked = asked.model_copy(update={"name": name}) if name else asked
    with pytest.raises(UsageError, match=why):
        build_report(data, asked, night)


def test_the_tables_of_a_suite_stand_beside_the_page_of_its_night_in_every_format(data: Path) -> None:
    asked = _with(ReportTable(title="All"))

    page = write_suite_report(data, asked, NIGHT)

    assert page == data / "reports" / NIGHT / f"{asked.name}.html"
    written = {one.suffix[1:]: one.read_text() for one in page.parent.iterdir()}
    assert written == {name: write(build_report(data, asked, NIGHT)) for name, write in FORMATS.items()}
    assert write_suite_report(data, suite(SHAPES), NIGHT) is None  # it declares no report
