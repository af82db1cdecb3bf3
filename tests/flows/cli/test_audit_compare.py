"""`nightbench audit --compare`: a ratio stands where one term differs, and is withdrawn by name where more do."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import UsageError
from flows.cli import app

HEAD = "Model,GPU,#-GPUs,TP,Precision,Framework,ISL,OSL,Concurrency,Output tok/s,Mean TTFT (ms)\n"
OURS = HEAD + "Llama-3.1-8B,H100 SXM,1,1,bf16,vLLM 0.9.2,1000,1000,64,2400,100\n"


def compared(folder: Path, second: str) -> tuple[int, str, BaseException | None]:
    (folder / "a.csv").write_text(OURS)
    (folder / "b.csv").write_text(HEAD + second)
    done = CliRunner().invoke(app, ["audit", "--compare", str(folder / "a.csv"), str(folder / "b.csv")])
    return done.exit_code, done.output, done.exception


def test_a_ratio_of_rows_that_differ_in_one_term_stands(tmp_path: Path) -> None:
    code, output, _ = compared(tmp_path, "Llama-3.1-8B,MI300X,1,1,bf16,vLLM 0.9.2,1000,1000,64,3000,80\n")

    assert code == 0
    assert "output_throughput_tok_per_s: 3000 / 2400 = 1.25" in output
    assert "ttft_mean_s: 0.08 / 0.1 = 0.8" in output
    assert "differs: gpu is H100 SXM and MI300X" in output


def test_the_terms_of_a_ratio_that_does_not_stand_are_named_with_their_direction(tmp_path: Path) -> None:
    code, output, _ = compared(tmp_path, "Llama-3.1-8B,MI300X,8,1,fp8,,1000,1000,64,9000,80\n")

    assert (code, output.split()[:2]) == (1, ["stands", "not"])
    assert "differs: gpu_count is 1 and 8, which speeds up the second" in output
    assert "differs: precision is bf16 and fp8, which speeds up the second" in output
    assert "unknown: engine is vllm and not stated" in output


def test_rows_at_other_points_are_not_compared(tmp_path: Path) -> None:
    rows = "".join(f"Llama-3.1-8B,H100 SXM,1,1,bf16,vLLM,1000,1000,{load},900,80\n" for load in (1, 2))

    assert isinstance(compared(tmp_path, rows)[2], UsageError)


@pytest.mark.parametrize("files", [["a.csv"], ["a.csv", "a.csv", "a.csv"]])
def test_two_files_are_compared(tmp_path: Path, files: list[str]) -> None:
    (tmp_path / "a.csv").write_text(OURS)

    refused = CliRunner().invoke(app, ["audit", "--compare", *(str(tmp_path / file) for file in files)]).exception

    assert "--compare takes two files" in str(refused)
