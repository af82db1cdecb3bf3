"""Tables of any shape: which number of ours each cell becomes, and that no cell is left out in silence."""

from pathlib import Path

import pytest

from bench.audit.claim import Claim
from catalog.read import find_gpu, read_names
from tests.warehouse.importers.reading import claims_of
from warehouse.audit import AuditOptions, audit
from warehouse.importers.claims_table.claimed_metrics import DIMENSIONS, Slot, slot_of

BY_GPU = """
## DeepSeek-R1, FP8

| Input | Output | MI300X (tok/s) | H200 (tok/s) | 8x MI300X p99 TTFT (ms) |
|---|---|---|---|---|
| 128 | 2048 | 1,200 | 4,336 | ~21 |
|     | 4096 | OOM   | 2,872 |     |
"""


def numbers(claim: Claim) -> dict[str, float]:
    said = {name: value for name, value in vars(claim.said).items() if value is not None and name != "stated_cause"}
    return said | {f"{metric}_{name}": value for metric, of in claim.latency_s.items() for name, value in of.items()}


def test_a_header_may_name_the_gpu_of_its_column() -> None:
    first, second, third, failed, last = claims_of("report.md", BY_GPU)

    assert [claim.asked.gpu for claim in (first, second, third)] == ["MI300X", "H200", "8x MI300X"]
    assert (first.asked.isl, first.asked.osl, first.asked.precision, first.asked.model) == (
        128,
        2048,
        "fp8",
        "DeepSeek-R1",
    )
    assert [numbers(claim) for claim in (first, second)] == [
        {"unstated_throughput_tok_per_s": 1200.0},
        {"unstated_throughput_tok_per_s": 4336.0},
    ]
    assert third.latency("ttft", "p99") == pytest.approx(0.021)
    assert (failed.outcome, last.asked.isl) == ("failed", 128.0)


SUMMARY = """
### On one H100 SXM

| Metric | vLLM | SGLang |
|---|---|---|
| Output throughput (tok/s) | 2,400 | 2,600.5 |
| Mean TTFT | 95 ms | 0.1 s |
| Happiness | 9 | 10 |
"""


def test_a_table_whose_first_column_names_the_metrics_is_read_on_its_side() -> None:
    first, second = claims_of("report.md", SUMMARY)

    assert numbers(first) == {"output_throughput_tok_per_s": 2400.0, "ttft_mean": pytest.approx(0.095)}
    assert numbers(second) == {"output_throughput_tok_per_s": 2600.5, "ttft_mean": pytest.approx(0.1)}
    assert (first.lineage.place, first.asked.gpu) == ("line 6 vLLM", "H100 SXM")
    assert first.cells == {"output_throughput_tok_per_s": (0, 0, 1), "ttft_mean": (0, 1, 1)}
    assert [(each.name, each.value) for each in first.not_read] == [("Happiness", "9")]


def test_a_column_that_is_a_statistic_is_one_of_the_metric_that_the_heading_names() -> None:
    (claim,) = claims_of("x.md", "# Time to first token (s)\n|Model|Median|P99|\n|-|-|-|\n|Llama-3.1-8B|0.2|0.9|\n")

    assert numbers(claim) == {"ttft_median": 0.2, "ttft_p99": 0.9}


def test_a_decimal_comma_is_one_where_the_column_leaves_no_doubt() -> None:
    claims = claims_of("x.csv", "Modell;Model;Output tok/s\na;Llama-3.1-8B;33,1\nb;Llama-3.1-8B;1.240,5\n")

    assert [claim.said.output_throughput_tok_per_s for claim in claims] == [33.1, 1240.5]


def test_tests_of_llama_bench_name_the_tokens_that_they_count() -> None:
    prompt, answer = claims_of(
        "x.md", "|model|test|t/s|\n|-|-|-|\n|llama 8B|pp512|900.5 ± 1.2|\n|llama 8B|tg128|45.1|\n"
    )

    assert (prompt.said.input_throughput_tok_per_s, prompt.asked.isl) == (900.5, 512)
    assert (answer.said.output_throughput_tok_per_s, answer.asked.osl) == (45.1, 128)


