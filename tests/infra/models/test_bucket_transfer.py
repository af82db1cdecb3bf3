"""A model goes to a bucket and comes back by addresses that are lent, with moto's server and an emulated hub."""

import json
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
from infra.models.bucket_cache import UNFINISHED_MAX, BucketCache, models_kept
from infra.models.bucket_transfer import put_pieces
from infra.models.generated import TINY, write_small_model
from infra.models.models import PreparedModel, list_files, prepare_model
from infra.models.parts import CachedModel, Part
from infra.models.transfer_process import Hub
from infra.processes import detached
from infra.storage.object_store import BucketLocation, ObjectStore, RequestLimits
from tests.emulators.hub import HubEmulator
from tests.emulators.s3 import KEYS, Bucket

WEIGHTS = "model.safetensors"
PIECE_BYTES = 1 << 20
QUICK = RequestLimits(connect_s=1.0, read_s=1.0, tries=1)


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
    write_small_model(tmp_path / "repository", shape=TINY)
    with HubEmulator(tmp_path / "repository") as emulator:
        yield emulator
    assert detached.marked(tmp_path.name) == []


class Machines:
    """Machines that come and go, each with an empty disk, and the bucket that outlives them."""

    def __init__(self, folder: Path, hub: HubEmulator, bucket: Bucket) -> None:
        self.folder, self.hub, self.bucket = folder, hub, bucket
        self.source = f"hf:org/small@{hub.sha}"
        self.patience = Hub(hub.url, lease_id=folder.name, stall_s=20.0, tries=3)
        self.said: list[str] = []
        self.count = 0

    def shelf(self, source: str | None = None) -> BucketCache:
        place = BucketLocation(self.bucket.name, self.bucket.endpoint, "ours")
        return BucketCache(ObjectStore(place, QUICK), source or self.source, PIECE_BYTES)

    def prepare(self, kept: CachedModel | None) -> PreparedModel:
        """The model on a machine that was never there before."""
        self.count += 1
        self.hub.requests.clear()
        return prepare_model(self.source, self.folder / str(self.count), self.said.append, self.patience, kept)

    def put(self, model: PreparedModel, pieces: tuple[Part, ...], seconds: float = 60.0) -> str | None:
        return put_pieces(model.path, pieces, seconds, self.patience).why

    def fill(self, model: PreparedModel) -> None:
        files, damaged = list_files(model.path), model.came.damaged if model.came else ()
        assert self.put(model, self.shelf().lacking(files, damaged)) is None
        self.shelf().finish(files)

    def filled(self) -> CachedModel:
        self.fill(self.prepare(None))
        kept = self.shelf().find()
        assert kept is not None
        return kept

    def contents(self) -> list[str]:
        """The files whose content the hub was asked for."""
        return sorted({one.path.rpartition("/")[2] for one in self.hub.requests if "/resolve/" in one.path})

    def client(self) -> Any:
        return boto3.client("s3", endpoint_url=self.bucket.endpoint, region_name="us-east-1")

    def keys(self, ending: str = "") -> list[str]:
        found = self.client().list_objects_v2(Bucket="models").get("Contents", [])
        return [one["Key"] for one in found if one["Key"].endswith(ending)]


@pytest.fixture
def machines(tmp_path: Path, hub: HubEmulator, bucket: Bucket) -> Machines:
    return Machines(tmp_path, hub, bucket)


def test_a_second_machine_has_the_model_from_the_bucket_and_never_asks_the_hub_for_content(machines: Machines) -> None:
    first = machines.prepare(None)
    assert WEIGHTS in machines.contents()
    machines.fill(first)

    second = machines.prepare(machines.shelf().find())

    assert second == machines_as(first, second)
    assert (second.path / MANIFEST).read_bytes() == (first.path / MANIFEST).read_bytes()
    assert machines.contents() == []
    assert second.came is not None
    assert second.came.told == "from the bucket"
    assert not [path for path in second.path.parent.iterdir() if path.name.endswith(".download")]
    pieces = machines.keys()
    assert len([key for key in pieces if f"/{WEIGHTS}/" in key]) > 1  # it went in more than one
    assert pieces[-1].endswith("/manifest.json")


def machines_as(first: PreparedModel, second: PreparedModel) -> PreparedModel:
    """The first machine's model, if it stood where the second has its own."""
    values = {name: getattr(first, name) for name in first.__dataclass_fields__}
    return PreparedModel(**{**values, "path": second.path})


def test_a_model_that_is_there_already_is_said_to_come_from_nowhere(machines: Machines) -> None:
    machines.prepare(None)
    machines.count -= 1

    assert machines.prepare(None).came is None


