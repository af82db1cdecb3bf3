"""What `suites/nightly.toml` downloads and is billed on the emulated cloud, with nothing kept and with everything."""

from pathlib import Path

import pytest

from benchmarks.emulated_nights import EVERYTHING, FIRST, NEW_BUILD, NOTHING, PREPARE, SECOND, EmulatedNight, run_nights
from tests.emulators.registry import digest_of
from tests.flows.conftest import NightFixture
from tests.flows.nightly_team import BASE, CONTROL_BASE, ENGINE_BYTES

pytestmark = [pytest.mark.matrix, pytest.mark.prefect, pytest.mark.timeout(3000)]
BELOW_THE_ENGINE = {digest_of(layer) for layer in BASE + CONTROL_BASE}


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_with_a_volume_and_an_image_a_night_downloads_nothing_but_the_layers_of_a_new_build(
    house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {(one.kept, one.night): one for one in run_nights(house, tmp_path, monkeypatch)}

    plain = [found[NOTHING, night] for night in (FIRST, SECOND, NEW_BUILD)]
    assert [round(one.model_gb) for one in plain] == 3 * [141]
    assert all(len(one.layers) == len(set(one.layers)) == 6 and set(one.layers) > BELOW_THE_ENGINE for one in plain)
    prepared, *kept = (found[EVERYTHING, night] for night in (PREPARE, FIRST, SECOND, NEW_BUILD))
    assert (round(prepared.model_gb), len(prepared.layers)) == (141, 6)
    assert [one.model_gb for one in kept] == [0.0, 0.0, 0.0]
    assert [len(one.layers) for one in kept] == [0, 0, 1]
    assert not set(kept[2].layers) & BELOW_THE_ENGINE
    assert kept[2].image_gb == pytest.approx(ENGINE_BYTES / 1000)
    _require_bills([*plain, prepared, *kept])


def _require_bills(nights: list[EmulatedNight]) -> None:
    """Each bill has the time of its downloads, and beside it what a night takes on this computer."""
    for one in nights:
        assert one.billed_s > one.download_s
    saved_s = nights[1].download_s - nights[-2].download_s
    assert saved_s == nights[1].download_s > 8 * 60
