"""A lake in a bucket: loaded, asked, killed and rebuilt as one on disk is."""

import gzip
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count, repeat
from os import SEEK_END
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench.errors import NightbenchError, ObjectStoreError, UsageError
from flows.doctor.host_checks import examine
from infra.settings import Settings
from nights.bucket import BucketLocation, RequestLimits, session_of_environment
from nights.durable import write_text
from tests.emulators.s3 import KEYS, Bucket
from tests.emulators.strange_server import strange_server
from tests.killed import killed_before
from tests.pairs import IS_SOAK
from tests.warehouse.folders import Shape, whole_night
from tests.warehouse.simulated_lake import write, write_lake
from warehouse.lake.bucket import client
from warehouse.lake.bucket.client import LakeBucket, lake_bucket
from warehouse.lake.bucket.location import lake_folder, lake_location
from warehouse.lake.bucket.manifest import Manifest, StoredFile, Version
from warehouse.lake.bucket.working_copy import delete_unnamed
from warehouse.lake.database import open_warehouse
from warehouse.lake.gap_retention import drop_old_gaps
from warehouse.lake.lake import STAGING, one_loader, partition
from warehouse.lake.months import stage_months
from warehouse.lake.query import ask, run_sql
from warehouse.lake.swap import folders_of, lost_files, swap_in
from warehouse.load import load_night
from warehouse.rebuild import not_here, rebuild
from warehouse.report.figures import in_browser
from warehouse.report.page import night_body
from warehouse.views.tables import PART

BEFORE = {"leases/night=a/x.txt": "old", "leases/night=gone/x.txt": "old", "stages/night=a/x.txt": "same"}
AFTER = {"leases/night=a/x.txt": "new", "leases/night=b/x.txt": "new", "stages/night=a/x.txt": "same"}
QUERIES = Path(__file__).parents[3] / "docs" / "how-to" / "queries"


@pytest.fixture(scope="module")
def running() -> Iterator[Bucket]:
    with Bucket("lakes") as bucket:
        yield bucket