def test_two_columns_of_one_meaning_that_disagree_are_a_conflict() -> None:
    same, other = claims_of(
        "x.csv", "Model,Precision,Quantization,Output tok/s\nLlama-3.1-8B,FP8,fp8,33\nLlama-3.1-8B,FP8,INT4,34\n"
    )

    assert same.pairs == ()
    assert [(pair.claimed, pair.observed, pair.where) for pair in other.pairs] == [
        ("FP8", "INT4", "columns Precision / Quantization")
    ]


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ("throughput(out tok/s)", "output_throughput_tok_per_s"),
        ("Prefill speed (t/s)", "input_throughput_tok_per_s"),
        ("Input + Output Throughput (token/s)", "total_throughput_tok_per_s"),
        ("Throughput per user (tok/s)", "per_user_tok_per_s"),
        ("Decode tok/s/GPU", "output_per_gpu_tok_per_s"),
        ("FTL(min)(s)", "ttft_min"),
        ("99% token latency (ms)", "tpot_p99"),
        ("Average-Generation-Latency(sec)", "e2el_mean"),
    ],
)
def test_a_header_that_no_spelling_lists_is_understood_by_its_words(header: str, field: str) -> None:
    (claim,) = claims_of("x.csv", f"Model,{header}\nLlama-3.1-8B,33\n")

    assert list(numbers(claim)) == [field]


@pytest.mark.parametrize("header", ["Total generated tokens/s", "Happy throughput (tok/s)", "p99 throughput (tok/s)"])
def test_a_header_with_an_unknown_word_or_two_meanings_is_named_and_not_guessed(header: str) -> None:
    (claim,) = claims_of("x.csv", f"Model,{header},Output tok/s\nLlama-3.1-8B,33,1\n")

    assert [(each.name, each.value) for each in claim.not_read] == [(header, "33")]


def test_a_row_of_totals_is_no_measurement_and_is_held_against_the_others() -> None:
    *_, total = claims_of("x.csv", "Model,Requests,Output tok/s\nA,1,100\nB,2,200\nC,3,300\nTotal,6,650\n")

    assert numbers(total) == {}
    assert [remark.message.partition(": ")[2] for remark in total.remarks] == [
        "total of Output tok/s is 650, but sum of 100 + 200 + 300 = 600"
    ]


_OURS = [*sorted(DIMENSIONS), "ttft.p99 (ms)", "ttft_p999_ms", "p99_tpot_ms", "e2el_mean_ms"]


@pytest.mark.parametrize("name", [name for name in _OURS if name not in {"ttft", "tpot", "itl", "e2el"}])
def test_each_name_of_ours_is_a_header_with_its_unit(name: str) -> None:
    slot = slot_of(name, "")

    assert isinstance(slot, Slot)
    assert slot.scale is not None


@pytest.mark.parametrize(
    ("name", "meant"), [("Q4", {"q4_k", "iq4_xs", "int4"}), ("Q6", {"q6_k"}), ("Q4_K_M", {"q4_k"})]
)
def test_a_short_name_of_blocks_is_each_of_its_kinds(name: str, meant: set[str]) -> None:
    assert set(read_names().precisions_called(name)) == meant


