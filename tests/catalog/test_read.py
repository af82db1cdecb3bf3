"""The catalogue is read once, whole, without the outside world's packages, and is what was compiled for it."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from bench.catalog.rows import Gpu
from bench.errors import CatalogError
from catalog import read

ROOT = Path(__file__).parents[2]
COMPILED = ROOT / "../shared/data/catalog"


def test_what_was_read_once_is_not_read_again() -> None:
    assert read.read_gpus() is read.read_gpus()
    assert read.read_catalog().models is read.read_models()


def test_reading_needs_nothing_that_is_slow_to_start_but_pydantic() -> None:
    slow = {"numpy", "pandas", "duckdb", "pyarrow", "prefect"}
    code = "import sys; from catalog import read; read.read_gpus(); read.read_models(); print(*sys.modules)"

    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert slow.isdisjoint(found.stdout.split())


@pytest.mark.parametrize("name", ["gpus", "models"])
def test_every_cell_that_was_compiled_is_transcribed(name: str) -> None:
    if not COMPILED.exists():
        pytest.skip("../shared/data/catalog is not here")
    theirs = list(csv.DictReader((COMPILED / f"{name}.csv").open(encoding="utf-8")))
    ours = list(csv.DictReader((ROOT / "catalog" / f"{name}.csv").open(encoding="utf-8")))

    compiled = {row[next(iter(row))] for row in theirs}
    added = [row for row in ours if row[next(iter(row))] not in compiled]
    assert [{key: row[key] for key in theirs[0]} for row in ours if row not in added] == theirs
    assert [row for row in added if not row["source"]] == []


def test_every_size_has_a_gpu_of_the_catalogue() -> None:
    catalog = read.read_catalog()

    assert [size.kind for size in catalog.sizes if catalog.gpu(size.gpu) is None] == []


def test_a_file_that_is_wrong_is_named_with_line_and_column() -> None:
    text = (ROOT / "catalog" / "gpus.csv").read_text("utf-8").replace("MI325X,AMD,CDNA3,256", "MI325X,AMD,CDNA3,plenty")

    with pytest.raises(CatalogError, match=r"catalog/gpus\.csv:3: column 'mem_gb_spec' is 'plenty': give a number"):
        Gpu.table(text, "catalog/gpus.csv")


@pytest.mark.parametrize(
    ("source", "model"),
    [
        ("hf:meta-llama/Llama-3.3-70B-Instruct@abc", "Llama-3.3-70B"),
        ("hf:amd/Llama-3.1-70B-Instruct-FP8-KV", "Llama-3.1-70B"),
        ("hf:deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", None),  # it begins like a model that it is not
        ("hf:deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "Llama-3.3-70B"),  # and here the shape is that of another
        ("generated:Qwen3-8B", None),
    ],
)
def test_an_estimate_knows_a_model_by_the_names_that_an_audit_does(source: str, model: str | None) -> None:
    found = read.read_catalog().model(source)

    assert (found.model if found else None) == model
    assert source.startswith("generated") or found is read.find_model(source)
