"""DigitalOcean's invoices: by the emulated API, whose replies the API's description judges, and as CSV."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.cost.invoice import Month
from bench.errors import CloudDeniedError, UsageError
from infra.clouds.digitalocean.invoices import read_invoice_csv
from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import Rig

HEADER = "product,group_description,description,hours,start,end,USD,project_name,category\n"
LINE = (
    "GPU Droplets,,nb-abc-a1-x1 (gpu-mi300x1-192gb),4,2026-11-03 22:00:00 +0000,2026-11-04 02:00:00 +0000,"
    "$1_012.50,,iaas\n"
)


def test_a_month_is_billed_by_its_invoice_and_the_current_one_by_its_preview(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock) as emulator:
        rig = Rig(emulator, clock, tmp_path)
        droplet = emulator.plant_droplet("nb-abc-a1-x1", foreign=False)
        volume = emulator.plant_volume("nb-vol-1-atl1-x1", size_gib=160, foreign=False)
        began = datetime.fromtimestamp(emulator.state.now, UTC)
        clock.sleep(40 * 86400)
        now = datetime.fromtimestamp(emulator.state.now, UTC)

        first = rig.cloud.invoice(Month(began.year, began.month))
        preview = rig.cloud.invoice(Month(now.year, now.month))
        none = rig.cloud.invoice(Month(began.year - 1, 1))

    assert none is None
    assert first is not None
    assert preview is not None
    assert {(item.sort, item.resource_id, item.name) for item in preview} == {
        ("machine", str(droplet.droplet_id), "nb-abc-a1-x1"),
        ("volume", volume.volume_id, "nb-vol-1-atl1-x1"),
    }
    machine = next(item for item in first if item.sort == "machine")
    hours = (machine.ended_at - machine.began_at).total_seconds() / 3600
    assert machine.usd == pytest.approx(hours * 2.59, abs=0.01)
    assert machine.began_at == began.replace(microsecond=0)


def test_a_token_that_may_not_read_invoices_is_told_its_scope(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock) as emulator:
        cloud = Rig(emulator, clock, tmp_path).cloud_with(token=emulator.add_token("droplet:read"))

        with pytest.raises(CloudDeniedError, match="lacks the scope billing:read"):
            cloud.invoice(Month(2026, 11))


def test_an_invoice_as_csv_has_names_and_no_ids(tmp_path: Path) -> None:
    path = tmp_path / "invoice.csv"
    path.write_text(HEADER + LINE.replace("$1_012.50", '"$1,012.50"'))

    (item,) = read_invoice_csv(path)

    assert (item.name, item.sort, item.usd, item.resource_id) == ("nb-abc-a1-x1", "machine", 1012.5, None)
    assert item.began_at == datetime(2026, 11, 3, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("day,usd\n", "not an invoice of DigitalOcean: it has no column product"),
        (HEADER + LINE.replace("$1_012.50", "much"), r"invoice.csv:2: an amount or a time cannot be read"),
        (HEADER + LINE.replace("$1_012.50", "$1").replace("22:00:00 +0000", "noon"), r"invoice.csv:2: .*noon"),
    ],
)
def test_a_file_that_is_not_an_invoice_is_refused_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "invoice.csv"
    path.write_text(text)

    with pytest.raises(UsageError, match=why):
        read_invoice_csv(path)
