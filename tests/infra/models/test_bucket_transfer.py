"""A model is uploaded to a bucket and downloaded from it by presigned URLs, with moto's server and an emulated hub."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest

from bench.errors import ObjectStoreError
from bench.manifest import MANIFEST
from infra.agent import operations, remote_job
from infra.models.bucket_cache import UNFINISHED_MAX, BucketCache, cached_models
from infra.models.bucket_transfer import upload_parts
from infra.models.child_protocol import TransferFailure
from infra.models.models import PreparedModel, list_files, prepare_model
from infra.models.parts import CachedModel, Part
from infra.models.transfer_process import Hub, Transfer, run_child
from infra.processes import detached
from infra.storage.object_store import ObjectStore
from nights.bucket import BucketLocation, RequestLimits
from tests.emulators.hub import HubEmulator
from tests.emulators.s3 import KEYS, Bucket
from tests.infra.models.tiny import copy_tiny_model
from tests.pairs import thin_matrix
from tests.planted import SECRETS, found_in_processes, plant

WEIGHTS = "model.safetensors"
PART_BYTES = 1 << 20
ONE_TRY = RequestLimits(connect_s=20.0, read_s=20.0, tries=1)
STORED: dict[str, dict[str, Any]] = {}  # the objects of the bucket that `filled` filled first: three processes do that


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (KEYS | {"HF_HOME": str(tmp_path / "hf-home")}).items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "HF_TOKEN", "NIGHTBENCH_HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with Bucket("models") as running:
        yield running


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubEmulator]:
    copy_tiny_model(tmp_path / "repository")
    with HubEmulator(tmp_path / "repository") as emulator:
        yield emulator
    assert detached.marked(tmp_path.name) == []


class Machines:
    """Machines, each with an empty disk, and one bucket for all of them."""

    def __init__(self, folder: Path, hub: HubEmulator, bucket: Bucket) -> None:
        self.folder, self.hub, self.bucket = folder, hub, bucket
        self.source = f"hf:org/small@{hub.sha}"
        self.patience = Hub(hub.url, lease_id=folder.name, stall_s=20.0, tries=3)
        self.lines: list[str] = []
        self.count = 0

    def cache(self, source: str | None = None) -> BucketCache:
        place = BucketLocation(self.bucket.name, self.bucket.endpoint, "ours")
        return BucketCache(ObjectStore(place, ONE_TRY), source or self.source, PART_BYTES)

    def prepare(self, cached: CachedModel | None) -> PreparedModel:
        """The model on a new machine."""
        self.count += 1
        self.hub.requests.clear()
        return prepare_model(self.source, self.folder / str(self.count), self.lines.append, self.patience, cached)

    def upload(self, model: PreparedModel, parts: tuple[Part, ...], seconds: float = 60.0) -> str | None:
        return upload_parts(model.path, parts, seconds, self.patience).why

    def fill(self, model: PreparedModel) -> None:
        files, damaged = list_files(model.path), model.fetched.damaged if model.fetched else ()
        assert self.upload(model, self.cache().start_upload(files, damaged)) is None
        self.cache().finish(files)

    def filled(self) -> CachedModel:
        client = self.client()
        for key, stored in STORED.items():
            client.put_object(Bucket="models", Key=key, **stored)
        if not STORED:
            self.fill(self.prepare(None))
            for key in self.keys():
                found = client.get_object(Bucket="models", Key=key)
                STORED[key] = {"Body": found["Body"].read(), "Metadata": found["Metadata"]}
        cached = self.cache().find()
        assert cached is not None
        return cached

    def contents(self) -> list[str]:
        """The files whose content was requested from the hub."""
        return sorted({one.path.rpartition("/")[2] for one in self.hub.requests if "/resolve/" in one.path})

    def client(self) -> Any:
        return boto3.client("s3", endpoint_url=self.bucket.endpoint, region_name="us-east-1")

    def keys(self, ending: str = "") -> list[str]:
        found = self.client().list_objects_v2(Bucket="models").get("Contents", [])
        return [one["Key"] for one in found if one["Key"].endswith(ending)]


@pytest.fixture
def machines(tmp_path: Path, hub: HubEmulator, bucket: Bucket) -> Machines:
    return Machines(tmp_path, hub, bucket)


def test_a_second_machine_downloads_the_model_from_the_bucket_and_no_content_from_the_hub(machines: Machines) -> None:
    first = machines.prepare(None)
    assert WEIGHTS in machines.contents()
    machines.fill(first)

    second = machines.prepare(machines.cache().find())

    assert second == moved(first, second)
    assert (second.path / MANIFEST).read_bytes() == (first.path / MANIFEST).read_bytes()
    assert machines.contents() == []
    assert second.fetched is not None
    assert second.fetched.origin == "from the bucket"
    assert not [path for path in second.path.parent.iterdir() if path.name.endswith(".download")]
    keys = machines.keys()
    assert len([key for key in keys if f"/{WEIGHTS}/" in key]) > 1  # it has several parts
    assert keys[-1].endswith("/manifest.json")


def moved(first: PreparedModel, second: PreparedModel) -> PreparedModel:
    """The first machine's model under the path of the second's."""
    values = {name: getattr(first, name) for name in first.__dataclass_fields__}
    return PreparedModel(**{**values, "path": second.path})


def test_a_model_on_disk_has_no_origin(machines: Machines) -> None:
    machines.prepare(None)
    machines.count -= 1

    assert machines.prepare(None).fetched is None


def zeros(machines: Machines, key: str) -> None:
    size = machines.client().head_object(Bucket="models", Key=key)["ContentLength"]
    machines.client().put_object(Bucket="models", Key=key, Body=bytes(size))


def short(machines: Machines, key: str) -> None:
    machines.client().put_object(Bucket="models", Key=key, Body=b"short")


def gone(machines: Machines, key: str) -> None:
    machines.client().delete_object(Bucket="models", Key=key)


@pytest.mark.parametrize("damage", thin_matrix([zeros, short, gone], each=3))
def test_a_damaged_object_is_detected_downloaded_from_the_hub_and_uploaded_again(
    machines: Machines, damage: Callable[[Machines, str], None]
) -> None:
    machines.filled()
    damage(machines, machines.keys(f"/{WEIGHTS}/00000")[0])

    second = machines.prepare(machines.cache().find())

    assert machines.contents() == [WEIGHTS]
    assert second.fetched is not None
    assert second.fetched.damaged == (WEIGHTS,)
    assert second.fetched.origin.startswith("from the bucket, the rest from the hub: ")
    machines.bucket.requests.clear()
    machines.fill(second)
    put = {path for path in machines.bucket.puts() if "/files/" in path}
    assert put
    assert all(f"/{WEIGHTS}/" in path for path in put)
    third = machines.prepare(machines.cache().find())
    assert machines.contents() == []
    assert third.fetched is not None
    assert third.fetched.origin == "from the bucket"


def test_a_file_that_the_hub_lists_with_another_hash_is_not_taken_from_the_bucket(machines: Machines) -> None:
    machines.filled()
    (key,) = machines.keys("manifest.json")
    manifest = json.loads(machines.client().get_object(Bucket="models", Key=key)["Body"].read())
    for file in manifest["files"]:
        file["sha256"] = "0" * 64
    machines.client().put_object(Bucket="models", Key=key, Body=json.dumps(manifest).encode())

    second = machines.prepare(machines.cache().find())

    assert WEIGHTS in machines.contents()
    assert second.fetched is not None
    assert WEIGHTS in second.fetched.damaged


@pytest.mark.parametrize("text", ["{", '{"version": 1, "source": "hf:other/one@0", "piece_bytes": 1, "files": []}'])
def test_a_manifest_of_another_model_is_ignored(machines: Machines, text: str) -> None:
    machines.filled()
    machines.client().put_object(Bucket="models", Key=machines.keys("manifest.json")[0], Body=text.encode())

    assert machines.cache().find() is None


def test_a_manifest_with_a_path_outside_its_folder_is_ignored(machines: Machines) -> None:
    machines.filled()
    (key,) = machines.keys("manifest.json")
    files = [{"name": "../../etc/passwd", "size": 1, "sha256": "0" * 64}]
    manifest = {"version": 1, "source": machines.source, "piece_bytes": 1, "files": files}
    machines.client().put_object(Bucket="models", Key=key, Body=json.dumps(manifest).encode())

    assert machines.cache().find() is None


def test_an_unreachable_bucket_is_reported_and_the_hub_used(machines: Machines) -> None:
    cached = machines.filled()
    machines.bucket.__exit__(None, None, None)

    second = machines.prepare(cached)

    assert WEIGHTS in machines.contents()
    assert second.fetched is not None
    assert second.fetched.origin.startswith("from the hub: ")
    assert [line for line in machines.lines if "the hub gives what the bucket did not: " in line]
    machines.bucket.__enter__()


def test_an_expired_url_is_reported_and_the_hub_used(machines: Machines) -> None:
    cached = machines.filled()
    machines.bucket.fault("denied", method="GET")

    second = machines.prepare(cached)

    assert second.fetched is not None
    assert second.fetched.origin == "from the hub: the bucket answered 403"


def test_transient_errors_are_retried(machines: Machines) -> None:
    cached = machines.filled()
    machines.bucket.fault("slow-down", method="GET", path=WEIGHTS, times=2)

    second = machines.prepare(cached)

    assert machines.contents() == []
    assert second.fetched is not None
    assert second.fetched.origin == "from the bucket"


@pytest.mark.parametrize("then", [None, "no-range"])
def test_a_part_that_was_cut_off_is_continued(machines: Machines, then: Any) -> None:
    cached = machines.filled()
    machines.bucket.fault("cut", method="GET", path=f"{WEIGHTS}/00000", times=1)
    if then is not None:
        machines.bucket.fault(then, method="GET", path=f"{WEIGHTS}/00000", times=1)

    second = machines.prepare(cached)

    assert machines.contents() == []
    assert second.fetched is not None
    assert second.fetched.origin == "from the bucket"
    assert machines.bucket.ranges == ([f"bytes={PART_BYTES // 2}-"] if then is None else [])


def test_the_buckets_list_verifies_the_model_if_the_hub_does_not_answer(machines: Machines) -> None:
    cached = machines.filled()
    machines.hub.fault("broken", "/api/", times=1000)

    second = machines.prepare(cached)

    assert second.fetched is not None
    assert second.fetched.origin == "from the bucket"
    assert [line for line in machines.lines if line.endswith("using the bucket's own list")]


def test_an_interrupted_upload_leaves_no_model_and_is_continued(machines: Machines) -> None:
    first = machines.prepare(None)
    files = list_files(first.path)
    parts = machines.cache().start_upload(files)
    machines.bucket.fault("denied", path=f"{WEIGHTS}/00001")

    why = machines.upload(first, parts)

    assert why == "the bucket answered 403"
    with pytest.raises(ObjectStoreError, match=f"{WEIGHTS} is not complete in s3:"):
        machines.cache().finish(files)
    assert machines.cache().find() is None
    assert machines.client().list_multipart_uploads(Bucket="models").get("Uploads", []) == []
    machines.bucket.faults.clear()
    left = machines.cache().start_upload(files)
    assert len(left) < len(parts)
    assert machines.upload(first, left) is None
    machines.cache().finish(files)
    assert machines.cache().find() is not None


def test_an_upload_deletes_the_manifest_first(machines: Machines) -> None:
    machines.filled()

    machines.cache().start_upload(list_files(machines.prepare(None).path), [WEIGHTS])

    assert machines.cache().find() is None


def test_an_upload_stops_at_its_time_limit(machines: Machines) -> None:
    first = machines.prepare(None)
    machines.bucket.fault("silence", seconds=600)

    why = machines.upload(first, machines.cache().start_upload(list_files(first.path)), seconds=0.5)

    assert why == "the upload did not finish within 0.5 s"


def test_presigned_urls_are_in_no_repr_but_cross_the_wire(machines: Machines) -> None:
    cached = machines.filled()
    url = cached.parts[0].url.get_secret_value()
    assert "X-Amz-Signature=" in url

    assert "X-Amz" not in repr(cached)
    assert "very-secret-words" not in url
    sent = remote_job.write_arguments(operations.keep_model, (machines.prepare(None), cached.parts, 1.0, "lease"))
    assert url in sent.decode()
    assert remote_job.read_arguments(sent)[1][1] == cached.parts


def test_presigned_urls_are_in_no_argv_log_or_file_of_the_machine(machines: Machines, tmp_path: Path) -> None:
    cached = machines.filled()
    machines.bucket.fault("silence", method="GET", path=WEIGHTS, times=1, seconds=600)
    machine = threading.Thread(target=machines.prepare, args=[cached])

    machine.start()
    argv = argv_of_child(tmp_path.name)
    written = [path.read_bytes() for path in tmp_path.glob("[0-9]*/**/*") if path.is_file()]
    machines.bucket.relent()
    machine.join()

    written += [path.read_bytes() for path in tmp_path.glob("[0-9]*/**/*") if path.is_file()]
    assert not [word for word in (*argv, *machines.lines) if "X-Amz" in word]
    assert not [text for text in written if b"X-Amz" in text]


def argv_of_child(mark: str) -> list[str]:
    """The command line of the bucket_child process, once it runs."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        for process in detached.marked(mark):
            with suppress(psutil.Error):
                argv = process.cmdline()
                if argv and argv[-1] == "infra.models.bucket_child":
                    return argv
        time.sleep(0.1)
    pytest.fail("no bucket_child was started")


