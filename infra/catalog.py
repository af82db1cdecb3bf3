"""The catalogue's files, as they are installed."""

from functools import cache
from importlib.resources import files

from bench.catalog import Catalog, CatalogModel, Gpu, Pace, Size


@cache
def read_catalog() -> Catalog:
    """Every row of the catalogue."""
    text = {name: files("catalog").joinpath(f"{name}.csv").read_text("utf-8") for name in Catalog.model_fields}
    return Catalog(
        gpus=Gpu.table(text["gpus"]),
        models=CatalogModel.table(text["models"]),
        sizes=Size.table(text["sizes"]),
        paces=Pace.table(text["paces"]),
    )