@pytest.fixture
def bucket(running: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bucket:
    """The bucket, with a prefix for this test alone."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NIGHTBENCH_LAKE", f"s3://lakes/{tmp_path.name}")
    monkeypatch.setenv("NIGHTBENCH_S3_ENDPOINT", running.endpoint)
    running.relent()
    running.requests.clear()
    return running


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of six nights in two months, on disk."""
    return write_lake(tmp_path_factory.mktemp("disk"), 6)


def load_copy(source: Path, data: Path) -> tuple[str, ...]:
    """Load every file of a lake on disk, as a load of its nights does once they are judged, with files of months."""
    with one_loader(data) as lake:
        for path in (source / "lake").rglob("*.parquet"):
            target = lake / STAGING / path.relative_to(source / "lake")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        stage_months(lake, loose_nights=1)
        return swap_in(lake)


def load_texts(data: Path, texts: dict[str, str]) -> tuple[str, ...]:
    with one_loader(data) as lake:
        for name, text in texts.items():
            write_text(lake / STAGING / name, text)
        return swap_in(lake)


def load_text(data: Path, name: str, text: str) -> tuple[str, ...]:
    return load_texts(data, {name: text})


def replace_texts(data: Path) -> None:
    """Replace what is there, as a rebuild does."""
    with one_loader(data) as lake:
        for name, text in AFTER.items():
            write_text(lake / STAGING / name, text)
        swap_in(lake, removed=folders_of(lake, {"gone"}))


def here() -> LakeBucket:
    location = lake_location()
    assert location is not None
    return lake_bucket(location)


def stored() -> Mapping[str, StoredFile]:
    return here().read_manifest().manifest.files


def stored_texts() -> dict[str, str]:
    return {name: here().read(file).decode() for name, file in stored().items()}


def copied_texts(data: Path) -> dict[str, str]:
    lake = lake_folder(data)
    return {str(path.relative_to(lake)): path.read_text() for path in lake.glob("*/*/*.txt")}


def answers(data: Path, questions: list[str]) -> list[list[str]]:
    """The rows of each answer as text: floating point sums may differ in their last digits."""
    with open_warehouse(data):  # while it is open, each query opens it at no cost
        results = [ask(data, sql) for sql in questions]
    return [sorted(" ".join(map(shown, row)) for row in result.rows) for result in results]


def shown(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


@pytest.mark.usefixtures("bucket")
def test_a_reader_with_only_the_settings_gets_the_answers_that_the_disk_gives(
    on_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [path.read_text() for path in sorted(QUERIES.glob("*.sql"))]
    with monkeypatch.context() as local:
        local.delenv("NIGHTBENCH_LAKE")
        expected = answers(on_disk, questions)
    load_copy(on_disk, tmp_path / "loader")

    assert answers(tmp_path / "reader", questions) == expected
    assert any("month=" in name for name in stored())


def test_loading_the_same_again_writes_nothing(bucket: Bucket, tmp_path: Path) -> None:
    load_text(tmp_path, "leases/night=a/x.txt", "one")
    bucket.requests.clear()

    assert load_text(tmp_path, "leases/night=a/x.txt", "one") == ()
    assert {method for method, _path in bucket.requests} == {"GET"}


@pytest.mark.usefixtures("bucket")
def test_of_two_computers_that_load_at_once_one_is_told_to_load_again(tmp_path: Path) -> None:
    load_text(tmp_path / "one", "leases/night=a/x.txt", "one")

    with one_loader(tmp_path / "two") as lake:
        load_text(tmp_path / "one", "leases/night=b/x.txt", "meanwhile")
        write_text(lake / STAGING / "leases/night=c/x.txt", "late")
        with pytest.raises(ObjectStoreError, match=r"another computer loaded .* load again"):
            swap_in(lake)

    assert load_text(tmp_path / "two", "leases/night=c/x.txt", "late") == ("leases/night=c/x.txt",)
    with one_loader(tmp_path / "one") as lake:
        assert sorted(path.parent.name for path in lake.glob("leases/*/x.txt")) == ["night=a", "night=b", "night=c"]


@pytest.mark.usefixtures("bucket")
def test_a_load_that_is_killed_anywhere_is_in_the_bucket_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, left = tmp_path / "data", Counter[str]()
    for change in count(step=1 if IS_SOAK else 9):
        monkeypatch.setenv("NIGHTBENCH_LAKE", f"s3://lakes/{tmp_path.name}/{change}")
        shutil.rmtree(data, ignore_errors=True)
        load_texts(data, BEFORE)
        code = killed_before(change, data, replace_texts, data)
        found = stored_texts()
        assert found in (BEFORE, AFTER)
        left["after" if found == AFTER else "before"] += 1

        load_texts(data, {"leases/night=other/x.txt": "next"})

        assert stored_texts() == found | {"leases/night=other/x.txt": "next"}
        assert copied_texts(data) == stored_texts()
        if code == 0:
            break
    assert min(left["before"], left["after"]) > 1


@pytest.mark.usefixtures("bucket")
def test_a_rebuild_makes_the_lake_of_the_run_folders_and_a_report_is_written_from_it(
    on_disk: Path, tmp_path: Path
) -> None:
    load_copy(on_disk, tmp_path / "earlier")
    whole_night(tmp_path / "loader", "2026-03-01", {"chat": Shape()})

    (summary,) = rebuild(tmp_path / "loader", prune=not_here(tmp_path / "loader"))

    assert run_sql(tmp_path / "reader", "SELECT night, count(*) FROM requests GROUP BY ALL").rows == (
        ("2026-03-01", summary.requests),
    )
    assert {name.split("/")[1] for name in stored()} == {"night=2026-03-01", "months.sha256"}
    assert "2026-03-01" in night_body(tmp_path / "reader", "2026-03-01", in_browser)


@pytest.mark.usefixtures("bucket")
def test_a_rebuild_on_a_computer_with_one_night_keeps_the_nights_of_others(tmp_path: Path) -> None:
    one, two = "2026-03-01", "2026-03-02"
    for night in (one, two):
        whole_night(tmp_path / "first", night)
        load_night(tmp_path / "first", night)
    before = stored()
    shutil.copytree(tmp_path / "first" / "runs" / two, tmp_path / "second" / "runs" / two)

    rebuild(tmp_path / "second")

    assert run_sql(tmp_path / "reader", "SELECT DISTINCT night FROM results ORDER BY 1").rows == ((one,), (two,))
    assert stored() == before


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(
    "work",
    [rebuild, lambda data: run_sql(data, "FROM read_csv('/etc/hostname')")],
    ids=["rebuild without nights", "query of another file"],
)
def test_a_refusal_names_the_bucket(tmp_path: Path, work: Callable[[Path], object]) -> None:
    with pytest.raises(UsageError, match="s3://lakes/"):
        work(tmp_path)


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("whole", [0, client.READ_WHOLE_BYTES], ids=["large objects", "small objects"])
def test_gaps_of_old_nights_are_dropped_by_a_computer_that_never_had_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    monkeypatch.setattr(client, "READ_WHOLE_BYTES", whole)
    nights = [f"2026-0{month}-01T010000Z" for month in (1, 2, 3)]
    row = {"scenario_id": "s", "repeat": 0, "outcome": "ok", "request_index": 0, "itl_us": [5, 6], "ttft_ms": 2.0}
    for night in nights:
        write(tmp_path / "lake", "requests", night, [row | {"run_id": night}])
    load_copy(tmp_path, tmp_path / "loader")

    assert drop_old_gaps(tmp_path / "other", 20, nights[0]) == [nights[1], nights[0]]

    rows = run_sql(tmp_path / "reader", "SELECT itl_us, ttft_ms FROM requests ORDER BY night").rows
    assert rows == ((None, 2.0), (None, 2.0), ([5, 6], 2.0))


def test_a_question_about_one_night_asks_for_that_nights_object_and_one_for_each_set_of_columns(
    bucket: Bucket, tmp_path: Path
) -> None:
    nights = [f"2026-01-{day:02d}" for day in range(1, 13)]
    for night in nights:
        row = {"run_id": night, "scenario_id": "s", "repeat": 0, "outcome": "ok", "request_index": 0, "ttft_ms": 2.0}
        write(tmp_path / "lake", "requests", night, [row])
    oldest = partition(tmp_path / "lake", "requests", nights[0]) / PART
    pq.write_table(pq.read_table(oldest, partitioning=None).drop_columns(["ttft_ms"]), oldest)
    load_copy(tmp_path, tmp_path / "loader")
    bucket.requests.clear()

    of_night = "SELECT run_id FROM requests WHERE night = ?"
    assert run_sql(tmp_path / "reader", of_night, (nights[6],)).rows == ((nights[6],),)

    assert len({path for _method, path in bucket.requests if "/requests/" in path}) <= 3
    assert run_sql(tmp_path / "reader", "SELECT count(*), count(ttft_ms) FROM requests").rows == ((12, 11),)


@pytest.mark.usefixtures("bucket")
def test_a_replaced_object_is_deleted_a_day_later_and_what_a_killed_load_left_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_text(tmp_path, "leases/night=a/x.txt", "old")
    load_text(tmp_path, "leases/night=a/x.txt", "new")
    (replaced, now) = here().names()
    write_text(tmp_path / "left.txt", "left")
    here().put(tmp_path / "left.txt", "leases/left.txt")

    delete_unnamed(here(), lake_folder(tmp_path))
    assert here().names().keys() == {replaced, now, "leases/left.txt"}
    delete_unnamed(here(), lake_folder(tmp_path), older_than_s=-1)
    assert here().names().keys() == {replaced, now}

    later = time.time() + 90000
    monkeypatch.setattr(time, "time", lambda: later)
    load_text(tmp_path, "leases/night=b/x.txt", "new")
    assert len(here().names()) == 2
    assert stored_texts() == {"leases/night=a/x.txt": "new", "leases/night=b/x.txt": "new"}


@pytest.mark.usefixtures("bucket")
def test_a_load_that_fails_has_deleted_nothing_that_another_load_names_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, commit = "leases/night=a/x.txt", LakeBucket.commit
    _outdate(tmp_path / "one", name, monkeypatch)
    waiting: list[tuple[Manifest, Version]] = []
    committed: list[Version] = []

    def interleaved(bucket: LakeBucket, manifest: Manifest, *, after: Version) -> Version:
        if not waiting:  # the second computer has uploaded its file; now the first one loads
            waiting.append((manifest, after))
            with pytest.raises(ObjectStoreError, match="load again"):
                load_text(tmp_path / "one", "leases/night=c/x.txt", "of the first")
            return committed[0]
        committed.append(commit(bucket, waiting[0][0], after=waiting[0][1]))
        return commit(bucket, manifest, after=after)

    monkeypatch.setattr(LakeBucket, "commit", interleaved)
    load_text(tmp_path / "two", name, "old")

    assert stored_texts() == {name: "old"}


@pytest.mark.usefixtures("bucket")
def test_a_content_that_another_load_uploads_while_an_old_object_of_it_is_deleted_survives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, remove = "leases/night=a/x.txt", LakeBucket.remove
    _outdate(tmp_path / "one", name, monkeypatch)

    def interleaved(bucket: LakeBucket, keys: Sequence[str]) -> None:
        monkeypatch.setattr(LakeBucket, "remove", remove)
        load_text(tmp_path / "two", name, "old")
        remove(bucket, keys)

    monkeypatch.setattr(LakeBucket, "remove", interleaved)
    load_text(tmp_path / "one", "leases/night=c/x.txt", "of the first")

    assert stored_texts() == {name: "old", "leases/night=c/x.txt": "of the first"}


def _outdate(data: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace a file, and let more than a day go by, so that the next load deletes its old object."""
    load_text(data, name, "old")
    load_text(data, name, "new")
    later = time.time() + 90000
    monkeypatch.setattr(time, "time", lambda: later)


def _lose(*names: str) -> None:
    here().remove([stored()[name].key for name in names])


@pytest.mark.usefixtures("bucket")
def test_a_rebuild_writes_missing_objects_again_and_until_then_a_sentence_says_so(tmp_path: Path) -> None:
    one, two = "2026-03-01", "2026-03-02"
    for night in (one, two):
        whole_night(tmp_path / "first", night)
        load_night(tmp_path / "first", night)
    question = "SELECT count(*) FROM requests JOIN measurements USING (run_id)"
    before = run_sql(tmp_path / "reader", question).rows
    lost = [f"{table}/night={night}/{PART}" for table in ("measurements", "requests") for night in (one, two)]
    _lose(*lost)
    copy = tmp_path / "second" / "runs"
    shutil.copytree(tmp_path / "first" / "runs" / two, copy / two)

    with pytest.raises(ObjectStoreError, match=r"the object is missing\. .* nightbench rebuild"):
        run_sql(tmp_path / "another reader", question)
    assert lost_files() == lost
    rebuild(tmp_path / "second")  # a computer that has one of the nights, and no copy of the lake
    assert lost_files() == [name for name in lost if one in name]
    rebuild(tmp_path / "first")
    assert lost_files() == []
    assert run_sql(tmp_path / "a third reader", question).rows == before


@pytest.mark.usefixtures("bucket")
def test_doctor_names_the_objects_that_the_bucket_lacks(tmp_path: Path) -> None:
    load_text(tmp_path, "leases/night=a/x.txt", "one")
    load_text(tmp_path, "leases/night=b/x.txt", "two")
    _lose("leases/night=a/x.txt")

    (found,) = [check for check in examine(Settings(data=tmp_path)) if check.what == "lake"]

    assert found.found.endswith("; missing or cut short: leases/night=a/x.txt")
    assert not found.is_good


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("NIGHTBENCH_LAKE", "s3://nowhere/lake", "the bucket does not exist"),
        ("NIGHTBENCH_S3_ENDPOINT", "http://127.0.0.1:9", "could not be reached"),
        ("AWS_ACCESS_KEY_ID", "", "no keys were found"),
    ],
)
def test_a_bucket_that_cannot_be_read_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ObjectStoreError, match=told):
        run_sql(tmp_path, "FROM results")


LARGE = StoredFile(key="requests/large.parquet", sha256="0" * 64, size=4 << 20)
HEAD_OF_LARGE = b"HTTP/1.1 206 Partial Content\r\nContent-Length: %d\r\n\r\n"


@pytest.mark.usefixtures("bucket")
def test_a_part_of_a_large_object_from_a_bucket_that_drips_is_given_up() -> None:
    drops, read_s, drop_s = list[bytes](), 0.5, 0.02

    def drip(_request: bytes) -> Iterator[bytes]:
        for piece in chain([HEAD_OF_LARGE % 1000], repeat(b"x")):
            drops.append(piece)
            yield piece

    with strange_server(drip, drop_s) as url, pytest.raises(ObjectStoreError, match=r"large\.parquet: .* reached"):
        _lake_at(url, RequestLimits(1.0, read_s, tries=1)).open(LARGE).read(1000)

    assert len(drops) < 10 * client.READ_TRIES * read_s / drop_s


@pytest.mark.usefixtures("bucket")
def test_a_part_of_a_large_object_that_has_another_size_is_not_read() -> None:
    """A store that ignores ranges answers with the whole object."""

    def endless(_request: bytes) -> Iterator[bytes]:
        return chain([HEAD_OF_LARGE % LARGE.size], repeat(b"x" * 4096))

    with strange_server(endless) as url, pytest.raises(ObjectStoreError, match="4194304 bytes instead of 1000"):
        _lake_at(url).open(LARGE).read(1000)


def test_a_part_that_breaks_off_is_read_again(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(client, "READ_WHOLE_BYTES", 0)
    load_text(tmp_path, "leases/night=a/x.txt", "0123456789")
    (file,) = stored().values()
    bucket.fault("cut", method="GET", path="leases", times=2)

    with here().open(file) as opened:
        opened.seek(-7, SEEK_END)
        assert (opened.read(4), opened.tell(), opened.read()) == (b"3456", 7, b"789")


def _lake_at(url: str, limits: RequestLimits | None = None) -> LakeBucket:
    return LakeBucket(BucketLocation("lakes", url), session_of_environment(), limits)


CONTENTS = {"empty": b"", "no gzip": b"not compressed", "another version": gzip.compress(b'{"version": 2}', mtime=0)}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.usefixtures("bucket")
def test_a_manifest_that_cannot_be_read_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest").write_bytes(content)
    here().put(tmp_path / "manifest", client.MANIFEST)

    with pytest.raises(ObjectStoreError, match="update Nightbench; or"):
        run_sql(tmp_path, "FROM results")


def test_a_bucket_that_fails_below_a_query_is_a_sentence(on_disk: Path, bucket: Bucket, tmp_path: Path) -> None:
    load_copy(on_disk, tmp_path / "loader")
    bucket.fault("denied", method="GET", path="parquet")

    with pytest.raises(NightbenchError, match="AWS_SECRET_ACCESS_KEY"):
        run_sql(tmp_path / "reader", "FROM requests")


def test_a_bucket_that_refuses_the_keys_is_a_sentence(bucket: Bucket, tmp_path: Path) -> None:
    bucket.fault("denied", method="GET")

    with pytest.raises(ObjectStoreError, match="AWS_SECRET_ACCESS_KEY"):
        run_sql(tmp_path, "FROM results")


def test_a_lost_answer_to_the_last_request_is_not_taken_for_another_loader(bucket: Bucket, tmp_path: Path) -> None:
    for text in ("the first load of a lake", "a later one"):
        bucket.fault("lost", path="manifest", times=1)

        assert load_text(tmp_path, "leases/night=a/x.txt", text) == ("leases/night=a/x.txt",)

        assert stored_texts() == {"leases/night=a/x.txt": text}


def test_a_store_that_ignores_conditions_is_refused_before_it_holds_a_lake(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "ignores_conditions", True)

    with pytest.raises(ObjectStoreError, match="ignores the condition"):
        load_text(tmp_path, "leases/night=a/x.txt", "one")

    assert stored() == {}


def test_an_address_of_another_form_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NIGHTBENCH_LAKE", "nights/lake")

    with pytest.raises(UsageError, match="s3://bucket/prefix"):
        run_sql(tmp_path, "FROM results")
