"""Run folders go to a bucket and come back, with the real boto3 against moto's server and its faults."""

import hashlib
import json
import re
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from bench.errors import ObjectStoreError, RefusedFileError, UnreadableResultError, UsageError
from infra.storage import store
from infra.storage.accepted import Limits
from infra.storage.fetch import FETCHING, Fetched, fetch_night
from infra.storage.object_store import PART_BYTES, ObjectStore, within
from infra.storage.upload import manifest_hashes, missing, read_uploads, upload_runs
from nights import files, journal
from nights.bucket import BucketLocation, RequestLimits, session_of_environment
from nights.durable import write_text
from nights.files import unknown_files
from tests.emulators.s3 import KEYS, Bucket
from tests.emulators.strange_server import strange_server
from tests.killed import each_kill
from tests.pairs import IS_SOAK
from tests.warehouse.folders import Shape, whole_night

NIGHT = "2026-03-01"
FEW_TRIES = RequestLimits(connect_s=20.0, read_s=20.0, tries=3)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with Bucket() as running:
        yield running


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    whole_night(folder, NIGHT, {str(count): Shape(requests=count) for count in (2, 3, 4)})
    return folder


def _client(bucket: Bucket, config: Config | None = None) -> Any:
    config = config or Config(request_checksum_calculation="when_required")
    return boto3.client("s3", endpoint_url=bucket.endpoint, region_name="us-east-1", config=config)


def _place(bucket: Bucket) -> BucketLocation:
    return BucketLocation(bucket.name, bucket.endpoint, "ours")


def _store(bucket: Bucket) -> ObjectStore:
    return ObjectStore(_place(bucket), FEW_TRIES)


def _upload_runs(bucket: Bucket, data: Path, grace_s: float = 30.0) -> list[str]:
    return upload_runs(partial(ObjectStore, _place(bucket), FEW_TRIES), _place(bucket), data, NIGHT, grace_s)


def _runs(data: Path) -> dict[str, str]:
    hashes = store.file_hashes(data / "runs" / NIGHT)
    return {name: digest for name, digest in hashes.items() if name not in {"uploads.json", ".swap.lock"}}


