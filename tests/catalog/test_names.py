"""Names that published files, drivers and repositories use, and the rows they mean; what could be two rows is none."""

import csv
from pathlib import Path

import pytest

from bench.catalog.csv_rows import CsvRow
from bench.catalog.names import Name, Names
from bench.errors import CatalogError
from catalog import read
from catalog.read import find_gpu, find_model, precision_of, read_gpus, read_models, read_names
from tests.warehouse.importers.reading import TABLES, folder_and_name

# What the published files say that is no row, or could be several: nothing else of theirs stays unknown.
UNKNOWN_GPUS = {
    "NVIDIA H100 80GB",  # SXM or PCIe: 3.35 or 2.0 TB/s
    "NVIDIA H100",
    "H100",
    "NVIDIA H100 SM",  # one of its processors
    "AMD MI300X CU",
    "AMD MI300X vs NVIDIA H100",
    "AMD Instinct MI300X 192GB HBM3 (x32), AMD Instinct MI325X 256GB HBM3e (x16)",
    "AMD Instinct MI325X 256GB HBM3E (x16), AMD Instinct MI300X 192GB HBM3 (x8)",
}
UNKNOWN_MODELS = {
    "Mistral 7B with FSDP",  # of no stated version
    "FLUX (FLUX.1-dev)",
    "deepseek-ai/DeepSeek-V4-Flash-0731",
    "Qwen3-VL-235B vs Kimi-K2.5",
    "general models",
    "70B",
    "MI300X headroom",
    "KV cache 32K context",
    "70B + 32K KV total",
}
UNKNOWN_PRECISIONS = {"UNSET"}


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        ("MI300X", "MI300X"),
        ("mi300x", "MI300X"),
        ("AMD Instinct MI300X 192GB", "MI300X"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("AMD Instinct MI300X VF", "MI300X"),
        ("AMD Instinct MI300X-NPS1-SPX-192GB-750W", "MI300X"),
        ("8x MI300X", "MI300X"),
        ("8 x AMD Instinct MI300X", "MI300X"),
        ("8xMI300X", "MI300X"),
        ("8*MI300X", "MI300X"),
        ("8 MI300X", "MI300X"),
        ("MI300X x8", "MI300X"),
        ("MI300X x 8", "MI300X"),
        ("HGX H200 8-GPU", "H200"),
        ("H200 (8 GPUs)", "H200"),
        ("4x4090", "RTX4090"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("NVIDIA H100 SXM5 80GB", "H100-SXM"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("Virtualized NVIDIA H200-SXM-141GB", "H200"),
        ("NVIDIA B200-SXM-180GB", "B200"),
        ("NVIDIA A100-SXM4-80GB", "A100-80"),
        ("NVIDIA A100 80GB", "A100-80"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("AMD Radeon RX 7900 XTX", "RX7900XTX"),
        ("NVIDIA A100 80GB PCIe", "A100-80-PCIe"),
        ("NVIDIA A100-PCIE-40GB", "A100-40-PCIe"),
        ("NVIDIA H200 NVL", "H200-NVL"),
        ("NVIDIA GH200 480GB", "GH200-96"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("GB300 NVL72", "GB300"),
        ("NVIDIA L4", "L4"),
        ("L40", "L40"),
        ("NVIDIA A10G", "A10G"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX4070Ti-SUPER"),
        ("NVIDIA GeForce RTX 4080", "RTX4080"),
        ("AMD Radeon PRO W7900", "W7900"),
        ("AMD Radeon AI PRO R9700", "R9700"),
        ("Tesla V100-SXM2-32GB", "V100-32"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX6000-Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000"),
        ("RTX 5090", "RTX5090"),
        ("AMD Instinct MI300A", "MI300A"),
        ("AMD Instinct MI350X", "MI350X"),
    ],
)
def test_a_gpu_is_found_by_what_it_is_called(text: str, gpu: str) -> None:
    found = find_gpu(text)

    assert found is not None
    assert found.gpu == gpu


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpu",
        "NVIDIA A100",  # 40 or 80 GB
        "NVIDIA GH200",  # 96 or 144 GB
        "Tesla V100",  # 16 or 32 GB
        "RTX 6000",  # of three generations
        "H100 94GB",
        "B200 192GB",
        "MI300X 128GB",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "gfx942",  # MI300X or MI325X
        "MI300X CPX",
        "x86_64 CPU",
        *sorted(UNKNOWN_GPUS),
    ],
)
def test_a_gpu_that_could_be_two_or_is_no_row_is_none(text: str) -> None:
    assert find_gpu(text) is None


@pytest.mark.parametrize(
    ("text", "accelerator"),
    [
        ("TPU v5e", "TPU v5e"),
        ("tpu-v6e-8", "TPU v6e"),
        ("Intel Gaudi 3", "Gaudi 3"),
        ("gaudi2", "Gaudi 2"),
        ("TPU", None),
    ],
)
def test_an_accelerator_may_be_known_by_its_name_alone(text: str, accelerator: str | None) -> None:
    assert (read_names().accelerator(text), read_names().gpus_called(text)) == (accelerator, ())


def test_a_name_is_of_a_gpu_or_of_an_accelerator_without_physics() -> None:
    names = read_names()

    assert {name for name in names.accelerators.values() if names.gpus_called(name)} == set()


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", "Llama-3.3-70B"),
        ("hf:meta-llama/Llama-3.3-70B-Instruct@0123abcd", "Llama-3.3-70B"),
        ("amd/Llama-3.1-70B-Instruct-FP8-KV", "Llama-3.1-70B"),
        ("/data/models/Meta-Llama-3.1-405B-Instruct-FP8-KV/", "Llama-3.1-405B"),
        ("RedHatAI/Llama-3.3-70B-Instruct-quantized.w8a8", "Llama-3.3-70B"),
        ("meta-llama/Llama-2-70b-chat-hf", "Llama-2-70B"),
        ("llama2-70b-99.9", "Llama-2-70B"),
        ("llama3.1-8B", "Llama-3.1-8B"),
        ("Llama v3.3 70B", "Llama-3.3-70B"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "Mistral-7B-v0.3"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "Mixtral-8x7B"),
        ("deepseek-ai/DeepSeek-R1", "DeepSeek-V3/R1"),
        ("DeepSeek-V3/R1", "DeepSeek-V3/R1"),
        ("deepseek-ai/DeepSeek-V3.2", "DeepSeek-V3.2"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("Qwen/Qwen3-VL-235B-A22B-Instruct", "Qwen3-VL-235B-A22B"),
        ("Qwen/Qwen3-235B-A22B-FP8", "Qwen3-235B-A22B"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen3-30B-A3B-2507"),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "Qwen3-235B-A22B-2507"),
        ("Qwen/Qwen3-0.6B", "Qwen3-0.6B"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "Qwen2.5-72B"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8", "Qwen3-Coder-480B-A35B"),
        ("bartowski/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "Llama-3.1-8B"),
        ("unsloth/gemma-3-27b-it-GGUF", "Gemma-3-27B"),
        ("RedHatAI/Mistral-Small-24B-Instruct-2501-quantized.w8a8", "Mistral-Small-24B"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "Llama-3.3-70B"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "Qwen2.5-32B"),
        ("nvidia/DeepSeek-V3.1-NVFP4", "DeepSeek-V3/R1"),
        ("zai-org/GLM-4.5-Air-FP8", "GLM-4.5-Air"),
        ("microsoft/phi-4", "Phi-4"),
        ("meta-llama/Meta-Llama-3-70B-Instruct", "Llama-3-70B"),
        ("TheBloke/CodeLlama-34B-Instruct-GPTQ", "CodeLlama-34B"),
        ("Yi-1.5-34B-Chat-AWQ", "Yi-34B"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "Mistral-7B-v0.2"),
        ("CohereForAI/c4ai-command-r-plus", "Command-R-Plus-104B"),
        ("internlm/internlm2_5-7b-chat", "InternLM2.5-7B"),
        ("llama2-7B", "Llama-2-7B"),
    ],
)
def test_a_model_is_found_by_its_repository_its_path_or_its_label(text: str, model: str) -> None:
    found = find_model(text)

    assert found is not None
    assert found.model == model


@pytest.mark.parametrize(
    "text",
    [
        "",
        "llama",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
        "deepseek-ai/DeepSeek-R1-Zero-Distill",
        "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF",
        "meta-llama/Llama-3.2-11B-Vision",
        "meta-llama/Meta-Llama-3-71B",
        "Qwen/Qwen3-30B-A3B-Instruct-2601",  # weights of another month may have another context
        "Qwen/Qwen-30.6B",
        "moonshotai/Kimi-K2-Thinking",
        *sorted(UNKNOWN_MODELS),
    ],
)
def test_a_model_of_another_name_is_none(text: str) -> None:
    assert find_model(text) is None


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("FP8 (--quantization fp8)", "fp8"),
        ("fp8_e4m3", "fp8"),
        ("BF16 (repo default)", "bf16"),
        ("bfloat16", "bf16"),
        ("torch.float16", None),
        ("float16", "fp16"),
        ("INT4 QAT", "int4"),
        ("W4A16", "int4"),
        ("fp4 (MX4)", "mxfp4"),
        ("fp4", "fp4"),
        ("NVFP4", "nvfp4"),
        ("Q4_K_M", "q4_k"),
        ("Q8_0", "q8_0"),
        ("IQ2_XXS", None),
        ("modelopt_fp4", "nvfp4"),
        ("gptq", None),  # of 4 or 8 bits
        ("UNSET", None),
        ("auto", None),
        ("fp8 or bf16", None),
        ("w8a8", None),  # INT8 or FP8
        ("", None),
    ],
)
def test_a_precision_is_one_or_none(text: str, precision: str | None) -> None:
    assert precision_of(text) == precision


@pytest.mark.parametrize(
    ("model", "precision"),
    [
        ("amd/Llama-3.1-70B-Instruct-FP8-KV", "fp8"),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "int4"),
        ("unsloth/gpt-oss-120b-BF16", "bf16"),
        ("meta-llama/Llama-3.3-70B-Instruct", None),
        ("org/x-fp8-from-bf16", None),
        ("bartowski/Qwen2.5-7B-Instruct-Q5_K_M.gguf", "q5_k"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "int4"),
    ],
)
def test_a_model_may_say_its_precision_in_its_name(model: str, precision: str | None) -> None:
    assert read_names().precision_in(model) == precision


@pytest.mark.parametrize(
    ("text", "precisions"),
    [
        ("w8a8", ("fp8", "int8")),
        ("W8A8 (dynamic)", ()),
        ("4-bit", ("fp4", "int4")),
        ("gptq", ("int4", "int8")),
        ("x9", ()),
    ],
)
def test_a_precision_may_be_one_of_several(text: str, precisions: tuple[str, ...]) -> None:
    assert read_names().precisions_called(text) == precisions


def test_every_row_is_found_by_its_own_name() -> None:
    assert [find_gpu(row.gpu) for row in read_gpus()] == list(read_gpus())
    assert [find_model(row.model) for row in read_models()] == list(read_models())


@pytest.mark.parametrize("path", TABLES, ids=folder_and_name)
def test_every_name_in_the_published_files_is_known_or_known_not_to_be(path: Path) -> None:
    rows = list(csv.DictReader(path.open(encoding="utf-8")))

    unknown = {text for row in rows if (text := row["gpu"]) and find_gpu(text) is None}
    assert unknown <= UNKNOWN_GPUS
    unknown = {text for row in rows if (text := row["model"]) and find_model(text) is None}
    assert unknown <= UNKNOWN_MODELS
    unknown = {text for row in rows if (text := row["precision"]) and precision_of(text) is None}
    assert unknown <= UNKNOWN_PRECISIONS


def named(name: str, means: str) -> Names:
    return Names.of(read_gpus(), read_models(), [Name(kind="gpu", name=name, means=means, source="a test")])


def test_a_name_of_no_row_is_refused() -> None:
    with pytest.raises(CatalogError, match="'MI999' means 'MI999X', which is not a gpu"):
        named("MI999", "MI999X")


def test_a_name_of_two_rows_is_refused() -> None:
    with pytest.raises(CatalogError, match="'mi-300-x' means 'MI325X' and another row"):
        named("mi-300-x", "MI325X")


def test_every_name_has_a_source() -> None:
    rows: tuple[CsvRow, ...] = Name.table(Path(read.__file__).with_name("names.csv").read_text("utf-8"), "names.csv")

    assert all(row.source for row in rows)


def test_a_gpu_with_two_memories_is_named_by_its_memory() -> None:
    assert find_gpu("RTX 3080") is None
    assert {gpu.gpu for gpu in read_names().gpus_called("RTX 3080")} == {"RTX3080-10", "RTX3080-12"}


def test_the_catalogue_has_the_gpus_and_models_that_people_publish() -> None:
    assert (len(read_gpus()) >= 60, len(read_models()) >= 120) == (True, True)
