"""Rows of the catalogue as frozen values: GPUs, models, machine sizes, speeds and spellings.

An empty cell is None. Each name ends with its unit; each file names the sources of its rows.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from bench.catalog.csv_rows import Above, Count, CsvRow, Day, Flag, Share


@dataclass(frozen=True, kw_only=True)
class Gpu(CsvRow):
    """One device: dense peaks, and what its driver reports as memory."""

    KEY: ClassVar = ("gpu",)

    gpu: str
    vendor: str
    arch: str
    mem_gb_spec: Above
    mem_gib_device: Above
    bw_tb_s: Above
    fp16_tflops: Above
    bf16_tflops: Above
    fp32_tflops: Above | None  # None: of its tensor cores, which compute FP32 as TF32 at half the rate of BF16
    fp8_tflops: Above | None
    fp4_tflops: Above | None
    int8_tops: Above | None
    tdp_w: Above
    link_gb_s: Above | None  # to the machine's other GPUs, both directions together; None: not known, or no link
    derivation_fp16: str | None
    max_seen_bw_frac: Share | None
    notes: str | None

    @property
    def bytes_per_s(self) -> float:
        """Peak memory bandwidth."""
        return self.bw_tb_s * 1e12

    def flops_per_s(self, precision: str) -> float:
        """Dense peak at this compute precision; one without arithmetic of its own computes in 16 bits."""
        own = {"fp16": self.fp16_tflops, "fp8": self.fp8_tflops, "int8": self.int8_tops}
        own |= {"fp32": self.fp32_tflops or self.bf16_tflops / 2}
        own |= dict.fromkeys(("fp4", "mxfp4", "nvfp4"), self.fp4_tflops)
        return (own.get(precision) or self.bf16_tflops) * 1e12

    @property
    def highest_flops_per_s(self) -> float:
        """Dense peak at the compute precision that has the highest."""
        return max(map(self.flops_per_s, ("bf16", "fp16", "fp8", "int8", "fp4")))


@dataclass(frozen=True, kw_only=True)
class CanaryFloor(CsvRow):
    """What one test of the canary must reach on a GPU, in the test's unit; a machine below it is not used."""

    KEY: ClassVar = ("gpu", "test")

    gpu: str
    test: str
    floor: Above
    is_verified: Flag  # False: derived from published shares, not yet measured on healthy machines


@dataclass(frozen=True, kw_only=True)
class CatalogModel(CsvRow):
    """One model: its dimensions, as bench.physics needs them; the symbols are those of docs/reference/physics.md."""

    KEY: ClassVar = ("model",)

    model: str
    params_total: Count
    params_active_matmul: Count
    layers: Count
    hidden: Count
    n_heads: Count
    n_kv_heads: Count
    head_dim: Count
    ffn: Count
    moe_layers: Count
    experts: Count
    experts_per_tok: Count
    moe_ffn: Count
    shared_ffn: Count
    mla_kv_lora: Count | None
    mla_q_lora: Count | None
    mla_rope: Count | None
    mla_nope: Count | None
    mla_v: Count | None
    vocab: Count
    tied: Flag
    native_ctx: Count
    attn_window: str | None
    kv_elems_per_token: Count
    expert_params: Count
    params_published: Above | None
    active_published: Above | None
    maker: str
    extra_params: Count
    vision_params: Count
    fp8_block: Count | None
    sparse_top_k: Count | None
    index_bytes_per_token: Count | None
    note: str | None


@dataclass(frozen=True, kw_only=True)
class MachineKind(CsvRow):
    """One kind of machine that a cloud rents out, at a price that was read on a day; empty where none is on record."""

    KEY: ClassVar = ("cloud", "kind")

    cloud: str
    kind: str
    gpu: str
    gpu_count: Count
    is_spot: Flag
    vram_gib: Above
    ram_gib: Above | None
    vcpus: Count | None
    boot_gib: Above | None
    scratch_gib: Above | None
    usd_per_hour: Above | None
    price_date: Day | None


@dataclass(frozen=True, kw_only=True)
class Speed(CsvRow):
    """How fast something goes, or what it costs: an input with a date, observed or assumed as its source says."""

    KEY: ClassVar = ("pace",)

    pace: str
    value: Above
    unit: str
    date: Day


@dataclass(frozen=True, kw_only=True)
class Spelling(CsvRow):
    """What a published table calls a metric or column, as its source prints it.

    `means` are our names, separated by `|` if the words may mean any of them. A latency is
    named `metric.statistic`; without a statistic, the words state none.
    """

    KEY: ClassVar = ("kind", "spelling")

    kind: Literal["metric", "column"]
    spelling: str
    means: str

    @property
    def candidates(self) -> tuple[str, ...]:
        """Our names that these words may mean."""
        return tuple(self.means.split("|"))


@dataclass(frozen=True, kw_only=True)
class HeaderWord(CsvRow):
    """Words of which the headers of published tables are made: what is measured, of which tokens, per what."""

    KEY: ClassVar = ("words",)

    kind: Literal["quantity", "tokens", "per", "statistic", "ignored", "engine"]
    words: str  # in lower case, as warehouse.importers.parsing.printed_units.split_name leaves them
    means: str | None  # None: nothing


@dataclass(frozen=True, kw_only=True)
class Fact(CsvRow):
    """What published tables call a fact of a GPU or model, and the column of the catalogue that has it."""

    KEY: ClassVar = ("words",)

    words: str  # in lower case, without the unit
    subject: Literal["gpu", "model"]
    column: str  # of gpus.csv or models.csv
    unit: str | None  # None: a count


@dataclass(frozen=True, kw_only=True)
class MemoryWord(CsvRow):
    """What published tables call a part of a memory budget."""

    KEY: ClassVar = ("words",)

    words: str  # in lower case, without the unit
    part: Literal["weights", "kv", "other", "used", "total", "free", "capacity"]  # a total is of what is used, or there


@dataclass(frozen=True, kw_only=True)
class RecordField(CsvRow):
    """A field of a tool's result records, and the number or fact of ours that it is."""

    KEY: ClassVar = ("form", "field")

    form: str
    field: str  # as the tool writes it; of nested objects the path with points
    means: str | None  # `said.`, `asked.` or `series.` and our field, or a latency as `ttft.p99`; None: known, not read
    unit: Literal["ns", "ms", "bytes"] | None  # None: as ours
    is_mark: Flag  # whether a record of this tool always has it
