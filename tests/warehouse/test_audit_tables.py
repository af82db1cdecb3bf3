"""Tables as vendors, clouds and blogs print them: the verdict of each row."""

from pathlib import Path

import pytest

from warehouse.audit import AuditOptions, audit

ALONE = "Model,GPU,Precision,TP,ISL,OSL,Concurrency"
SAME = "Llama-3.1-8B,H100 SXM,bf16,1,1000,1000,64"
KV = "Model,GPU,Precision,TP,GPUs,Max Model Len,gpu_memory_utilization,metric,value,unit"


def judged(tmp_path: Path, text: str, name: str = "vendor.csv") -> list[tuple[str, set[str]]]:
    """The verdict of each row with the codes that fail."""
    path = tmp_path / name
    path.write_text(text)
    rows = audit([str(path)], AuditOptions()).judged
    return [(row.verdict, {found.code for found in row.findings if found.status == "FAIL"}) for row in rows]


@pytest.mark.parametrize("column", ["Attention backend", "Block size"])
def test_rows_that_an_unread_column_tells_apart_are_no_repeats(tmp_path: Path, column: str) -> None:
    rows = "\n".join(f"{SAME},{setting},{rate}" for setting, rate in ((16, 2400), (32, 3000), (64, 3900)))

    assert judged(tmp_path, f"{ALONE},{column},Output tok/s\n{rows}\n") == [("accepted", set())] * 3


def test_repeats_are_not_unstable_because_one_is_negative(tmp_path: Path) -> None:
    rows = "\n".join(f"{SAME},{rate}" for rate in (3000, 3010, -150))

    verdicts = judged(tmp_path, f"{ALONE},Output tok/s\n{rows}\n")

    assert verdicts == [("accepted", set()), ("accepted", set()), ("rejected", {"impossible_values"})]


@pytest.mark.parametrize(
    ("column", "cell", "verdict"),
    [
        ("Speculative decoding", "EAGLE-3", "accepted"),
        ("Speculative decoding", "yes", "accepted"),
        ("Speculative decoding", "off", "rejected"),
        ("Decoding", "MTP, 3 tokens", "accepted"),
        ("Notes", "with a draft model", "accepted"),
        ("Notes", "without speculative decoding", "rejected"),
        ("Notes", "speculative decoding disabled", "rejected"),
        ("Notes", "MTP: off", "rejected"),
        ("Notes", "smtp server on the same host", "rejected"),
        ("Acceptance Length", "1.2", "rejected"),
        ("Acceptance Length", "4.0", "accepted"),
    ],
)
def test_a_table_may_say_that_a_step_gives_several_tokens(tmp_path: Path, column: str, cell: str, verdict: str) -> None:
    row = f'Llama-3.3-70B,H200,fp8,1,1000,1000,1,180,"{cell}"'

    (found,) = judged(tmp_path, f"{ALONE},Output tok/s,{column}\n{row}\n")

    assert found == (verdict, set() if verdict == "accepted" else {"roofline_bandwidth"})


@pytest.mark.parametrize(
    ("cell", "is_rejected"), [("Prefix Caching,on", False), ("Notes,90 % prefix cache hits", False), ("Notes,", True)]
)
def test_a_prompt_from_the_prefix_cache_takes_no_prefill(tmp_path: Path, cell: str, is_rejected: bool) -> None:
    column, _, said = cell.partition(",")

    ((_, codes),) = judged(tmp_path, f"{ALONE},{column},Mean TTFT (ms)\n{SAME[:-2]}1,{said},2\n")

    assert codes == ({"roofline_prefill"} if is_rejected else set())


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (["8B,H100 SXM,bf16,1,1,8192,0.9,GPU KV cache size,425000,tokens"], ("accepted", set())),
        (["70B,H100 SXM,bf16,2,2,8192,0.9,GPU KV cache size,425000,tokens"], ("rejected", {"memory_fit"})),
        (
            [
                "8B,H100 SXM,bf16,1,1,8192,0.9,GPU KV cache size,425000,tokens",
                '8B,H100 SXM,bf16,1,1,8192,0.9,"Maximum concurrency for 8,192 tokens per request",90.5x,',
            ],
            ("rejected", {"kv_capacity"}),
        ),
    ],
)
def test_a_printed_kv_cache_is_a_number_and_is_checked(
    tmp_path: Path, rows: list[str], found: tuple[str, set[str]]
) -> None:
    assert judged(tmp_path, "\n".join((KV, *(f"Llama-3.1-{row}" for row in rows)))) == [found]


@pytest.mark.parametrize("between", [",", "\t", ";", " | "])
def test_a_table_is_read_whatever_stands_between_its_cells(tmp_path: Path, between: str) -> None:
    rows = ["Model,GPU,Precision,TP,Output tok/s", "Llama-3.1-70B,H100 SXM,fp16,1,150", "Llama-3.1-8B,L4,fp8,1,150"]
    rule = ["|---|:--:|---|---|---|"] if "|" in between else []
    cells = [f"| {row} |" if rule else row for row in (line.replace(",", between) for line in rows)]

    verdicts = judged(tmp_path, "\n".join((cells[0], *rule, *cells[1:])), "vendor.md")

    assert verdicts == [("rejected", {"memory_fit"}), ("accepted", set())]


