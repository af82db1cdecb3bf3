"""The image that a size boots where none is named: the cloud refuses one with the GPU driver of another vendor."""

from typing import Literal

Vendor = Literal["amd", "nvidia"]
AMD, ONE_NVIDIA, MANY_NVIDIA, WITHOUT_GPU = "gpu-amd-base", "gpu-h100x1-base", "gpu-h100x8-base", "ubuntu-24-04-x64"


def gpu_vendor(kind: str) -> Vendor | None:
    """Return the vendor of a size's GPUs by its slug, such as `gpu-mi300x1-192gb`; None for a size without GPUs."""
    if not kind.startswith("gpu-"):
        return None
    return "amd" if kind.startswith("gpu-mi") else "nvidia"


def base_image(kind: str) -> str:
    """Return the slug of the base image with the driver for a size's GPUs."""
    vendor = gpu_vendor(kind)
    if vendor is None:
        return WITHOUT_GPU
    if vendor == "amd":
        return AMD
    return MANY_NVIDIA if "x8-" in kind else ONE_NVIDIA