def zeros(machines: Machines, key: str) -> None:
    size = machines.client().head_object(Bucket="models", Key=key)["ContentLength"]
    machines.client().put_object(Bucket="models", Key=key, Body=bytes(size))


def short(machines: Machines, key: str) -> None:
    machines.client().put_object(Bucket="models", Key=key, Body=b"short")


def gone(machines: Machines, key: str) -> None:
    machines.client().delete_object(Bucket="models", Key=key)


@pytest.mark.parametrize("damage", [zeros, short, gone])
def test_a_damaged_object_is_noticed_comes_from_the_hub_and_is_put_right(
    machines: Machines, damage: Callable[[Machines, str], None]
) -> None:
    machines.filled()
    damage(machines, machines.keys(f"/{WEIGHTS}/00000")[0])

    second = machines.prepare(machines.shelf().find())

    assert machines.contents() == [WEIGHTS]
    assert second.came is not None
    assert second.came.damaged == (WEIGHTS,)
    assert second.came.told.startswith("from the bucket, the rest from the hub: ")
    machines.bucket.requests.clear()
    machines.fill(second)
    put = {path for path in machines.bucket.puts() if "/files/" in path}
    assert put
    assert all(f"/{WEIGHTS}/" in path for path in put)
    third = machines.prepare(machines.shelf().find())
    assert machines.contents() == []
    assert third.came is not None
    assert third.came.told == "from the bucket"


def test_what_the_hub_lists_otherwise_is_not_taken_from_the_bucket(machines: Machines) -> None:
    machines.filled()
    (key,) = machines.keys("manifest.json")
    manifest = json.loads(machines.client().get_object(Bucket="models", Key=key)["Body"].read())
    for file in manifest["files"]:
        file["sha256"] = "0" * 64
    machines.client().put_object(Bucket="models", Key=key, Body=json.dumps(manifest).encode())

    second = machines.prepare(machines.shelf().find())

    assert WEIGHTS in machines.contents()
    assert second.came is not None
    assert WEIGHTS in second.came.damaged


@pytest.mark.parametrize("text", ["{", '{"version": 1, "source": "hf:other/one@0", "piece_bytes": 1, "files": []}'])
def test_a_list_that_is_not_this_models_is_none(machines: Machines, text: str) -> None:
    machines.filled()
    machines.client().put_object(Bucket="models", Key=machines.keys("manifest.json")[0], Body=text.encode())

    assert machines.shelf().find() is None


def test_a_list_whose_files_lead_elsewhere_is_none(machines: Machines) -> None:
    machines.filled()
    (key,) = machines.keys("manifest.json")
    files = [{"name": "../../etc/passwd", "size": 1, "sha256": "0" * 64}]
    manifest = {"version": 1, "source": machines.source, "piece_bytes": 1, "files": files}
    machines.client().put_object(Bucket="models", Key=key, Body=json.dumps(manifest).encode())

    assert machines.shelf().find() is None


def test_a_bucket_that_is_out_of_reach_costs_a_sentence(machines: Machines) -> None:
    kept = machines.filled()
    machines.bucket.__exit__(None, None, None)

    second = machines.prepare(kept)

    assert WEIGHTS in machines.contents()
    assert second.came is not None
    assert second.came.told.startswith("from the hub: ")
    assert [line for line in machines.said if "comes from the hub: " in line]
    machines.bucket.__enter__()


def test_an_address_that_is_no_longer_good_costs_a_sentence(machines: Machines) -> None:
    kept = machines.filled()
    machines.bucket.fault("denied", method="GET")

    second = machines.prepare(kept)

    assert second.came is not None
    assert second.came.told == "from the hub: the bucket answered 403"


def test_errors_that_pass_are_waited_for(machines: Machines) -> None:
    kept = machines.filled()
    machines.bucket.fault("slow-down", method="GET", path=WEIGHTS, times=2)

    second = machines.prepare(kept)

    assert machines.contents() == []
    assert second.came is not None
    assert second.came.told == "from the bucket"


@pytest.mark.parametrize("then", [None, "no-range"])
def test_a_piece_that_was_cut_off_is_gone_on_with(machines: Machines, then: Any) -> None:
    kept = machines.filled()
    machines.bucket.fault("cut", method="GET", path=f"{WEIGHTS}/00000", times=1)
    if then is not None:
        machines.bucket.fault(then, method="GET", path=f"{WEIGHTS}/00000", times=1)

    second = machines.prepare(kept)

    assert machines.contents() == []
    assert second.came is not None
    assert second.came.told == "from the bucket"
    assert machines.bucket.ranges == ([f"bytes={PIECE_BYTES // 2}-"] if then is None else [])


