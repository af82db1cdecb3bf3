"""Every example that `--help` shows works, in a folder with one finished night."""

import glob
import json
import shlex
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from bench.machine.names import ImageName
from bench.suite.machine import regions_of
from bench.suite.parse import parse_suite
from flows.cli import app
from flows.cli.nights import LLAMA
from infra.bootstrap import image_cloud
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage.bucket import upload_night
from tasks.golden import content_for
from tests.bench.suite.traces.test_logs import LOG
from tests.emulators.digitalocean import Emulator
from tests.emulators.hub import HubEmulator
from tests.emulators.registry import RegistryEmulator
from tests.emulators.s3 import KEYS, Bucket
from tests.flows.conftest import TRUTH_SERVER, make_house, trust_the_client
from tests.flows.demos import plant_demo
from tests.flows.deployed import ROOT
from tests.pairs import matrix
from tests.warehouse.folders import whole_night
from tests.warehouse.trends.judgements import write_judgement
from warehouse.load import load_night

pytestmark = pytest.mark.prefect
NIGHT = "2026-03-01T010000Z"  # the night that the examples name
BENCH_CLIENT = ROOT / "tests" / "emulators" / "bench_client.py"
MODEL = "meta-llama/Llama-3.3-70B-Instruct"
PER_COMMAND = 2
OF_THE_SERVICE = {"up", "down", "status"}  # start processes that stay: test_scheduled.py runs them
MAY_FIND_SOMETHING_WRONG = {"run", "audit", "doctor", "check"}  # these exit 1 for what this host or that night is


COMMANDS = dict(sorted(typer.main.get_group(app).commands.items()))


def examples_of(command: str) -> list[str]:
    epilog = COMMANDS[command].epilog or ""
    heading, *calls = epilog.split("\n\n")
    assert heading == "Examples:"
    return calls


SLOW = {
    "run",
    "site",
    "reproduce",
    "ab",
    "crosscheck",
    "rebuild",
    "calibrate",
}  # of these, `make test` runs one example
EXAMPLES = [
    case
    for command in COMMANDS
    if command not in OF_THE_SERVICE
    for case in matrix([(command, call) for call in examples_of(command)], kept=1 if command in SLOW else PER_COMMAND)
]


def write_engine(path: Path) -> None:
    """A `vllm` that serves as the truth server does, and whose `vllm bench` is ours."""
    python = f'"{sys.executable}" -u'
    bench = f'[ "$1" = bench ] && {{ shift 2; exec {python} "{BENCH_CLIENT}" "$@"; }}'
    path.write_text(f'#!/bin/sh\n{bench}\nexec {python} "{TRUTH_SERVER}" "$@"\n')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, prefect_home: Path) -> Iterator[Path]:
    """A folder with our suites, one finished night, a result file, and an account and a bucket that answer."""
    here = tmp_path_factory.mktemp("examples")
    plant_demo(here)
    house = make_house(here, prefect_home)
    write_engine(here / "vllm")
    (here / "versions.txt").write_text("0.31.0\n0.31.1\n0.32.0\n")
    (here / "results").mkdir()
    shutil.copy(ROOT / "tests" / "data" / "vllm-bench" / "serve-synthetic.json", here / "results" / "vllm-bench.json")
    shutil.copy(ROOT / "tests" / "data" / "formats" / "records" / "aiconfigurator.csv", here / "predicted.csv")
    for name, kind in {"gateway.jsonl": "gateway", "spans.jsonl": "otel"}.items():
        (here / name).write_text("".join(json.dumps(row) + "\n" for row in LOG[kind]))
    whole_night(house.data, NIGHT)
    write_judgement(house.data, NIGHT)
    load_night(house.data, NIGHT)
    with (
        Emulator() as cloud,
        Bucket() as bucket,
        HubEmulator(here / "results", MODEL) as hub,
        RegistryEmulator() as registry,
        pytest.MonkeyPatch.context() as patch,
    ):
        copy_suites(here, registry)
        for name, value in {
            **KEYS,
            "NIGHTBENCH_HUB_ENDPOINT": hub.url,
            "NIGHTBENCH_DATA": str(house.data),
            "NIGHTBENCH_VLLM_EXECUTABLE": str(here / "vllm"),
            "NIGHTBENCH_VLLM_RS": str(here / "nowhere"),
            "NIGHTBENCH_DO_TOKEN": cloud.token,
            "NIGHTBENCH_ACCEPT_RISK": "1",
            "NIGHTBENCH_DO_ENDPOINT": cloud.url,
            "NIGHTBENCH_DO_CA": str(cloud.ca),
            "NIGHTBENCH_DO_SETTLE_S": "0",
            "NIGHTBENCH_S3_BUCKET": bucket.name,
            "NIGHTBENCH_S3_ENDPOINT": bucket.endpoint,
        }.items():
            patch.setenv(name, value)
        patch.chdir(here)
        patch.setattr("flows.cli.nights.handle_stop_signals", lambda _data: None)  # this process is pytest's
        trust_the_client(patch)
        assert CliRunner().invoke(app, ["pin", LLAMA]).exit_code == 0
        plant_golden_image(cloud)
        assert upload_night(Settings(), NIGHT, 60.0) == []
        yield here


def copy_suites(here: Path, registry: RegistryEmulator) -> None:
    """Our suites, with their images in this registry: what they name is all that is asked."""
    shutil.copytree(ROOT / "suites", here / "suites")
    text = (here / LLAMA).read_text()
    image = parse_suite(text, LLAMA).engine.image or ""
    host, _, name = image.partition("/")
    registry.push(name.rpartition(":")[0], name.rpartition(":")[2], {})
    (here / LLAMA).write_text(text.replace(host, registry.host))


def plant_golden_image(cloud: Emulator) -> None:
    """Let the account have the image that the examples of `prepare` would make, wherever their suite wants it."""
    night, account = make_night(Path(LLAMA), "digitalocean", poc=True), image_cloud(Settings(), "digitalocean")
    assert account is not None
    name = ImageName(content_for(account, night), datetime.now(UTC) + timedelta(days=1))
    cloud.plant_snapshot(str(name), foreign=False).regions = list(regions_of(night.suite.machine))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_two_examples_of_the_command_each_on_a_line_of_its_own(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")

    shown = CliRunner().invoke(app, [command, "--help"]).stdout

    calls = examples_of(command)
    assert [line.strip() for line in shown.splitlines() if line.strip()][-len(calls) - 1 :] == ["Examples:", *calls]
    assert len(calls) == PER_COMMAND
    assert all(call.startswith("nightbench ") and f" {command}" in call for call in calls)


@pytest.mark.usefixtures("prefect_api", "folder")
@pytest.mark.parametrize(("command", "call"), EXAMPLES)
def test_an_example_works(command: str, call: str) -> None:
    asked, _, read = call.partition(" < ")
    _nightbench, *words = shlex.split(asked)
    argv = [path for word in words for path in (glob.glob(word) if "*" in word else [word])]  # noqa: PTH207 - as a shell does

    done = CliRunner().invoke(app, argv, input=(ROOT / read).read_text() if read else None)

    assert done.exit_code in ({0, 1} if command in MAY_FIND_SOMETHING_WRONG else {0}), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.output or call == "nightbench shell"  # which is typed nothing here
