"""`nightbench pin`, and the nights that read its lock."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bench.errors import EngineBuildError, NightbenchError, SuiteError
from bench.record import NightRecord
from flows.cli import app
from infra.engines.registry import COMMIT, VERSION
from infra.loadgen.suite_file import make_night, read_suite
from tests.emulators.digitalocean import Emulator
from tests.emulators.hub import HubEmulator
from tests.emulators.registry import RegistryEmulator

REPOSITORY, TAG = "team/engine", "v0.32.0"
SUITE = """\
name = "night"

[machine]
kind = "gpu-mi300x1-192gb"
gpu = "MI300X"
gpu_count = 1

[model]
name = "small"
source = "{source}"

[engine]
version = "0.32.0"
install = "container"
image = "{image}"
max_model_len = 4096

[[scenarios]]
name = "single-stream"
isl = 128
osl = 64
concurrency = 1
request_count = 24
"""


class World:
    """A suite in a folder, and the hub, the registry and the cloud that its references are resolved at."""

    def __init__(self, folder: Path, hub: HubEmulator, registry: RegistryEmulator) -> None:
        self.hub, self.registry = hub, registry
        self.suite, self.lock = folder / "night.toml", folder / "night.lock.toml"
        self.image = f"{registry.host}/{REPOSITORY}"
        self.write(f"{self.image}:{TAG}")

    def write(self, image: str, revision: str = "a" * 40, track: str = "") -> None:
        text = SUITE.format(image=image, source=f"hf:org/small@{revision}")
        self.suite.write_text(text.replace("max_model_len", f"{track}\nmax_model_len"))

    def pin(self) -> Result:
        return CliRunner().invoke(app, ["pin", str(self.suite)])

    def night(self) -> NightRecord:
        return make_night(self.suite, "digitalocean", poc=False)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    weights = tmp_path / "hub"
    weights.mkdir()
    (weights / "config.json").write_text("{}")
    with HubEmulator(weights) as hub, RegistryEmulator() as registry, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NIGHTBENCH_HUB_ENDPOINT", hub.url)
        patch.delenv("NIGHTBENCH_DO_TOKEN", raising=False)
        registry.push(REPOSITORY, TAG, {VERSION: "0.32.0", COMMIT: "c" * 40})
        yield World(tmp_path, hub, registry)


def test_a_lock_pins_commit_and_digest_and_nights_run_them(world: World) -> None:
    world.write(f"{world.image}:{TAG}", revision="main")
    with pytest.raises(SuiteError, match="may move, and no lock pins it"):
        world.night()

    done = world.pin()

    assert done.exit_code == 0, done.output
    night = world.night()
    digest = world.registry.tags[REPOSITORY, TAG]
    assert night.suite.model.source == f"hf:org/small@{world.hub.sha}"
    assert night.runs[0].scenario.engine.image == f"{world.image}@{digest}"
    assert night.suite.engine.image_commit == "c" * 40
    assert NightRecord.model_validate_json(night.model_dump_json()) == night


def test_what_moved_meanwhile_changes_no_night_until_it_is_pinned_again(world: World) -> None:
    world.pin()
    before, text = read_suite(world.suite), world.lock.read_text()
    world.registry.push(REPOSITORY, TAG, {VERSION: "0.32.0", COMMIT: "d" * 40})

    assert read_suite(world.suite) == before
    world.pin()

    changed = set(world.lock.read_text().splitlines()) - set(text.splitlines())
    assert sorted(line.partition(" ")[0] for line in changed) == ["commit", "pinned"]
    assert read_suite(world.suite) != before


def test_a_lock_stays_as_it_was_where_a_registry_does_not_tell(world: World) -> None:
    world.pin()
    text = world.lock.read_text()
    world.registry.faults += ["denied"]

    done = world.pin()

    assert isinstance(done.exception, EngineBuildError)
    assert world.lock.read_text() == text
    assert sorted(path.name for path in world.suite.parent.iterdir()) == ["hub", "night.lock.toml", "night.toml"]


def test_a_suite_that_changed_its_reference_is_to_be_pinned_again(world: World) -> None:
    world.pin()
    world.write(f"{world.image}:v0.33.0")

    with pytest.raises(SuiteError, match=r"night\.lock\.toml pins engine\.image = .*run `nightbench pin"):
        world.night()


def test_a_tracked_tag_is_resolved_anew_for_each_night_and_for_no_draft(world: World) -> None:
    world.write(world.image, track='track = "nightly"')
    digests = [world.registry.push(REPOSITORY, "nightly", {COMMIT: "1" * 40})]
    world.pin()
    nights = [world.night()]
    digests.append(world.registry.push(REPOSITORY, "nightly", {COMMIT: "2" * 40}))
    nights.append(world.night())

    engines = [night.suite.engine for night in nights]
    assert [engine.image for engine in engines] == [f"{world.image}@{digest}" for digest in digests]
    assert [engine.image_commit for engine in engines] == ["1" * 40, "2" * 40]
    assert [run.scenario.engine for night in nights for run in night.runs[:1]] == engines
    world.registry.faults += ["denied"]
    assert make_night(world.suite, "digitalocean", poc=True, is_draft=True).suite.engine.image == world.image
    with pytest.raises(NightbenchError, match="denies access"):
        world.night()


def test_prices_of_today_are_pinned_where_a_cloud_tells_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no prices are pinned: no token for digitalocean: set NIGHTBENCH_DO_TOKEN" in world.pin().output

    with Emulator() as cloud:
        monkeypatch.setenv("NIGHTBENCH_DO_TOKEN", cloud.token)
        monkeypatch.setenv("NIGHTBENCH_DO_ENDPOINT", cloud.url)
        monkeypatch.setenv("NIGHTBENCH_DO_CA", str(cloud.ca))
        done = world.pin()

    assert done.exit_code == 0, done.output
    price = f'kind = "gpu-mi300x1-192gb"\nusd_per_hour = 2.59\nas_of = {datetime.now(UTC):%Y-%m-%d}\n'
    assert f'[[prices]]\ncloud = "digitalocean"\n{price}' in world.lock.read_text()