@pytest.mark.parametrize(("gpu", "tflops"), [("MI300X", 163.4), ("H100-SXM", 494.7), ("V100-16", 15.7)])
def test_fp32_has_a_peak_of_its_own(gpu: str, tflops: float) -> None:
    found = find_gpu(gpu)

    assert found is not None
    assert found.flops_per_s("fp32") == pytest.approx(tflops * 1e12, rel=1e-3)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("5.3 TB/s", ""),
        ("42.4 TB/s (8 GPUs)", ""),
        ("4.8 TB/s", "Memory bandwidth of MI300X is 4.8 TB/s, and 5.325 TB/s in the catalogue"),
        ("fast", ""),
    ],
)
def test_a_fact_of_a_gpu_is_held_against_the_catalogue(cell: str, said: str) -> None:
    table = f"|Metric|MI300X|H100 SXM|\n|-|-|-|\n|Output tok/s|33|44|\n|Memory bandwidth|{cell}||\n"

    (claim, _) = claims_of("x.md", table)

    assert [remark.message.partition(": ")[2] for remark in claim.remarks if remark.code == "fact_conflict"] == (
        [said] if said else []
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            "|GPU|FP8 TFLOPS|TDP (W)|\n|-|-|-|\n|H200|1979|1000|\n",
            "TDP (W) of H200 is 1000 W, and 700 W in the catalogue",
        ),
        ("|GPU|NVLink|\n|-|-|\n|H100 SXM|900 GB/s|\n|H200|450 GB/s|\n", ""),
        ("|GPU|NVLink|\n|-|-|\n|A100 80GB|900 GB/s|\n", "NVLink of A100-80 is 900 GB/s, and 600 GB/s in the catalogue"),
        (
            "|GPU|xGMI (GB/s)|\n|-|-|\n|MI300X|600|\n",
            "xGMI (GB/s) of MI300X is 600 GB/s, and 896 GB/s in the catalogue",
        ),
        ("|Model|KV heads|\n|-|-|\n|Llama-3.1-70B|8|\n|DeepSeek-V3|128|\n", ""),
        (
            "|Model|Active parameters|\n|-|-|\n|Mixtral-8x7B|46.7B|\n",
            "Active parameters of Mixtral-8x7B is 46.7 B, and 12.9 B in the catalogue",
        ),
        (
            "|Model|Parameters|\n|-|-|\n|DeepSeek R1|7 B|\n|DeepSeek R1|685 B|\n|DeepSeek R1|900 B|\n",
            "Parameters of DeepSeek-V3/R1 is 900 B, and 671.026 B in the catalogue",
        ),
    ],
)
def test_a_table_of_facts_is_read_and_held_against_the_catalogue(table: str, said: str) -> None:
    claims = claims_of("x.md", f"# Specifications\n{table}")

    found = [remark.message for claim in claims for remark in claim.remarks if remark.code == "fact_conflict"]
    assert [message.partition(": ")[2] for message in found] == ([said] if said else [])


def test_a_report_of_speeds_in_other_words_has_each_of_its_numbers_named() -> None:
    page = "# Throughput of our engines\n|Engine|Small|Large|\n|-|-|-|\n|A|33|44|\n|B|35|46|\n"

    (claim,) = claims_of("report.md", page)

    assert [(each.name, each.value) for each in claim.not_read] == [
        *(("Small", "33"), ("Small", "35"), ("Large", "44"), ("Large", "46"))
    ]


def test_the_name_of_a_page_is_no_label_of_its_rows(tmp_path: Path) -> None:
    (tmp_path / "awq-70b.md").write_text("|Model|Precision|Output tok/s|\n|-|-|-|\n|Llama-3.1-8B|fp16|33|\n")

    (row,) = audit([str(tmp_path / "awq-70b.md")], AuditOptions()).judged

    assert "label_conflict" not in {finding.code for finding in row.findings if finding.status == "FAIL"}


def test_a_header_may_name_the_engine_of_its_column() -> None:
    first, second = claims_of("x.md", "|Model|MLC LLM (tok/s)|Llama.cpp (tok/s)|\n|-|-|-|\n|Llama-3.1-8B|186.7|86|\n")

    assert [(claim.asked.engine, numbers(claim)) for claim in (first, second)] == [
        ("mlc llm", {"unstated_throughput_tok_per_s": 186.7}),
        ("llama.cpp", {"unstated_throughput_tok_per_s": 86.0}),
    ]


def test_the_unit_of_each_cell_says_that_a_table_is_about_speed() -> None:
    (named,) = claims_of("x.md", "# Findings\n|System|Odd one|\n|-|-|\n|Mac Studio|19.89 Tokens/s|\n")
    (read,) = claims_of("x.md", "# Findings\n|System|Eval Rate|\n|-|-|\n|Mac Studio|19.89 Tokens/s|\n")

    assert [(each.name, each.value) for each in named.not_read] == [("Odd one", "19.89 Tokens/s")]
    assert read.said.output_throughput_tok_per_s == 19.89


def test_a_header_may_name_the_tokens_of_its_rate() -> None:
    prompt, answer = claims_of("x.md", "|Model|Prompt (2048) tok/s|Generation (128) tok/s|\n|-|-|-|\n|Yi-6B|900|45|\n")

    assert (prompt.said.input_throughput_tok_per_s, prompt.asked.isl) == (900.0, 2048)
    assert (answer.said.output_throughput_tok_per_s, answer.asked.osl) == (45.0, 128)


