"""Memory budgets of tables: each number recomputed in GB and GiB, by the model and by the card."""

import pytest

from bench.audit.claim import Claim
from tests.warehouse.importers.reading import alarms, claims_of

ROWS = {
    "Model weights": "70.6 GB",
    "KV cache (batch 32, 4096 context)": "42.9 GB",
    "Activations": "8.0 GB",
    "Total used": "121.5 GB",
    "GPU memory": "192 GB",
    "Headroom": "70.5 GB",
}
ON = "# Llama-3.1-70B in FP8 on one MI300X"


def claim_of(title: str, rows: dict[str, str]) -> Claim:
    lines = "\n".join(f"| {name} | {cell} |" for name, cell in rows.items())
    (claim,) = claims_of("budget.md", f"{title}\n\n| Component | Memory |\n|---|---|\n{lines}\n")
    return claim


def test_a_budget_that_adds_up_is_read_and_not_doubted() -> None:
    claim = claim_of(ON, ROWS)

    assert (alarms([claim]), claim.not_read) == ([], ())
    assert {name for line in claim.budget for name in line.names} == set(claim.cells)
    weights, kv, used, *_ = (line.arithmetic for line in claim.budget)
    assert weights == "Model weights is 70.6 GB: 70.55e9 parameters x 1 bytes (fp8) = 70.55 GB = 65.71 GiB"
    assert kv.endswith("Llama-3.1-70B x 4096 tokens x 32 sequences x 2 bytes = 42.95 GB = 40 GiB")
    assert used.partition(": ")[2] == (
        "70.6 GB (Model weights) + 42.9 GB (KV cache) + 8 GB (Activations) = 121.5 GB = 113.2 GiB"
    )


@pytest.mark.parametrize(
    ("name", "cell", "said"),
    [
        ("Model weights", "35.3 GB", "but 70.55e9 parameters x 1 bytes (fp8) = 70.55 GB = 65.71 GiB"),
        ("KV cache (batch 32, 4096 context)", "60 GB", "32 sequences x 2 bytes = 42.95 GB = 40 GiB"),
        ("Total used", "151.5 GB", "42.9 GB (KV cache) + 8 GB (Activations) = 121.5 GB = 113.2 GiB"),
        ("GPU memory", "292 GB", "GPU memory is 292 GB, but"),
        ("Headroom", "50.5 GB", "but 192 GB (GPU memory) - (121.5 GB (Total used)) = 70.5 GB = 65.66 GiB"),
        ("Headroom", "17 %", "/ 192 GB (GPU memory) = 36.72 %"),
    ],
)
def test_a_number_that_fits_in_no_unit_is_named_with_its_arithmetic(name: str, cell: str, said: str) -> None:
    wrong = [line.arithmetic for line in claim_of(ON, ROWS | {name: cell}).budget if line.is_wrong]

    assert any(said in line for line in wrong)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"Weights": "131.4 GB"}, "= 141.1 GB = 131.4 GiB; it fits in GiB, not in GB"),
        ({"Weights": "131.4", "KV cache": "20"}, "= 141.1 GB = 131.4 GiB; no unit is printed, GiB fits"),
        ({"Weights": "131.4 GiB", "KV cache": "20 GB", "Used": "151.4 GB"}, "; it fits if all are GB"),
    ],
)
def test_a_number_that_fits_in_the_other_unit_is_told_so(rows: dict[str, str], said: str) -> None:
    claim = claim_of("# Memory of Llama-3.1-70B in BF16", rows)

    assert [line.arithmetic.endswith(said) for line in claim.budget if line.is_other_unit or line.is_wrong] == [True]


def test_a_row_is_a_budget_of_its_own_model_and_card() -> None:
    table = (
        "Model,Precision,GPU,Weights (GB),KV cache (GB),Used (GB),Free (GB),Output tok/s\n"
        "Llama-3.1-70B,FP8,MI300X,70.6,42.9,113.5,78.5,900\n"
        "Llama-3.1-70B,BF16,8x H100 SXM,17.6,20,37.6,42.4,1200\n"
        "Llama-3.1-8B,BF16,H100 SXM,16.1,20,36.1,52,2000\n"
    )

    one, several, wrong = claims_of("x.csv", table)

    assert [any(line.is_wrong for line in claim.budget) for claim in (one, several, wrong)] == [False, False, True]
    assert wrong.said.unstated_throughput_tok_per_s is None
    assert wrong.cells["memory_free"] == (0, 2, 6)


def test_a_part_without_a_number_leaves_the_sum_open() -> None:
    claim = claim_of(ON, {"Model weights": "70.6 GB", "KV cache": "the rest", "Total used": "180 GB"})

    assert [line.names for line in claim.budget] == [("memory_weights",)]
    assert [(each.name, each.value) for each in claim.not_read] == [("Memory", "180 GB")]


def test_sums_that_fit_in_no_row_are_of_parts_that_the_table_does_not_show() -> None:
    rows = "".join(f"Llama-3.1-8B,BF16,16.1,{kv},{16.1 + kv + 3}\n" for kv in (10, 20, 30))

    claims = claims_of("x.csv", f"Model,Precision,Weights (GB),KV cache (GB),Used (GB)\n{rows}")

    assert [[line.names[0] for line in claim.budget] for claim in claims] == [["memory_weights"]] * 3
    assert [each.name for each in claims[0].not_read] == ["KV cache (GB)", "Used (GB)"]


def test_weights_that_are_counted_are_no_memory() -> None:
    head = "| Model | Weights (B) | Active (B) | Output tok/s | Memory (MiB) |\n|---|---|---|---|---|\n"

    claims = claims_of("report.md", f"# Speed\n\n{head}| Llama 2 7B Q4_0 | 7 | 7 | 50.1 | 4096 |\n")

    assert alarms(claims) == []
    assert {each.name for each in claims[0].not_read} >= {"Weights (B)", "Active (B)"}


def test_a_part_whose_cell_is_no_number_says_nothing_of_the_other_parts() -> None:
    head = "| weight | activation | checkpoint size (GB) |\n|---|---|---|\n"
    table = f"{head}| bfloat16 | bfloat16 | 16.1 |\n| int8_rowwise | bfloat16 | 9.1 |\n"

    assert alarms(claims_of("report.md", f"# Sizes\n\nAll for `meta-llama/Llama-3.1-8B`.\n\n{table}")) == []
