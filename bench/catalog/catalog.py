"""The catalogue that plans and audits look things up in: GPUs, models, machine sizes, speeds and their names."""

from dataclasses import dataclass

from bench.catalog.names import Names
from bench.catalog.rows import CatalogModel, Gpu, MachineKind, Speed


@dataclass(frozen=True)
class Catalog:
    """The files that plans are made from."""

    gpus: tuple[Gpu, ...]
    models: tuple[CatalogModel, ...]
    sizes: tuple[MachineKind, ...]
    paces: tuple[Speed, ...]
    names: Names

    def gpu(self, name: str | None) -> Gpu | None:
        """The GPU of this name; None where the catalogue has none."""
        return next((row for row in self.gpus if row.gpu == name), None)

    def size(self, cloud: str | None, kind: str) -> MachineKind | None:
        """A kind of machine of this cloud, or of any; None where the catalogue has none."""
        return next((row for row in self.sizes if row.kind == kind and cloud in {None, row.cloud}), None)

    def model(self, source: str) -> CatalogModel | None:
        """The model of a suite's source, by the names that audits go by too; None if it names no repository."""
        return self.names.model(source) if source.startswith("hf:") else None

    @property
    def pace(self) -> dict[str, float]:
        """Every pace's value, by name."""
        return {row.pace: row.value for row in self.paces}
