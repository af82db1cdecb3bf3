import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import infra.models.hub_download
from bench.errors import ModelError, NoSpaceError
from bench.manifest import MANIFEST
from infra.models.child_protocol import write_job
from infra.models.files import bytes_under
from infra.models.generated import TINY
from infra.models.hub_listing import HubFile, needed_files
from infra.models.models import PreparedModel, prepare_model
from infra.models.transfer_process import Hub
from infra.processes import detached
from tests.emulators.hub import HubEmulator
from tests.infra.models.tiny import copy_tiny_model
from tests.planted import SECRETS, found_in, plant

WEIGHTS = "model.safetensors"
TOKEN = "hf_secretsecret"  # noqa: S105 - nobody's
SHARD = "shard.safetensors"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubEmulator]:
    for name in ("HF_TOKEN", "NIGHTBENCH_HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))  # not this computer's own cache
    copy_tiny_model(tmp_path / "repository")
    with HubEmulator(tmp_path / "repository") as emulator:
        yield emulator
    assert detached.marked(tmp_path.name) == []


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


Prepare = Callable[..., PreparedModel]


@pytest.fixture
def prepare(hub: HubEmulator, models: Path, tmp_path: Path) -> Prepare:
    def prepared(
        source: str | None = None, lines: list[str] | None = None, *, stall_s: float = 20.0, tries: int = 3
    ) -> PreparedModel:
        patience = Hub(hub.url, lease_id=tmp_path.name, stall_s=stall_s, tries=tries)
        said: list[str] = [] if lines is None else lines
        return prepare_model(source or f"hf:org/small@{hub.sha}", models, said.append, patience)

    return prepared


def test_a_downloaded_model_has_the_same_layout_as_a_generated_one(
    hub: HubEmulator, prepare: Prepare, models: Path
) -> None:
    lines: list[str] = []

    model = prepare(lines=lines)

    here = prepare_model("generated:tiny?seed=0", models, lines.append)
    assert (model.name, model.revision, model.vocab_size) == ("org/small", hub.sha, TINY.vocabulary)
    assert (model.sha256, model.bytes, model.weights_bytes) == (here.sha256, here.bytes, here.weights_bytes)
    assert (model.path / MANIFEST).read_bytes() == (here.path / MANIFEST).read_bytes()
    left = sorted(entry.name for entry in models.iterdir() if not entry.name.endswith(".lock"))
    assert left == sorted([model.path.name, here.path.name])
    assert not (model.path / ".cache").exists()
    assert [line for line in lines if "GB, " in line and "MB/s" in line]


def test_a_model_on_disk_is_verified_without_a_request_to_the_hub(hub: HubEmulator, prepare: Prepare) -> None:
    first = prepare()
    hub.requests.clear()

    second = prepare()

    assert second == first
    assert hub.requests == []


def test_a_downloaded_model_that_was_damaged_later_is_an_error(prepare: Prepare) -> None:
    weights = prepare().path / WEIGHTS
    weights.write_bytes(bytes(weights.stat().st_size))

    with pytest.raises(ModelError, match=f"{WEIGHTS}: SHA-256 mismatch"):
        prepare()


@pytest.mark.parametrize("source", ["hf:org/small", "hf:org/small@main"])
def test_a_source_without_a_commit_is_refused_with_the_newest(
    hub: HubEmulator, prepare: Prepare, models: Path, source: str
) -> None:
    with pytest.raises(ModelError, match=f"names no commit.*its newest commit is hf:org/small@{hub.sha}$"):
        prepare(source)

    assert list(models.iterdir()) == []


def test_an_unknown_commit_is_refused_with_the_newest(hub: HubEmulator, prepare: Prepare) -> None:
    with pytest.raises(ModelError, match=f"org/small has no commit {'0' * 40}; its newest is hf:org/small@{hub.sha}$"):
        prepare(f"hf:org/small@{'0' * 40}")


def test_an_unknown_model_is_reported_at_once(hub: HubEmulator, prepare: Prepare) -> None:
    with pytest.raises(ModelError, match=r"has no model org/none, or it is private: check the name"):
        prepare(f"hf:org/none@{'0' * 40}")

    assert len(hub.requests) == 1


def test_a_gated_model_is_reported_at_once_with_what_to_do(hub: HubEmulator, prepare: Prepare) -> None:
    hub.fault("gated", "/resolve/", method="HEAD", times=1000)

    with pytest.raises(ModelError, match=r"is gated: accept its terms on its page .* and set HF_TOKEN"):
        prepare()

    # Files are requested at the same time, and the first refusal may stop the others; none is requested again.
    requested = Counter(one.path for one in hub.requests if "/resolve/" in one.path)
    assert set(requested.values()) == {1}


def test_a_rejected_token_is_reported_and_never_printed(
    hub: HubEmulator, prepare: Prepare, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NIGHTBENCH_HF_TOKEN", TOKEN)
    hub.fault("unauthorized", "", method="GET", times=1000)
    lines: list[str] = []

    with pytest.raises(ModelError, match=r"rejected HF_TOKEN for .*: create a new token with read access") as caught:
        prepare(lines=lines)

    assert {one.token for one in hub.requests} == {TOKEN}
    written = [path.read_text() for path in (tmp_path / "models").rglob("*") if path.is_file()]
    assert not [text for text in (*lines, *written, str(caught.value)) if TOKEN in text]


def test_the_child_has_the_token_in_its_environment_no_other_secret_and_none_in_its_argv(
    hub: HubEmulator, prepare: Prepare, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, *(name for name in SECRETS if name != "https_proxy"))  # which a download needs
    monkeypatch.delenv("NIGHTBENCH_HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.fault("stall", WEIGHTS, after=1000)
    seen: list[tuple[list[str], dict[str, str]]] = []

    def watch() -> None:
        child = _child_of(tmp_path.name, lambda: bool(hub.gets(WEIGHTS)))
        seen.append((child.cmdline(), child.environ()))

    with _beside(watch):
        prepare(stall_s=3.0)

    (argv, environment) = seen[0]
    assert environment["HF_TOKEN"] == TOKEN
    assert TOKEN not in " ".join(argv)
    assert found_in(repr(environment).encode()) == set()
    assert environment["NIGHTBENCH_LEASE"] == tmp_path.name


def test_a_throttled_request_for_metadata_is_repeated(hub: HubEmulator, prepare: Prepare) -> None:
    hub.fault("throttle", WEIGHTS, method="HEAD", times=2)

    assert prepare().revision == hub.sha


def test_a_hub_that_always_throttles_is_reported(hub: HubEmulator, prepare: Prepare) -> None:
    hub.fault("throttle", WEIGHTS, method="HEAD", times=1000)

    with pytest.raises(ModelError, match=r"still limits our requests .* \(HfHubHTTPError: 429 Too Many"):
        prepare(tries=1)


@pytest.mark.parametrize("fault", ["cut", "slow"])
def test_a_bad_connection_does_not_damage_the_file(hub: HubEmulator, prepare: Prepare, fault: str) -> None:
    hub.fault("slow" if fault == "slow" else "cut", WEIGHTS, after=500_000)

    model = prepare()

    assert (model.path / WEIGHTS).read_bytes() == (hub.folder / WEIGHTS).read_bytes()


def test_a_server_that_ignores_ranges_does_not_damage_the_file(hub: HubEmulator, prepare: Prepare) -> None:
    _add_shard(hub)
    hub.fault("cut", SHARD, after=12_000_000)
    hub.fault("ignore-range", SHARD)

    model = prepare()

    # The library writes 10 MiB at a time, and requests a block again that was cut off.
    assert [one.range for one in hub.gets(SHARD)] == [None, "bytes=10485760-"]
    assert (model.path / SHARD).read_bytes() == (hub.folder / SHARD).read_bytes()


def test_a_stalled_download_is_killed_and_tried_again(hub: HubEmulator, prepare: Prepare) -> None:
    hub.fault("stall", WEIGHTS, after=500_000)
    lines: list[str] = []

    model = prepare(lines=lines, stall_s=3.0)

    assert (model.path / WEIGHTS).read_bytes() == (hub.folder / WEIGHTS).read_bytes()
    assert [line for line in lines if "stalled: fewer than 256 KiB in 3 s" in line]
    assert len(hub.gets("config.json")) == 1


def test_a_download_that_always_stalls_fails_and_leaves_no_process(
    hub: HubEmulator, prepare: Prepare, tmp_path: Path
) -> None:
    hub.fault("stall", WEIGHTS, after=1000, times=1000)

    with pytest.raises(ModelError, match=r"stalled for 3 s, 2 times: try later"):
        prepare(stall_s=3.0, tries=2)

    assert detached.marked(tmp_path.name) == []


def test_a_download_that_stalls_in_xet_is_repeated_by_plain_http(hub: HubEmulator, prepare: Prepare) -> None:
    hub.fault("xet", WEIGHTS, method="HEAD", times=1000)
    lines: list[str] = []

    model = prepare(lines=lines, stall_s=3.0, tries=2)

    assert (model.path / WEIGHTS).read_bytes() == (hub.folder / WEIGHTS).read_bytes()
    assert [one for one in hub.requests if one.path.startswith("/cas")]
    assert [line for line in lines if line.endswith("without xet")]
    assert len(hub.gets(WEIGHTS)) == 1


def test_zeros_of_the_right_size_are_downloaded_once_more(hub: HubEmulator, prepare: Prepare) -> None:
    hub.fault("zeros", WEIGHTS)
    lines: list[str] = []

    model = prepare(lines=lines)

    assert (model.path / WEIGHTS).read_bytes() == (hub.folder / WEIGHTS).read_bytes()
    assert [line for line in lines if line.endswith("downloading it once more")]
    assert len(hub.gets(WEIGHTS)) == 2


@pytest.mark.parametrize("name", [WEIGHTS, "tokenizer.json"])
def test_zeros_served_twice_are_refused_with_both_hashes(hub: HubEmulator, prepare: Prepare, name: str) -> None:
    hub.fault("zeros", name, times=1000)
    zeros = bytes((hub.folder / name).stat().st_size)

    with pytest.raises(ModelError, match=rf"{name} has the hash \w+, the hub lists \w+, twice") as caught:
        prepare()

    git = hashlib.sha1(b"blob %d\x00" % len(zeros) + zeros, usedforsecurity=False).hexdigest()
    assert (hashlib.sha256(zeros).hexdigest() if name == WEIGHTS else git) in str(caught.value)


def test_a_disk_that_is_too_small_is_reported_before_the_download(
    hub: HubEmulator, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(infra.models.hub_download, "SPACE_MARGIN", 1e9)

    with pytest.raises(NoSpaceError, match=r"needs \d+\.\d GB free in .*, which has"):
        prepare()

    assert not [one for one in hub.requests if "/resolve/" in one.path]


def test_a_child_killed_half_way_is_replaced_and_finished_files_stay(
    hub: HubEmulator, prepare: Prepare, tmp_path: Path
) -> None:
    hub.fault("stall", WEIGHTS, after=1000)

    def kill() -> None:
        child = _child_of(tmp_path.name, lambda: bool(hub.gets(WEIGHTS)) and _has_arrived(tmp_path, "config.json"))
        os.kill(child.pid, signal.SIGKILL)

    lines: list[str] = []
    with _beside(kill):
        model = prepare(lines=lines)

    assert [line for line in lines if "ended with signal 9" in line]
    assert (model.path / WEIGHTS).read_bytes() == (hub.folder / WEIGHTS).read_bytes()
    assert len(hub.gets("config.json")) == 1


PREPARES = """
import sys
from pathlib import Path
from infra.models.transfer_process import Hub
from infra.models.models import prepare_model
prepare_model(sys.argv[1], Path(sys.argv[2]), print, Hub(sys.argv[3], lease_id=sys.argv[4]))
"""


def test_the_child_of_a_killed_night_exits_and_the_next_night_continues(
    hub: HubEmulator, prepare: Prepare, models: Path, tmp_path: Path
) -> None:
    _add_shard(hub)
    hub.fault("stall", SHARD, after=12_000_000)
    argv = [sys.executable, "-c", PREPARES, f"hf:org/small@{hub.sha}", str(models), hub.url, tmp_path.name]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as night:
        _until(lambda: len(list(models.rglob("*.json"))) > 3 and bytes_under(models) > 10_000_000)
        night.kill()
    _until(lambda: detached.marked(tmp_path.name) == [])
    assert list(models.rglob("*.incomplete"))

    model = prepare()

    assert not list(models.rglob("*.incomplete"))
    assert len(hub.gets("tokenizer.json")) == 1
    assert (model.path / SHARD).read_bytes() == (hub.folder / SHARD).read_bytes()


def test_the_child_reports_a_full_disk(hub: HubEmulator, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    job = {"repo": "org/small", "revision": hub.sha, "names": [WEIGHTS], "folder": "/mnt/model"}
    run = f'mount -t tmpfs -o size=1m none /mnt && exec "{sys.executable}" -P -m infra.models.hub_child'
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], check=False).returncode:
        pytest.skip("no disk of our own can be mounted here")

    with subprocess.Popen(
        ["unshare", "-rm", "sh", "-c", run],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "HF_ENDPOINT": hub.url},
    ) as child:
        assert child.stdin is not None
        child.stdin.write(write_job("download", answer, job))
        child.stdin.flush()
        child.wait(60)

    assert json.loads(answer.read_text())["failed"] == "disk-full"


def test_a_file_name_outside_the_folder_is_refused(hub: HubEmulator, prepare: Prepare) -> None:
    hub.listed_too = ["../outside.json"]

    with pytest.raises(ModelError, match=r"lists a file '\.\./outside\.json', which is outside the model"):
        prepare()


def test_only_one_copy_of_the_weights_is_downloaded() -> None:
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "consolidated.safetensors"]
    names += ["original/consolidated.00.pth", "pytorch_model.bin", "config.json", "tokenizer.json", ".gitattributes"]
    files = [HubFile(name, size=len(name), git_sha1="", sha256=None) for name in names]

    found = [file.name for file in needed_files(files)]

    assert found == ["config.json", "tokenizer.json", *names[:2]]


def test_weights_without_safetensors_are_downloaded_as_they_are() -> None:
    files = [HubFile(name, 1, "", None) for name in ("config.json", "pytorch_model.bin")]

    assert [file.name for file in needed_files(files)] == ["config.json", "pytorch_model.bin"]


def _has_arrived(folder: Path, name: str) -> bool:
    return any((path.stat().st_size > 0) for path in folder.glob(f"models/.*.unfinished/{name}"))


def _add_shard(hub: HubEmulator) -> None:
    (hub.folder / SHARD).write_bytes(os.urandom(13_000_000))


def _until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < until, "not true after 300 s"
        time.sleep(0.05)


def _child_of(mark: str, is_so: Callable[[], bool]) -> psutil.Process:
    _until(lambda: is_so() and bool(detached.marked(mark)))
    return detached.marked(mark)[0]


class _beside:  # noqa: N801 - read as a word of the test's sentence
    """Run a function in a thread while the block runs."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=work)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join()
