"""What the emulated cloud sells: sizes, regions and base images, with the prices of autumn 2026."""

from dataclasses import dataclass, field, replace
from typing import Any

Json = dict[str, Any]
HOURS_A_MONTH = 744.0  # price_monthly is shown as 31 days
FEATURES = ("backups", "ipv6", "metadata", "install_agent")
WITHOUT_STORAGE = frozenset({"mem1"})  # which of the real ones have none is unknown; a new one may


@dataclass(frozen=True)
class Gpu:
    """What a GPU size carries; memory in GiB for all GPUs together."""

    model: str
    count: int
    vram_gib: int

    @property
    def vendor(self) -> str:
        return self.model.partition("_")[0]


@dataclass(frozen=True)
class Size:
    """One kind of droplet; RAM in GiB, disks in GiB."""

    slug: str
    usd_per_hour: float
    regions: tuple[str, ...]
    vcpus: int
    memory_gib: int
    disk_gib: int
    scratch_gib: int = 0
    gpu: Gpu | None = None
    available: bool = True
    transfer_tib: float = 15.0

    def json(self) -> Json:
        shown: Json = {
            "slug": self.slug,
            "memory": self.memory_gib * 1024,
            "vcpus": self.vcpus,
            "disk": self.disk_gib,
            "transfer": self.transfer_tib,
            "price_monthly": round(self.usd_per_hour * HOURS_A_MONTH, 2),
            "price_hourly": self.usd_per_hour,
            "regions": list(self.regions),
            "available": self.available,
            "description": "Basic" if self.gpu is None else f"{self.gpu.model} - {self.gpu.count}X",
            "networking_throughput": 2000 if self.gpu is None else 10000,
            "disk_info": self.disks(),
        }
        return shown if self.gpu is None else shown | {"gpu_info": self.gpu_info()}

    def disks(self) -> list[Json]:
        disks = [{"type": "local", "size": {"amount": self.disk_gib, "unit": "gib"}}]
        if self.scratch_gib:
            disks.append({"type": "scratch", "size": {"amount": self.scratch_gib, "unit": "gib"}})
        return disks

    def gpu_info(self) -> Json:
        if self.gpu is None:
            return {}
        return {
            "count": self.gpu.count,
            "vram": {"amount": self.gpu.vram_gib, "unit": "gib"},
            "model": self.gpu.model,
        }


@dataclass
class Region:
    """One data centre."""

    slug: str
    name: str
    available: bool = True
    features: tuple[str, ...] = field(default=(*FEATURES, "storage"))

    @property
    def has_storage(self) -> bool:
        return "storage" in self.features


def _gpu(slug: str, usd_per_hour: float, regions: str, gpu: Gpu) -> Size:
    one = Size(slug, usd_per_hour, tuple(regions.split()), 20, 240, 720, 5120, gpu)
    return one if gpu.count == 1 else replace(one, vcpus=160, memory_gib=1920, disk_gib=2046, scratch_gib=40960)


def sizes() -> list[Size]:
    """On demand and spot; a spot size's price is the one of the day."""
    return [
        Size("s-1vcpu-1gb", 0.00893, ("nyc1", "nyc3", "tor1", "atl1"), 1, 1, 25, transfer_tib=1.0),
        Size("s-2vcpu-4gb", 0.03571, ("nyc1", "nyc3", "tor1", "atl1"), 2, 4, 80, transfer_tib=4.0),
        _gpu("gpu-mi300x1-192gb", 2.59, "atl1 tor1 nyc2", Gpu("amd_mi300x", 1, 192)),
        _gpu("gpu-mi300x8-1536gb", 20.72, "atl1 tor1", Gpu("amd_mi300x", 8, 1536)),
        replace(_gpu("gpu-mi325x1-256gb", 3.80, "tor1 nyc2", Gpu("amd_mi325x", 1, 256)), memory_gib=164),
        replace(_gpu("gpu-mi325x8-2048gb", 30.40, "tor1 nyc2", Gpu("amd_mi325x", 8, 2048)), memory_gib=1310),
        _gpu("gpu-h100x1-80gb", 4.41, "tor1 nyc2 ams3", Gpu("nvidia_h100", 1, 80)),
        _gpu("gpu-h100x8-640gb", 35.28, "tor1 nyc2", Gpu("nvidia_h100", 8, 640)),
        _gpu("gpu-h200x1-141gb", 4.47, "nyc2 atl1", Gpu("nvidia_h200", 1, 141)),
        _gpu("gpu-h200x8-1128gb", 35.76, "nyc2 atl1", Gpu("nvidia_h200", 8, 1128)),
        _gpu("gpu-mi350x1-288gb-spot", 2.46, "ric1", Gpu("amd_mi350x", 1, 288)),
        _gpu("gpu-mi355x1-288gb-spot", 2.97, "mem1", Gpu("amd_mi355x", 1, 288)),
        _gpu("gpu-b300x1-288gb-spot", 11.19, "ric1", Gpu("nvidia_b300", 1, 288)),
    ]


def regions() -> list[Region]:
    names = {
        "nyc1": "New York 1",
        "nyc2": "New York 2",
        "nyc3": "New York 3",
        "ams3": "Amsterdam 3",
        "tor1": "Toronto 1",
        "atl1": "Atlanta 1",
        "ric1": "Richmond 1",
        "mem1": "Memphis 1",
    }
    return [
        Region(slug, name, features=FEATURES) if slug in WITHOUT_STORAGE else Region(slug, name)
        for slug, name in names.items()
    ]


def region_json(region: Region, sold: list[Size]) -> Json:
    return {
        "name": region.name,
        "slug": region.slug,
        "features": list(region.features),
        "available": region.available,
        "sizes": [size.slug for size in sold if region.slug in size.regions],
    }
