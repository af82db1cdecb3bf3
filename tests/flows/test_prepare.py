"""The order of `prepare`, without a machine: what it does with images that are there already."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.machine.names import ImageName
from flows import prepare as flow
from infra.clouds.cloud import Snapshot
from infra.images.golden_image import KEEP, delete_old_images
from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import Rig


def test_no_image_that_a_suite_of_many_machines_needs_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock, by_description=False) as emulator:
        rig = Rig(emulator, clock, tmp_path)
        far = clock.now() + timedelta(days=9)
        for number in range(KEEP + 2):
            emulator.plant_snapshot(str(ImageName(f"{number:04x}", far)), foreign=False)
            clock.sleep(60)
        images = rig.cloud.snapshots()

        def prune(_night: object, needed: list[str]) -> list[str]:
            return delete_old_images(rig.cloud, needed=needed)

        def given(_part: object, image: Snapshot) -> Snapshot:
            return image

        monkeypatch.setattr(flow, "plan_preparation", lambda *_, **__: SimpleNamespace())
        monkeypatch.setattr(flow, "rented", lambda *_: "digitalocean")
        monkeypatch.setattr(flow, "machine_nights", lambda _night: images[:-1])
        monkeypatch.setattr(flow, "ready_golden", lambda image: image)
        monkeypatch.setattr(flow, "replicate", given)
        monkeypatch.setattr(flow, "prune_images", prune)
        monkeypatch.setattr(flow, "create_table_artifact", lambda *_, **__: None)
        names = flow.prepare.fn("many-machines.toml").split(", ")

        assert names == [image.name for image in images[:-1]]
        assert [image.name for image in rig.cloud.snapshots()] == [image.name for image in images]
        delete_old_images(rig.cloud, keep=0)