def test_each_session_has_the_keys_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for key in ("first", "second"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        found.append(session_of_environment().get_credentials().access_key)

    assert found == ["first", "second"]


def test_every_run_is_uploaded_with_its_manifest_last(bucket: Bucket, data: Path) -> None:
    assert _upload_runs(bucket, data) == []

    by_run: dict[str, list[str]] = {}
    for name in bucket.puts():
        run, _, file = name.removeprefix(f"ours/runs/{NIGHT}/").rpartition("/")
        by_run.setdefault(run.removesuffix("/load"), []).append(file)
    manifests = [files for run, files in by_run.items() if "MANIFEST.sha256" in files]
    assert len(manifests) == 3
    assert all(files[-1] == "MANIFEST.sha256" for files in manifests)
    assert missing(data, NIGHT, _place(bucket)) == []


def test_a_second_upload_sends_nothing(bucket: Bucket, data: Path) -> None:
    _upload_runs(bucket, data)
    bucket.requests.clear()

    _upload_runs(bucket, data)

    assert bucket.puts() == []


def test_a_log_that_its_server_still_writes_is_uploaded_as_far_as_it_is_written(bucket: Bucket, data: Path) -> None:
    log = data / "runs" / NIGHT / "servers" / "0123456789abcdef-0.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("started\n")
    is_over = threading.Event()

    def serve() -> None:
        with log.open("a") as server:
            while not is_over.wait(0.0005):
                server.write("one more request\n")
                server.flush()

    with ThreadPoolExecutor() as threads:
        threads.submit(serve)
        try:
            uploads = [_upload_runs(bucket, data) for _ in range(5)]
        finally:
            is_over.set()

    assert uploads == [[]] * 5
    name = f"ours/runs/{NIGHT}/servers/{log.name}"
    assert bucket.puts().count(name) == 5
    found = _client(bucket).get_object(Bucket=bucket.name, Key=name)
    content = found["Body"].read()
    assert log.read_bytes().startswith(content)
    assert found["Metadata"] == {"sha256": hashlib.sha256(content).hexdigest()}


def test_a_fetched_night_equals_the_uploaded_one(bucket: Bucket, data: Path, tmp_path: Path) -> None:
    _upload_runs(bucket, data)

    came = fetch_night(_store(bucket), tmp_path / "there", NIGHT)

    assert len(came.runs) == 3
    assert _runs(tmp_path / "there") == _runs(data)
    assert _store(bucket).folders("runs") == [NIGHT]


def test_a_fetch_keeps_and_names_what_changed_here_since_the_last_upload(bucket: Bucket, data: Path) -> None:
    _upload_runs(bucket, data)
    kept = data / "runs" / NIGHT / "night.json"
    kept.write_text("ours")

    came = fetch_night(_store(bucket), data, NIGHT)

    assert (came.runs, came.files, came.kept) == ((), (), ("night.json",))
    assert kept.read_text() == "ours"


def test_a_second_fetch_gets_the_new_plan_and_costs_and_what_came_since(
    bucket: Bucket, data: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    _write(data, "end.json", '{"stage": null, "reason": "it was stopped"}')
    _upload_runs(bucket, data)
    fetch_night(_store(bucket), there, NIGHT)
    plan = store.read_night(data, NIGHT)
    store.write_json(store.night_file(data, NIGHT), plan.model_copy(update={"forced": ("resumed",)}))
    store.begin_again(data, NIGHT)
    _write(data, "leases/lease-1.json", "{}")
    _write(data, "judgement.json", "{}")
    _upload_runs(bucket, data)

    came = fetch_night(_store(bucket), there, NIGHT)

    assert came.files == ("judgement.json", "leases/lease-1.json", "night.json")
    assert came.removed == ("end.json",)
    assert _runs(there) == _runs(data)
    assert f"runs/{NIGHT}/end.json" not in _store(bucket).names("runs")
    assert fetch_night(_store(bucket), there, NIGHT) == Fetched((), (), (), ())


def _write(data: Path, name: str, text: str) -> None:
    write_text(data / "runs" / NIGHT / name, text)


def test_a_night_fetched_by_an_earlier_version_is_brought_to_what_the_bucket_has(
    bucket: Bucket, data: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    _upload_runs(bucket, data)
    fetch_night(_store(bucket), there, NIGHT)
    (there / "runs" / NIGHT / "uploads.json").unlink()  # earlier versions wrote none
    _write(there, "end.json", '{"stage": null, "reason": "an early state"}')
    _write(data, "leases/lease-1.json", "{}")
    _upload_runs(bucket, data)

    fetch_night(_store(bucket), there, NIGHT)

    assert _runs(there) == _runs(data)


def test_an_upload_of_a_fetched_night_puts_nothing_of_an_early_state_back(
    bucket: Bucket, data: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    _write(data, "end.json", '{"stage": null, "reason": "it was stopped"}')
    _upload_runs(bucket, data)
    fetch_night(_store(bucket), there, NIGHT)
    store.begin_again(data, NIGHT)
    _write(data, "leases/lease-1.json", "{}")
    _upload_runs(bucket, data)
    bucket.requests.clear()

    assert _upload_runs(bucket, there) == []

    assert bucket.puts() == []


def test_another_night_with_the_same_id_is_not_replaced(bucket: Bucket, data: Path, tmp_path: Path) -> None:
    _upload_runs(bucket, data)
    there = tmp_path / "there"
    whole_night(there, NIGHT, {"other": Shape()})
    plan = store.read_night(there, NIGHT)
    store.write_json(store.night_file(there, NIGHT), plan.model_copy(update={"seed": 99}))
    before = _runs(there)

    with pytest.raises(RefusedFileError, match=r"is another night than .*, with the same id; nothing was copied"):
        fetch_night(_store(bucket), there, NIGHT)

    assert _runs(there) == before


def test_a_file_that_the_table_does_not_name_stays_where_it_is(bucket: Bucket, data: Path, tmp_path: Path) -> None:
    _write(data, "notes.txt", "of a person")
    _write(data, "leases/copy of lease-1.json", "{}")

    _upload_runs(bucket, data)
    fetch_night(_store(bucket), tmp_path / "there", NIGHT)

    unknown = ["leases/copy of lease-1.json", "notes.txt"]
    assert unknown_files(data / "runs" / NIGHT) == unknown
    assert _runs(tmp_path / "there").keys() == _runs(data).keys() - set(unknown)


def test_what_a_killed_fetch_has_downloaded_is_no_night(tmp_path: Path) -> None:
    whole_night(tmp_path, NIGHT)
    (tmp_path / "runs" / NIGHT).rename(tmp_path / "runs" / f"{FETCHING}{NIGHT}")

    assert store.nights(tmp_path) == []


def test_a_fetch_that_is_killed_anywhere_has_brought_all_or_nothing(bucket: Bucket, data: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    _upload_runs(bucket, data)
    fetch_night(_store(bucket), there, NIGHT)
    early = _runs(there)
    run = next(path.parent for path in (there / "runs" / NIGHT).glob("*/0/MANIFEST.sha256"))
    shutil.rmtree(run.parent)
    _write(data, "leases/lease-1.json", "{}")
    _write(data, "searches.json", "{}")
    _upload_runs(bucket, data)
    early, late = _runs(there), _runs(data)
    shutil.copytree(there, tmp_path / "early")

    for _change in each_kill(there, lambda: fetch_night(_store(bucket), there, NIGHT), every=1 if IS_SOAK else 7):
        journal.complete(there / "runs" / NIGHT)  # as the next load does
        assert _runs(there) in (early, late)
        fetch_night(_store(bucket), there, NIGHT)
        assert _runs(there) == late
        shutil.rmtree(there)
        shutil.copytree(tmp_path / "early", there)


def test_a_large_file_goes_in_parts(bucket: Bucket, tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(range(256)) * (PART_BYTES // 256) + b"and a little more")

    _store(bucket).put_files(tmp_path, ["large.bin"], "parts")

    assert len([path for method, path in bucket.requests if method == "PUT" and "partNumber=" in path]) == 2
    _store(bucket).get_file("parts/large.bin", tmp_path / "back.bin", large.stat().st_size)
    assert (tmp_path / "back.bin").read_bytes() == large.read_bytes()


@pytest.mark.parametrize("kind", ["slow-down", "error"])
def test_transient_errors_of_a_bucket_are_retried(bucket: Bucket, data: Path, kind: Any) -> None:
    bucket.fault(kind, times=2)

    assert _upload_runs(bucket, data) == []
    assert missing(data, NIGHT, _place(bucket)) == []


@pytest.mark.parametrize(("kind", "said"), [("slow-down", "SlowDown"), ("error", "InternalError")])
def test_a_bucket_that_always_fails_is_a_warning_and_costs_no_result(
    bucket: Bucket, data: Path, kind: Any, said: str
) -> None:
    before = _runs(data)
    bucket.fault(kind)

    (warning,) = _upload_runs(bucket, data)

    assert "3 runs of night 2026-03-01 are not uploaded" in warning
    assert f"`nightbench upload {NIGHT}` tries again" in warning
    assert said in str(read_uploads(data, NIGHT).reason)
    assert len(read_uploads(data, NIGHT).missing) == 3
    assert _runs(data) == before


def test_missing_runs_are_uploaded_the_next_time(bucket: Bucket, data: Path) -> None:
    bucket.fault("error", path="MANIFEST", times=3)
    assert _upload_runs(bucket, data) != []

    assert _upload_runs(bucket, data) == []
    assert read_uploads(data, NIGHT).reason is None
    assert read_uploads(data, NIGHT).missing == ()


def test_a_run_whose_manifest_is_not_there_is_not_fetched(bucket: Bucket, data: Path, tmp_path: Path) -> None:
    bucket.fault("error", path="MANIFEST", times=3)
    _upload_runs(bucket, data)
    _store(bucket).put_files(data / "runs" / NIGHT, ["night.json"], f"runs/{NIGHT}")

    assert fetch_night(_store(bucket), tmp_path / "there", NIGHT).runs == ()
    assert list((tmp_path / "there" / "runs" / NIGHT).glob("*/*/record.json")) == []


def test_an_unresponsive_bucket_delays_by_the_grace_at_most(bucket: Bucket, data: Path) -> None:
    bucket.fault("silence", method="*", seconds=60.0)
    began = time.monotonic()

    (warning,) = _upload_runs(bucket, data, grace_s=1.0)

    assert time.monotonic() - began < 30
    assert "did not finish within" in warning


def test_a_bucket_that_refuses_checksums_is_served_without_them(bucket: Bucket, data: Path) -> None:
    bucket.refuses_checksums = True
    with pytest.raises(Exception, match="NotImplemented"):
        _client(bucket, Config(retries={"total_max_attempts": 1})).put_object(Bucket="nights", Key="a", Body=b"a")

    assert _upload_runs(bucket, data) == []


def test_a_corrupt_upload_is_not_recorded_as_uploaded(bucket: Bucket, data: Path) -> None:
    bucket.fault("corrupt", path="record.json")

    (warning,) = _upload_runs(bucket, data)

    assert "SHA-256 mismatch in s3:" in warning
    assert missing(data, NIGHT, _place(bucket)) != []


def test_a_changed_run_in_the_bucket_is_not_fetched(bucket: Bucket, data: Path, tmp_path: Path) -> None:
    _upload_runs(bucket, data)
    record = next(name for name in bucket.puts() if name.endswith("record.json"))
    _client(bucket).put_object(Bucket=bucket.name, Key=record, Body=b"{}")

    with pytest.raises(UnreadableResultError, match=r"record\.json: SHA-256 mismatch with MANIFEST\.sha256"):
        fetch_night(_store(bucket), tmp_path / "there", NIGHT)
    assert not (tmp_path / "there" / record.removeprefix("ours/")).exists()


def test_a_name_that_no_night_has_is_not_fetched(bucket: Bucket, data: Path, tmp_path: Path) -> None:
    _upload_runs(bucket, data)
    _put(
        bucket,
        "../../evil.json",
        "../7/MANIFEST.sha256",
        "leases/../../evil.json",
        "forged/0/MANIFEST.sha256",
        "0123456789abcdef/../MANIFEST.sha256",
        "evil.json",
        "servers/evil.log",
        "leases/evil.log",
    )

    fetch_night(_store(bucket), tmp_path / "there", NIGHT)

    assert _runs(tmp_path / "there") == _runs(data)
    assert [path for path in tmp_path.rglob("*") if "evil" in path.name or "forged" in path.name] == []


def _put(bucket: Bucket, *names: str, content: bytes = b"evil") -> None:
    client = _client(bucket)
    for name in names:
        client.put_object(Bucket=bucket.name, Key=f"ours/runs/{NIGHT}/{name}", Body=content)


def test_a_run_with_a_name_that_leads_elsewhere_is_refused(bucket: Bucket, data: Path, tmp_path: Path) -> None:
    _upload_runs(bucket, data)
    manifest = next(put for put in bucket.puts() if put.endswith("MANIFEST.sha256"))
    run, opened = manifest.removeprefix(f"ours/runs/{NIGHT}/").removesuffix("/MANIFEST.sha256"), _store(bucket)

    for name in ("../../../../evil", "a/../../b", "/absolute", "back\\slash", "a" * 300):
        _put(bucket, f"{run}/{name}")
        with pytest.raises(RefusedFileError, match="offers a file that no run has") as caught:
            fetch_night(opened, tmp_path / "there", NIGHT)
        opened.remove([f"runs/{NIGHT}/{run}/{name}"])

    assert caught.value.exit_code == 3
    assert not (tmp_path / "there").exists()
    assert not (tmp_path / "evil").exists()


def test_a_run_that_is_too_large_is_refused(bucket: Bucket, data: Path, tmp_path: Path) -> None:
    _upload_runs(bucket, data)
    opened = _store(bucket)

    for limits, why in (
        (Limits(file_bytes=1_000), r"offers \S+ with [\d,]+ bytes and at most 1,000 are accepted"),
        (Limits(total_bytes=2_000), r"offers [\d,]+ bytes and at most 2,000 are accepted"),
        (Limits(count=3), r"offers \d+ files and at most 3 are accepted"),
    ):
        with pytest.raises(RefusedFileError, match=why):
            fetch_night(opened, tmp_path / "there", NIGHT, limits)

    assert not (tmp_path / "there").exists()


def test_the_plan_of_another_night_is_refused(bucket: Bucket, data: Path, tmp_path: Path) -> None:
    opened, plan = _store(bucket), store.read_night(data, NIGHT)

    for night in ("2026-04-01", "../../evil", "x; rm -rf ~"):
        opened.write(f"runs/{NIGHT}/night.json", plan.model_copy(update={"night": night}).model_dump_json().encode())
        with pytest.raises(RefusedFileError, match=f"is the plan of night {re.escape(repr(night))}"):
            fetch_night(opened, tmp_path / "there", NIGHT)

    assert store.nights(tmp_path / "there") == []


def test_a_plan_that_is_none_is_not_fetched(bucket: Bucket, tmp_path: Path) -> None:
    opened = _store(bucket)
    opened.write(f"runs/{NIGHT}/night.json", b"{}")

    with pytest.raises(UnreadableResultError, match=r"night\.json of runs/.* in s3://.* is not a valid plan"):
        fetch_night(opened, tmp_path / "there", NIGHT)

    assert store.nights(tmp_path / "there") == []


def test_an_object_that_grows_after_it_was_listed_is_not_fetched(bucket: Bucket, tmp_path: Path) -> None:
    _put(bucket, "file", content=b"longer")

    with pytest.raises(ObjectStoreError, match=r"its size in s3://.* has changed since it was listed"):
        _store(bucket).get_file(f"runs/{NIGHT}/file", tmp_path / "file", 3)

    assert not (tmp_path / "file").exists()


def test_what_another_program_marks_as_a_folder_is_no_file_of_a_night(
    bucket: Bucket, data: Path, tmp_path: Path
) -> None:
    _upload_runs(bucket, data)
    _put(bucket, "", *(f"{run}/" for run in manifest_hashes(data, NIGHT)), content=b"")

    fetch_night(_store(bucket), tmp_path / "there", NIGHT)

    assert _runs(tmp_path / "there") == _runs(data)


def test_an_upload_that_ends_after_its_time_changes_no_record(bucket: Bucket, data: Path) -> None:
    is_over = threading.Event()

    class LateAnswer(ObjectStore):
        def put_files(self, root: Path, names: Sequence[str], under: str) -> None:
            super().put_files(root, names, under)
            if files.PLAN.name in names:
                is_over.wait(30.0)

    said = upload_runs(partial(LateAnswer, _place(bucket), FEW_TRIES), _place(bucket), data, NIGHT, grace_s=5.0)
    (late,) = (thread for thread in threading.enumerate() if thread.name == "nightbench upload")
    before = read_uploads(data, NIGHT)
    is_over.set()
    late.join()

    assert "the night's own files of night" in said[0]
    assert (before.files, read_uploads(data, NIGHT)) == ({}, before)


def test_a_night_is_fetched_by_an_id_only(bucket: Bucket, tmp_path: Path) -> None:
    opened = _store(bucket)

    for night in ("..", "../evil", "/evil", "", "a/b"):
        with pytest.raises(UsageError, match="is not the id of a night"):
            fetch_night(opened, tmp_path, night)


def test_a_missing_bucket_is_reported_with_what_to_set(bucket: Bucket, data: Path) -> None:
    nowhere = BucketLocation("another", bucket.endpoint)

    (warning,) = upload_runs(partial(ObjectStore, nowhere, FEW_TRIES), nowhere, data, NIGHT, 10.0)

    assert "the bucket does not exist: create it, or set NIGHTBENCH_S3_BUCKET" in warning


def test_refused_keys_are_reported_and_never_printed(bucket: Bucket, data: Path) -> None:
    bucket.fault("denied", method="*")

    (warning,) = _upload_runs(bucket, data)

    assert "AccessDenied" in warning or "403" in warning
    assert "check AWS_ACCESS_KEY_ID" in warning
    assert "very-secret-words" not in warning + json.dumps(read_uploads(data, NIGHT).model_dump())


def test_without_keys_no_request_is_sent(bucket: Bucket, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    (warning,) = _upload_runs(bucket, data)

    assert "no keys were found: set AWS_ACCESS_KEY_ID" in warning
    assert bucket.requests == []


def test_an_unreachable_bucket_is_reported_with_its_endpoint(data: Path) -> None:
    nobody = BucketLocation("nights", "http://127.0.0.1:9")

    with pytest.raises(ObjectStoreError, match=r"s3://nights/nightbench at http://127\.0\.0\.1:9 could not be reached"):
        ObjectStore(nobody, RequestLimits(0.5, 0.5, 1)).names("runs")
    assert missing(data, NIGHT, nobody) != []


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"])
def test_a_download_from_a_dripping_bucket_ends(monkeypatch: pytest.MonkeyPatch, begin: bytes) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    drops, read_s, drop_s = list[bytes](), 0.5, 0.02

    def drip(_request: bytes) -> Iterator[bytes]:
        for piece in chain([begin], repeat(b"x")):
            drops.append(piece)
            yield piece

    with strange_server(drip, drop_s) as url, pytest.raises(ObjectStoreError, match="could not be reached"):
        ObjectStore(BucketLocation("nights", url), RequestLimits(1.0, read_s, tries=1)).read("plan")

    assert len(drops) < 10 * read_s / drop_s


def test_an_upload_that_fails_in_an_unknown_way_says_how_and_not_that_time_ran_out() -> None:
    def fail() -> None:
        raise ValueError("no such thing\nand more")

    assert within(60.0, fail) == "ValueError: no such thing"
    assert within(60.0, lambda: None) is None


def test_an_endpoint_that_is_no_url_is_named_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(ObjectStoreError, match=r"Invalid endpoint: minio:9000: set NIGHTBENCH_S3_ENDPOINT") as refused:
        ObjectStore(BucketLocation("nightly", endpoint="minio:9000"))
    assert refused.value.is_refusal


def test_a_file_that_cannot_be_read_keeps_no_other_run_from_the_bucket(bucket: Bucket, data: Path) -> None:
    broken, *others = sorted(manifest_hashes(data, NIGHT))
    file = next(path for path in (data / "runs" / NIGHT / broken).rglob("*.json") if path.is_file())
    file.unlink()
    file.symlink_to("/proc/self/mem")  # whose first byte is an input/output error

    (said,) = _upload_runs(bucket, data)

    assert f"{file.name} cannot be read" in said
    assert missing(data, NIGHT, _place(bucket)) == [broken]
    assert f"ours/runs/{NIGHT}/night.json" in bucket.puts()
    assert others
