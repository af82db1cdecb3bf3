"""The catalogue is read once, whole, without the outside world's packages, and is what was compiled for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.catalog.rows import Gpu
from bench.errors import CatalogError
from catalog import read
from tests.catalog import transcribed
from tests.catalog.transcribed import CATALOG
from tests.warehouse.importers.reading import SHARED, at_hand, folder_and_name

ROOT = Path(__file__).parents[2]
# Ours, and what they were transcribed from, where that is at hand.
FILES = ("gpus.csv", "models.csv")
TABLES = [*(CATALOG / name for name in FILES), *at_hand(*(SHARED / "catalog" / name for name in FILES))]


def test_what_was_read_once_is_not_read_again() -> None:
    assert read.read_gpus() is read.read_gpus()
    assert read.read_catalog().models is read.read_models()


def test_reading_needs_nothing_that_is_slow_to_start_but_pydantic() -> None:
    slow = {"numpy", "pandas", "duckdb", "pyarrow", "prefect"}
    code = "import sys; from catalog import read; read.read_gpus(); read.read_models(); print(*sys.modules)"

    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert slow.isdisjoint(found.stdout.split())


@pytest.mark.parametrize("path", TABLES, ids=folder_and_name)
def test_every_cell_that_was_compiled_is_transcribed(path: Path) -> None:
    compiled = transcribed.recorded()[path.stem]

    found = transcribed.digests(path, compiled["columns"])

    assert {key: found.get(key) for key in compiled["rows"]} == compiled["rows"]


@pytest.mark.parametrize("name", ["gpus", "models"])
def test_a_row_that_was_added_to_the_compiled_ones_has_a_source(name: str) -> None:
    compiled = transcribed.recorded()[name]

    rows = transcribed.rows(CATALOG / f"{name}.csv")
    added = [row for row in rows if row[compiled["columns"][0]] not in compiled["rows"]]
    assert added
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