@pytest.mark.parametrize(
    ("header", "cells", "codes"),
    [
        ("Batch,Total Latency (s)", "8,0.28", set()),
        ("Batch,Wall time (s)", "8,0.28", set()),
        ("Total Latency (ms)", "280", set()),
        ("Total time (s),tok/s", "0.28,57.1", set()),
        ("Total time (s),Calls", "0.28,1440", set()),
        ("Concurrency,Duration (s)", "4,0.28", {"duration_short"}),
        ("num_prompts,Total Latency (ms)", "4,280", {"duration_short"}),
        ("Request throughput (req/s),Duration (s)", "4,0.28", {"duration_short"}),
    ],
)
def test_the_latency_of_a_batch_is_no_duration_of_a_run(
    tmp_path: Path, header: str, cells: str, codes: set[str]
) -> None:
    text = f"Model,GPU,Precision,TP,ISL,OSL,{header}\nLlama-3.1-8B,H100 SXM,bf16,1,128,16,{cells}\n"

    ((_, found),) = judged(tmp_path, text)

    assert found == codes


def test_a_column_of_changes_is_no_measurement(tmp_path: Path) -> None:
    table = (
        "| Metric | TP8 | TP8+DCP8 | Change | Improvement(%) |\n|---|---|---|---|---|\n"
        "| Request throughput (req/s) | 1.25 | 1.57 | +0.32 | +25.6% |\n"
        "| Mean TTFT (s) | 271.2 | 227.8 | -43.4 | +16.0% |\n| Median TTFT (s) | 270.9 | 227.0 | -43.9 | +16.2% |\n"
    )

    assert "impossible_values" not in {code for _verdict, codes in judged(tmp_path, table, "a.md") for code in codes}


FAST = "| Model | Precision | GPU | TP | Batch | ISL | OSL | {} |\n|---|---|---|---|---|---|---|---|\n"


@pytest.mark.parametrize(
    "text",
    [
        "## EAGLE-3 speculative decoding\n\n" + FAST.format("Output tok/s"),
        "## Speed\n\nWith speculative decoding:\n\n" + FAST.format("Output tok/s"),
        "## Speed\n\n" + FAST.format("EAGLE-3 output tok/s"),
    ],
)
def test_a_page_may_say_above_its_table_that_a_step_gives_several_tokens(tmp_path: Path, text: str) -> None:
    row = "| Llama-3.1-8B | fp16 | H100 SXM | 1 | 1 | 128 | 128 | 390 |\n"

    assert judged(tmp_path, "## Speed\n\n" + FAST.format("Output tok/s") + row, "a.md")[0][0] == "rejected"
    assert judged(tmp_path, text + row, "a.md")[0][0] != "rejected"


@pytest.mark.parametrize("said", ["Prefix caching on", "Warm cache", "Cache hits", "LMCache", "Multi-turn chats"])
def test_a_page_may_say_above_its_table_that_prompts_are_cached(tmp_path: Path, said: str) -> None:
    table = FAST.format("Mean TTFT (ms)") + "| Llama-3.1-70B | fp8 | H100 SXM | 1 | 1 | 32768 | 128 | 180 |\n"

    assert judged(tmp_path, f"## Speed\n\n{table}", "a.md")[0][1] == {"roofline_prefill"}
    assert judged(tmp_path, f"## {said}\n\n{table}", "a.md")[0][1] == set()


@pytest.mark.parametrize(
    ("columns", "cells", "codes"),
    [
        ("Quantization,dtype", "AWQ,float16", set()),
        ("dtype,Quantization", "bfloat16,FP8", set()),
        ("Quant,Data type", "Q4_K_M,f16", set()),
        ("Quantization,dtype", "FP8,int4", {"label_conflict"}),
        ("Weights Precision,dtype", "FP8,bf16", {"label_conflict"}),
        ("Concurrency,Max concurrency", "8,64", set()),
        ("Concurrency,Concurrent requests", "8,64", {"label_conflict"}),
    ],
)
def test_a_setting_and_its_limit_or_its_way_to_compute_are_not_two_names_of_one(
    tmp_path: Path, columns: str, cells: str, codes: set[str]
) -> None:
    ((_, found),) = judged(tmp_path, f"Model,{columns},tok/s\nLlama-3.1-8B,{cells},52\n")

    assert found == codes


def test_a_time_that_is_rounded_to_0_is_no_failure(tmp_path: Path) -> None:
    rows = "Qwen2.5-0.5B,0.0,140\nQwen2.5-3B,0.1,31\n"

    assert [codes for _, codes in judged(tmp_path, f"Model,TTFT (s),tok/s\n{rows}")] == [set(), set()]
    ((_, found),) = judged(tmp_path, "Model,TTFT (s),tok/s\nQwen2.5-0.5B,0.0,0.0\n")
    assert found == {"failed_not_zero"}


@pytest.mark.parametrize(("header", "cells"), [("tok/s", "1.02k,0.13k,1.2k"), ("ktok/s", "1.02,0.13,1.2")])
def test_thousands_are_as_coarse_as_they_are_printed(tmp_path: Path, header: str, cells: str) -> None:
    columns = f"Input {header},Output {header},Total {header}"

    ((_, found),) = judged(tmp_path, f"Model,{columns}\nLlama-3.1-8B,{cells}\n")

    assert found == set()


@pytest.mark.parametrize(("last", "codes"), [("Average,,2.88", set()), ("Average,,6.20", {"table_arithmetic"})])
def test_a_mean_may_be_weighted_by_another_column(tmp_path: Path, last: str, codes: set[str]) -> None:
    rows = "Chat,1000,2.1\nCode,100,8.4\nRAG,200,4.0\n"

    *_, (_, found) = judged(tmp_path, f"Model,Requests,Mean TTFT (s)\n{rows}{last}\n")

    assert found == codes


def test_a_row_over_all_others_is_no_part_of_their_sum(tmp_path: Path) -> None:
    rows = "Chat,10,510\nCode,20,310\nRAG,30,220\nOverall,60,290\nTotal,60,1040\n"

    assert {code for _, codes in judged(tmp_path, f"Model,Requests,tok/s\n{rows}") for code in codes} == set()
