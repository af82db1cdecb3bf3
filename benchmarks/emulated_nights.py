"""The nights of suites/nightly.toml, run on the emulated cloud and counted where machines download and are billed.

Nights of one scenario, by the real code: hub, registry and cloud are emulated, and each rented machine is an sshd with
a folder as its disk, where a script stands in for docker. The emulators count what they send, in the size of the real
files. The cloud bills by a clock on which each download takes its time at the catalogue's pace; everything else takes
as long as it does on this computer, since nothing is measured on a GPU. For the same reason the load is a short one.
"""

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.errors import BadRunsError
from flows.nightly import nightly
from flows.prepare import prepare
from tests.flows.conftest import NightFixture, end_all, live_in, make_house, served_by, trust_the_client
from tests.flows.nightly_team import SHORT, VOLUME, Team, working
from tests.flows.serving import serving

NOTHING, BUCKET, EVERYTHING = "nothing kept", "bucket", "volume and image"
FIRST, SECOND, NEW_BUILD, PREPARE = "first", "second", "after a new build", "prepare, once"
PARTS = {NOTHING: (SHORT,), BUCKET: (SHORT,), EVERYTHING: (VOLUME, SHORT)}  # of the team's suite
NIGHTS = (FIRST, SECOND, NEW_BUILD)
WHICH = {NOTHING: NIGHTS, BUCKET: NIGHTS, EVERYTHING: (PREPARE, *NIGHTS)}


@dataclass(frozen=True)
class EmulatedNight:
    """What one night cost and downloaded; `layers` are digests, each once for each time that it was pulled."""

    kept: str
    night: str
    billed_s: float
    model_gb: float  # from the hub
    bucket_gb: float  # of the model, from the bucket
    layers: tuple[str, ...]
    image_gb: float
    download_s: float  # that all its downloads take one after another


def run_nights(kept: str, house: NightFixture, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[EmulatedNight]:
    """Each night of a team that keeps nothing, the model in a bucket, or it on a volume and a golden image."""
    with working(house, folder, patch, has_bucket=kept == BUCKET) as team:
        team.write_suite(*PARTS[kept])
        for night in WHICH[kept]:
            yield _counted(team, kept, night)
        left = [one.name for one in team.account.emulator.ledger() if one.kind in ("volume", "snapshot")]
        team.account.judge(*left)


def _counted(team: Team, kept: str, night: str) -> EmulatedNight:
    if night == NEW_BUILD:
        team.build()
    team.take()
    before, suite = set(team.account.names()), str(team.account.house.suite)
    if night == PREPARE:
        prepare(suite=suite)
    else:
        with suppress(BadRunsError):  # of a model in miniature no run is accepted
            nightly(suite=suite, target="digitalocean", poc=True)
    bills = [one for one in team.account.emulator.ledger() if one.kind == "droplet" and one.name.startswith("nb-")]
    billed_s = sum((one.ended or one.began) - one.began for one in bills if one.name not in before)
    model, cached, layers = team.take()
    seconds = (model.bytes + cached.bytes + layers.bytes) / model.bytes_per_s
    gb = [one.bytes / 1e9 for one in (model, cached, layers)]
    return EmulatedNight(kept, night, billed_s, gb[0], gb[1], tuple(layers.names), gb[2], seconds)


def nights() -> Iterator[EmulatedNight]:
    """The nights of all teams outside of a test, with a server of Prefect's of their own; each takes minutes."""
    with tempfile.TemporaryDirectory(prefix="nightbench-bill-") as name:
        server = Path(name) / "prefect"
        server.mkdir()
        with serving(server) as url, served_by(url):
            for kept in WHICH:
                yield from _nights_in(Path(name) / kept.replace(" ", "-"), kept)  # sshd's settings allow no space


def _nights_in(folder: Path, kept: str) -> Iterator[EmulatedNight]:
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        house = make_house(folder, folder / "prefect-home")
        live_in(house, patch)
        trust_the_client(patch)
        try:
            yield from run_nights(kept, house, folder, patch)
        finally:
            end_all(house)