def test_the_other_headers_may_be_values_of_the_first() -> None:
    claims = claims_of("x.md", "Throughput (unit: tokens/s)\n\n|Batch size|1|8|\n|-|-|-|\n|Llama-3.1-8B|33|240|\n")

    assert [(claim.asked.batch, claim.said.unstated_throughput_tok_per_s) for claim in claims] == [(1, 33), (8, 240)]


def test_tokens_of_a_table_of_training_are_those_of_training() -> None:
    (claim,) = claims_of("x.md", "|Model|GBS|Tokens / sec / GPU|\n|-|-|-|\n|Llama-3.1-8B|128|12000|\n")

    assert claim.said.train_tok_per_s_per_gpu == 12000.0


@pytest.mark.parametrize(
    "text",
    [
        "[![CI](badge.svg)](ci)\n\n# Speed\n\n|Engine|Small|\n|-|-|\n|A|33|\n",  # a report that begins with a link
        "model,throughputvllm\na,33\n",
        "# Kernels\n|Case|Speedup|\n|-|-|\n|a|33|\n",
        "# Tiers\n|Recipe|Odd tokens/sec/device|\n|-|-|\n|a|33|\n",
        "# Results\n|batch|Time (ms)|\n|-|-|\n|1|33|\n",
    ],
)
def test_a_table_about_speed_in_words_that_are_not_known_has_its_numbers_named(text: str) -> None:
    claims = claims_of("x.md", text)

    assert "33" in {each.value for claim in claims for each in claim.not_read}


def test_a_remark_in_code_is_no_heading_of_the_table_below() -> None:
    code = "```python\n# weight-only quantization, shown for INT4\nquantize(model)\n```\n"
    table = "| Model | Output tok/s |\n|---|---|\n| Llama-3.1-8B | 120 |\n"

    (claim,) = claims_of("report.md", f"# Speed\n\n{code}\n{table}")
    (below,) = claims_of("report.md", f"# Speed\n\n```pip install it```\n\n## In FP8\n\n{table}")

    assert (claim.asked.precision, below.asked.precision) == (None, "fp8")


def test_a_command_above_a_table_is_not_its_caption() -> None:
    text = "# Speed\n```\n./bench -p llama-fp16.bin\n```\n|Model|Output tok/s|\n|-|-|\n|Llama-3.1-8B|33|\n"

    (claim,) = claims_of("x.md", text)

    assert claim.asked.precision is None


def test_a_second_header_row_belongs_to_the_header() -> None:
    page = "# Speed\n|||RTX 4090|A100 80GB|\n|-|-|-|-|\n||Size|TPS|TPS|\n|Llama-3.1-8B|4.9 GB|130.12|111.7|\n"

    claims = claims_of("x.md", page)

    assert [(one.asked.gpu, one.said.unstated_throughput_tok_per_s) for one in claims] == [
        *(("RTX 4090", 130.12), ("A100 80GB", 111.7))
    ]


@pytest.mark.parametrize(("tpot", "ms", "throughput"), [("12,5", 12.5, 1.234), ("1.012,5", 1012.5, 1234.0)])
def test_one_column_with_decimal_commas_speaks_for_the_table(tpot: str, ms: float, throughput: float) -> None:
    header, row = "Model;TTFT P50 (s);TPOT P50 (ms);Output tok/s", f"Llama-3.1-8B;1,234;{tpot};1.234"
    (claim,) = claims_of("x.csv", f"{header}\n{row}\n")

    assert claim.latency_s == {"ttft": {"median": 1.234}, "tpot": {"median": pytest.approx(ms / 1000)}}
    assert claim.said.output_throughput_tok_per_s == throughput, "1.234 has thousands where 1.012,5 has them"


def test_a_decimal_point_elsewhere_leaves_each_column_to_itself() -> None:
    header, row = "Model;TTFT P50 (s);TPOT P50 (ms);Output tok/s", "Llama-3.1-8B;1.25;12,5;1.234"
    (claim,) = claims_of("x.csv", f"{header}\n{row}\n")

    assert claim.said.output_throughput_tok_per_s == 1.234


@pytest.mark.parametrize("name", ["output_tok_s", "output_throughput_tok_s", "output tokens_s"])
def test_tokens_before_an_s_are_a_rate(name: str) -> None:
    (claim,) = claims_of("x.csv", f"model,{name}\nLlama-3.1-8B,33.1\n")

    assert claim.said.output_throughput_tok_per_s == 33.1
