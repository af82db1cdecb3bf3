"""Billed minutes and downloaded bytes of the nights that `suites/nightly.toml` runs, with and without what is kept.

`python -m benchmarks.nightly_bill` prints the first night, the second, and the one after a new build of the engine:
with nothing kept, with the model in a bucket or on a volume, and with a golden image as well, from which a night pulls
the layers of a new build. A bucket is as fast as any download in the catalogue. Nothing is rented: the cloud is the
emulated one, and each stage takes its time in the plan, as in benchmarks/billed_minutes.py. With `--emulated` they are
run, which takes minutes: see benchmarks/emulated_nights.py.
"""

import argparse
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bench.cost.estimate import estimate_prepare
from bench.cost.host_requirements import SPARE
from bench.cost.lease_cost import kept_usd_per_month
from bench.cost.replica import model_bytes
from bench.physics import GIB
from benchmarks.billed_minutes import CATALOG, ours, read_work
from benchmarks.emulated_nights import EmulatedNight, nights
from benchmarks.recorded import ROOT

SUITE = ROOT / "suites" / "nightly.toml"
NIGHTS = ("first", "second", "after a new build")
NIGHTS_A_MONTH = 30


@dataclass(frozen=True)
class Kept:
    """What stays between nights."""

    name: str
    has_bucket: bool = False
    has_volume: bool = False
    has_image: bool = False

    def usd_per_month(self, model_gb: float) -> float:
        """What keeping it costs."""
        volume_gib = math.ceil(model_gb * 1e9 * SPARE / 1024**3) if self.has_volume else 0
        bucket_usd = model_gb * 1e9 / GIB * CATALOG.pace["spaces_usd_per_gib_month"] if self.has_bucket else 0.0
        image_gb = CATALOG.pace["snapshot_gb"] if self.has_image else 0.0
        return bucket_usd + kept_usd_per_month(volume_gib, image_gb, CATALOG.pace)


WAYS = (
    Kept("nothing kept"),
    Kept("bucket", has_bucket=True),
    Kept("volume", has_volume=True),
    Kept("volume and image", has_volume=True, has_image=True),
)


@dataclass(frozen=True)
class Night:
    """The bill of one night, and what it downloads of the model from the hub."""

    kept: Kept
    night: str
    minutes: float
    usd: float
    model_gb: float


def bills(path: Path = SUITE) -> Iterator[Night]:
    """Each night with each way of keeping things; beside an image, only the layers of a new build are pulled."""
    work = read_work(path)
    model_gb = (model_bytes(work.suite, CATALOG) or 0.0) / 1e9
    for kept in WAYS:
        for night in NIGHTS:
            is_first = night == NIGHTS[0]
            has_model = kept.has_volume and not is_first
            site = replace(work.site, has_model=has_model, has_new_build=night == "after a new build")
            billed = ours(replace(work, site=site), has_snapshot=kept.has_image)
            fill_s = model_gb * 1e9 / CATALOG.pace["download_bytes_per_s"] if kept.has_bucket and is_first else 0.0
            seconds, usd = billed.seconds + fill_s, billed.usd + fill_s / 3600 * site.usd_per_hour
            is_kept = has_model or (kept.has_bucket and not is_first)
            yield Night(kept, night, seconds / 60, usd, 0.0 if is_kept else model_gb)


def show_emulated(found: Iterable[EmulatedNight]) -> None:
    """Print what nights on the emulated cloud downloaded and were billed."""
    titles = ("billed minutes", "GB from the hub", "from the bucket", "GB of images")
    print(f"{'kept':20}{'night':>20}{''.join(f'{title:>17}' for title in titles)}{'layers':>8}")
    for one in found:
        counts = (one.billed_s / 60, one.model_gb, one.bucket_gb, one.image_gb)
        cells = "".join(f"{count:17.1f}" for count in counts)
        print(f"{one.kept:20}{one.night:>20}{cells}{len(one.layers):8}", flush=True)


def main(argv: list[str] | None = None) -> None:
    """Print the nights, and what a month costs where the engine stays and where each night has a new build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--emulated", action="store_true", help="run the nights on the emulated cloud, and count there")
    if parser.parse_args(argv).emulated:
        show_emulated(nights())
        return
    found = list(bills())
    model_gb = max(one.model_gb for one in found)
    print(f"{'':20}{'night':>20}{'billed minutes':>16}{'USD':>8}{'GB from the hub':>18}")
    for one in found:
        print(f"{one.kept.name:20}{one.night:>20}{one.minutes:16.1f}{one.usd:8.2f}{one.model_gb:18.0f}")
    print(f"an image costs {estimate_prepare(read_work(SUITE).site, CATALOG).usd:.2f} USD to build")
    for kept in WAYS:
        usd = {one.night: one.usd for one in found if one.kept == kept}
        same, new = (NIGHTS_A_MONTH * usd[night] + kept.usd_per_month(model_gb) for night in NIGHTS[1:])
        print(f"{NIGHTS_A_MONTH} nights, {kept.name}: {same:.2f} USD, with a new build each night {new:.2f} USD")


if __name__ == "__main__":
    main()