def test_old_commits_are_deleted_and_one_that_is_being_uploaded_stays(machines: Machines) -> None:
    client, now = machines.client(), datetime.now(UTC)
    machines.filled()
    for commit in ("a" * 40, "b" * 40, "c" * 40):
        base = f"ours/models/org--small/{commit}"
        client.put_object(Bucket="models", Key=f"{base}/files/one/00000", Body=b"x")
        if commit != "c" * 40:
            client.put_object(Bucket="models", Key=f"{base}/manifest.json", Body=b"{}")
    client.put_object(Bucket="models", Key="ours/runs/kept", Body=b"x")

    assert len(machines.cache().sweep(now)) == 1
    assert set(cached_models(ObjectStore(BucketLocation("models", machines.bucket.endpoint, "ours"), ONE_TRY))) >= {
        f"org--small/{'c' * 40}",
        f"org--small/{machines.hub.sha}",
    }
    assert machines.cache().sweep(now + UNFINISHED_MAX + timedelta(days=1)) == ["c" * 40]
    assert machines.cache().find() is not None
    assert machines.keys("runs/kept")


def test_the_child_that_talks_to_the_bucket_has_neither_its_keys_nor_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, *(name for name in SECRETS if name != "https_proxy"))  # which a download needs
    seen: list[psutil.Process] = []

    def look() -> int:
        seen.extend(detached.marked(tmp_path.name))
        assert found_in_processes(seen) == set()
        return 0

    _get_of_a_silent_bucket(tmp_path, look)

    assert seen != []


