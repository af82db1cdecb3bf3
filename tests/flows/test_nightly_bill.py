"""What `suites/nightly.toml` downloads and is billed on the emulated cloud, keeping nothing, a bucket, or all."""

from pathlib import Path

import pytest

from benchmarks.emulated_nights import (
    BUCKET,
    EVERYTHING,
    FIRST,
    NEW_BUILD,
    NOTHING,
    PREPARE,
    SECOND,
    EmulatedNight,
    run_nights,
)
from tests.emulators.registry import digest_of
from tests.flows.conftest import NightFixture
from tests.flows.nightly_team import BASE, CONTROL_BASE, ENGINE_BYTES

pytestmark = [pytest.mark.matrix, pytest.mark.prefect, pytest.mark.timeout(3000)]
BELOW_THE_ENGINE = {digest_of(layer) for layer in BASE + CONTROL_BASE}


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_a_night_that_keeps_nothing_downloads_the_model_and_both_images_each_time(
    house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights = list(run_nights(NOTHING, house, tmp_path, monkeypatch))

    assert [one.night for one in nights] == [FIRST, SECOND, NEW_BUILD]
    assert [round(one.model_gb) for one in nights] == 3 * [141]
    assert all(len(one.layers) == len(set(one.layers)) == 6 and set(one.layers) > BELOW_THE_ENGINE for one in nights)
    _require_bills(nights)
    assert nights[1].download_s > 8 * 60  # which a volume and an image save


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_with_a_bucket_only_the_first_night_downloads_the_model_from_the_hub(
    house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights = list(run_nights(BUCKET, house, tmp_path, monkeypatch))

    assert [(round(one.model_gb), round(one.bucket_gb)) for one in nights] == [(141, 0), (0, 141), (0, 141)]
    _require_bills(nights)


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_with_a_volume_and_an_image_a_night_downloads_nothing_but_the_layers_of_a_new_build(
    house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared, *nights = run_nights(EVERYTHING, house, tmp_path, monkeypatch)

    assert [one.night for one in (prepared, *nights)] == [PREPARE, FIRST, SECOND, NEW_BUILD]
    assert (round(prepared.model_gb), len(prepared.layers)) == (141, 6)
    assert [one.model_gb for one in nights] == [0.0, 0.0, 0.0]
    assert [len(one.layers) for one in nights] == [0, 0, 1]
    assert not set(nights[2].layers) & BELOW_THE_ENGINE
    assert nights[2].image_gb == pytest.approx(ENGINE_BYTES / 1000)
    _require_bills([prepared, *nights])
    assert nights[1].download_s == 0.0


def _require_bills(nights: list[EmulatedNight]) -> None:
    """Each bill has the time of its downloads, and beside it what a night takes on this computer."""
    assert all(one.billed_s > one.download_s for one in nights)
