"""The bill of the suite that a team leaves on: what is kept saves exactly the stages that it replaces."""

import pytest

from benchmarks.billed_minutes import CATALOG
from benchmarks.nightly_bill import bills


@pytest.mark.matrix
def test_a_volume_saves_the_download_and_an_image_the_install_also_when_the_build_is_new() -> None:
    found = {(one.kept.name, one.night): one for one in bills()}

    plain = [found["nothing kept", night] for night in ("first", "second", "after a new build")]
    assert {(round(one.minutes, 6), one.model_gb) for one in plain} == {(round(plain[0].minutes, 6), plain[0].model_gb)}
    gb, pace = plain[0].model_gb, CATALOG.pace
    verify_s = gb * 1e9 / pace["verify_bytes_per_s"]
    fetch_s = gb * 1e9 / pace["download_bytes_per_s"] + verify_s  # longer than the install, which runs beside it
    second, image = found["volume", "second"], found["volume and image", "second"]
    assert (second.model_gb, found["volume", "first"].model_gb) == (0.0, gb)
    assert plain[1].minutes - second.minutes == pytest.approx((fetch_s - pace["software_s"]) / 60, abs=0.02)
    assert second.minutes - image.minutes == pytest.approx((pace["software_s"] - verify_s) / 60, abs=0.02)
    bucket = [found["bucket", night] for night in ("first", "second", "after a new build")]
    assert [one.model_gb for one in bucket] == [gb, 0.0, 0.0]
    fill_s = gb * 1e9 / pace["download_bytes_per_s"]
    assert [one.minutes - plain[0].minutes for one in bucket] == pytest.approx([fill_s / 60, 0.0, 0.0], abs=0.02)
    assert bucket[1].kept.usd_per_month(gb) == pytest.approx(gb * 1e9 / 1024**3 * 0.02)
    # The layers of a new build arrive while the model on the volume is verified.
    assert found["volume and image", "after a new build"].minutes == pytest.approx(image.minutes, abs=0.02)
    assert found["volume", "after a new build"].minutes == pytest.approx(second.minutes, abs=0.02)