def test_a_transfer_that_drips_is_given_up_as_one_that_stalls(tmp_path: Path) -> None:
    dripped = iter(range(100))  # one byte each time its bytes are counted

    _get_of_a_silent_bucket(tmp_path, lambda: next(dripped))


def test_a_transfer_that_begins_a_file_again_is_given_up_too(tmp_path: Path) -> None:
    again = iter([*range(10), *range(10)] * 10)

    _get_of_a_silent_bucket(tmp_path, lambda: next(again))


def _get_of_a_silent_bucket(tmp_path: Path, bytes_now: Callable[[], int]) -> None:
    """Download from a bucket that answers nothing, with bytes counted so, until that is taken for a stall."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        part = {"start": 0, "size": 1, "url": f"http://127.0.0.1:{silent.getsockname()[1]}/?X-Amz-Signature=f00"}
        values = {
            "files": [{"name": "one", "parts": [part]}],
            "arriving": str(tmp_path / "arriving"),
            "folder": str(tmp_path / "model"),
            "tries": 1,
        }
        transfer, hub = Transfer("bucket_child", "get", values), Hub(lease_id=tmp_path.name, stall_s=0.5)
        with pytest.raises(TransferFailure, match="stalled"):
            run_child(transfer, tmp_path / "aside", hub, bytes_now)
