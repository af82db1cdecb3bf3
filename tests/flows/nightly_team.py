"""A team that runs `suites/nightly.toml` on the emulated cloud: its account, a hub with the model, and a registry."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bench.cost.replica import model_bytes
from bench.suite.parse import parse_suite
from catalog.read import read_catalog
from infra.engines.registry import COMMIT, VERSION
from tests.bench.machine.canaries import MI300X
from tests.bench.quality.test_lm_eval import RESULTS
from tests.emulators.hub import HubEmulator
from tests.emulators.registry import RegistryEmulator
from tests.emulators.s3 import KEYS, Bucket
from tests.emulators.traffic import DownloadClock, Traffic
from tests.flows.conftest import NightFixture
from tests.flows.renting import Account, renting
from tests.infra.docker import Docker
from tests.infra.fake_tools import FakeTools, amd
from tests.infra.models.tiny import copy_tiny_model
from warehouse.lake.query import run_sql

SUITE = Path(__file__).parents[2] / "suites" / "nightly.toml"
MODEL, ENGINE, CONTROL = "meta-llama/Llama-3.3-70B-Instruct", "rocm/vllm-dev", "vllm/vllm-openai-rocm"
# What a team's own file would change: the registry that it pulls from, and how much load it has time for.
OURS = """
extends = "{suite}"

[engine]
image = "{registry}/{engine}"

[control.engine]
image = "{registry}/{control}:v0.32.0"
"""
VOLUME = """
[model]
cache_volume_gib = 160
"""
SHORT = """
[[matrix]]
name = "chat"
isl = 64
osl = 32
concurrency = [1, 16, 64]
requests_per_slot = 2
warmups_per_slot = 1

[[matrix]]
name = "long-prompts"
isl = 512
osl = 8
concurrency = 8
requests_per_slot = 2
warmups_per_slot = 1
"""
LM_EVAL = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --output_path ] && out=$2; shift; done
[ -z "$out" ] || {{ mkdir -p "$(dirname "$out")" && cp {results} "${{out%.json}}_2026.json"; }}
"""
# The canary of a healthy machine, in the place of the image's Python, which has no torch here.
CANARY = (
    {"torch": "2.9.0", "gpus": [MI300X]},
    {"test": "memory_copy", "device": 0, "value": 4200.0},
    {"test": "matmul_bf16", "device": 0, "value": 590.0},
    {"done": True},
)
CATALOG = read_catalog()
LAYER_SCALE = 1e6  # a byte of an emulated layer stands for a megabyte
# Of the sizes that ROCm and PyTorch have in rocm/pytorch (ROCm/ROCm-docker issue 166).
BASE, CONTROL_BASE = (b"r" * 8000, b"t" * 2000), (b"R" * 8000, b"T" * 2000)
ENGINE_BYTES = round(CATALOG.pace["engine_layers_bytes"] / LAYER_SCALE)