def test_where_the_hub_cannot_be_asked_the_buckets_own_list_proves_the_model(machines: Machines) -> None:
    kept = machines.filled()
    machines.hub.fault("broken", "/api/", times=1000)

    second = machines.prepare(kept)

    assert second.came is not None
    assert second.came.told == "from the bucket"
    assert [line for line in machines.said if line.endswith("the bucket's own list is used")]


def test_an_upload_that_breaks_off_leaves_no_model_and_is_gone_on_with(machines: Machines) -> None:
    first = machines.prepare(None)
    files = list_files(first.path)
    pieces = machines.shelf().lacking(files)
    machines.bucket.fault("denied", path=f"{WEIGHTS}/00001")

    why = machines.put(first, pieces)

    assert why == "the bucket answered 403"
    with pytest.raises(ObjectStoreError, match=f"has not all of {WEIGHTS}"):
        machines.shelf().finish(files)
    assert machines.shelf().find() is None
    assert machines.client().list_multipart_uploads(Bucket="models").get("Uploads", []) == []
    machines.bucket.faults.clear()
    left = machines.shelf().lacking(files)
    assert len(left) < len(pieces)
    assert machines.put(first, left) is None
    machines.shelf().finish(files)
    assert machines.shelf().find() is not None


def test_filling_withdraws_the_list_before_anything_is_put(machines: Machines) -> None:
    machines.filled()

    machines.shelf().lacking(list_files(machines.prepare(None).path), [WEIGHTS])

    assert machines.shelf().find() is None


def test_an_upload_takes_no_longer_than_it_may(machines: Machines) -> None:
    first = machines.prepare(None)
    machines.bucket.fault("silence", seconds=600)

    why = machines.put(first, machines.shelf().lacking(list_files(first.path)), seconds=0.5)

    assert why == "it was not done within 0.5 s"


def test_addresses_show_themselves_to_nobody(machines: Machines) -> None:
    kept = machines.filled()
    address = kept.pieces[0].url.get_secret_value()
    assert "X-Amz-Signature=" in address

    assert "X-Amz" not in repr(kept)
    assert "very-secret-words" not in address
    sent = remote_job.write_arguments(operations.keep_model, (machines.prepare(None), kept.pieces, 1.0, "lease"))
    assert address in sent.decode()
    assert remote_job.read_arguments(sent)[1][1] == kept.pieces


def test_addresses_are_in_no_argv_no_log_and_no_file_of_the_machine(machines: Machines, tmp_path: Path) -> None:
    kept = machines.filled()
    machines.bucket.fault("silence", method="GET", path=WEIGHTS, times=1, seconds=600)
    machine = threading.Thread(target=machines.prepare, args=[kept])

    machine.start()
    argv = argv_of_child(tmp_path.name)
    written = [path.read_bytes() for path in tmp_path.glob("[0-9]*/**/*") if path.is_file()]
    machines.bucket.relent()
    machine.join()

    written += [path.read_bytes() for path in tmp_path.glob("[0-9]*/**/*") if path.is_file()]
    assert not [word for word in (*argv, *machines.said) if "X-Amz" in word]
    assert not [text for text in written if b"X-Amz" in text]


def argv_of_child(mark: str) -> list[str]:
    """How the process that talks to the bucket was started, once it is."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for process in detached.marked(mark):
            with suppress(psutil.Error):
                argv = process.cmdline()
                if argv and argv[-1].endswith("bucket_child.py"):
                    return argv
        time.sleep(0.1)
    pytest.fail("nobody talks to the bucket")


def test_old_commits_go_and_one_that_is_being_uploaded_stays(machines: Machines) -> None:
    client, now = machines.client(), datetime.now(UTC)
    machines.filled()
    for commit in ("a" * 40, "b" * 40, "c" * 40):
        base = f"ours/models/org--small/{commit}"
        client.put_object(Bucket="models", Key=f"{base}/files/one/00000", Body=b"x")
        if commit != "c" * 40:
            client.put_object(Bucket="models", Key=f"{base}/manifest.json", Body=b"{}")
    client.put_object(Bucket="models", Key="ours/runs/kept", Body=b"x")

    assert len(machines.shelf().sweep(now)) == 1
    assert set(models_kept(ObjectStore(BucketLocation("models", machines.bucket.endpoint, "ours"), QUICK))) >= {
        f"org--small/{'c' * 40}",
        f"org--small/{machines.hub.sha}",
    }
    assert machines.shelf().sweep(now + UNFINISHED_MAX + timedelta(days=1)) == ["c" * 40]
    assert machines.shelf().find() is not None
    assert machines.keys("runs/kept")