@dataclass
class Team:
    """An account whose machines have docker and lm-eval, a hub with the model, and a registry with both images.

    `model`, `cached` and `layers` are what its machines download from the hub, the team's bucket and the registry; the
    cloud bills by a clock on which that takes its time.
    """

    account: Account
    hub: HubEmulator
    registry: RegistryEmulator
    docker: Docker
    model: Traffic
    cached: Traffic
    layers: Traffic
    builds: list[str] = field(default_factory=list)

    def write_suite(self, *parts: str) -> None:
        """The team's own file, with these parts, and its lock."""
        house = self.account.house
        suite, registry = os.path.relpath(SUITE, house.suite.parent), self.registry.host
        ours = OURS.format(suite=suite, registry=registry, engine=ENGINE, control=CONTROL)
        house.suite.write_text("".join([ours, *parts]))
        done = house.call("pin", str(house.suite))
        assert done.returncode == 0, done.stderr

    def build(self) -> None:
        """Let the registry have a new nightly build of the engine, on the same base."""
        number = len(self.builds) + 1
        layers = (*BASE, bytes([number]) * ENGINE_BYTES)
        labels = {VERSION: "0.32.0", COMMIT: f"{number:040x}"}
        self.builds.append(self.registry.push(ENGINE, "nightly", labels, layers=layers))

    def take(self) -> tuple[Traffic, Traffic, Traffic]:
        """What came since the last call: of the model from the hub, of the model from the bucket, and of images."""
        return self.model.take(), self.cached.take(), self.layers.take()

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query of the warehouse."""
        return list(run_sql(self.account.house.data, sql).rows)


@contextmanager
def working(
    house: NightFixture, folder: Path, patch: pytest.MonkeyPatch, *, has_bucket: bool = False
) -> Iterator[Team]:
    """A team whose house this is; its settings are those of this process, too."""
    copy_tiny_model(folder / "repository")
    files = [path for path in (folder / "repository").rglob("*") if path.is_file()]
    docker, clock = _docker(folder), DownloadClock()
    bytes_per_s = CATALOG.pace["download_bytes_per_s"]
    scale = _model_bytes() / sum(path.stat().st_size for path in files)
    model, cached = Traffic(clock, bytes_per_s, scale), Traffic(clock, bytes_per_s, scale)
    layers = Traffic(clock, bytes_per_s, LAYER_SCALE)
    with (
        HubEmulator(folder / "repository", repo=MODEL, served=model.served) as hub,
        RegistryEmulator(served=layers.served) as registry,
        renting(folder, house, clock) as account,
        Bucket(served=cached.served) as bucket,
    ):
        account.image.write_text(f"export PATH={docker.folder}:$PATH\nexport NIGHTBENCH_LM_EVAL={_lm_eval(folder)}\n")
        team = Team(account, hub, registry, docker, model, cached, layers)
        team.build()
        registry.push(CONTROL, "v0.32.0", {VERSION: "0.32.0"}, layers=(*CONTROL_BASE, b"c" * ENGINE_BYTES))
        settings = account.settings | {"NIGHTBENCH_HUB_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf-home")}
        if has_bucket:
            settings |= {"NIGHTBENCH_S3_BUCKET": bucket.name, "NIGHTBENCH_S3_ENDPOINT": bucket.endpoint, **KEYS}
        house.environment.update(settings)
        for name, value in settings.items():
            patch.setenv(name, value)
        yield team


def _model_bytes() -> float:
    """Bytes of the suite's model, as they are downloaded."""
    size = model_bytes(parse_suite(SUITE.read_text(), str(SUITE)), CATALOG)
    assert size is not None
    return size


def _docker(folder: Path) -> Docker:
    """Docker whose images are on the disk of the machine that pulls them, and so in a snapshot of it."""
    docker = Docker(folder / "docker", folder / "docker-bin")
    docker.install(state="$HOME/docker")
    amd(FakeTools(docker.folder))
    _measure_a_healthy_machine(docker.folder / "docker")
    return docker


def _measure_a_healthy_machine(docker: Path) -> None:
    lines = "".join(f"echo 'nightbench-canary {json.dumps(line)}'; " for line in CANARY)
    script = docker.read_text().replace(
        "#!/bin/sh\n", f'#!/bin/sh\ncase "$*" in *"--entrypoint python3"*) {lines}exit;; esac\n'
    )
    docker.write_text(script)


def _lm_eval(folder: Path) -> Path:
    """A harness that finds real results of lm-eval, with the name, filter and score of the suite's task."""
    harness, scores = folder / "lm-eval", folder / "scores"
    text = RESULTS.read_text().replace("nightbench_counting", "gsm8k")
    text = text.replace("exact_match,none", "exact_match,strict-match")
    scores.write_text(text.replace('"exact_match,strict-match": 0.0', '"exact_match,strict-match": 0.91'))
    harness.write_text(LM_EVAL.format(results=scores))
    harness.chmod(0o755)
    return harness
