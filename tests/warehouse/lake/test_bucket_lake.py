"""A lake in a bucket: loaded, asked, killed and rebuilt as one on disk is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import ObjectStoreError, UsageError
from tests.emulators.s3 import KEYS, Bucket
from tests.warehouse.simulated_lake import write_lake
from warehouse.lake.database import open_warehouse
from warehouse.lake.durable import write_text
from warehouse.lake.lake import STAGING, one_loader
from warehouse.lake.query import QueryResult, ask, run_sql
from warehouse.lake.swap import swap_in

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
    """Load every file of a lake on disk, as a load of its nights does once they are judged."""
    with one_loader(data) as lake:
        for path in (source / "lake").rglob("*.parquet"):
            target = lake / STAGING / path.relative_to(source / "lake")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        return swap_in(lake)


def load_text(data: Path, name: str, text: str) -> tuple[str, ...]:
    with one_loader(data) as lake:
        write_text(lake / STAGING / name, text)
        return swap_in(lake)


def answers(data: Path, questions: list[str]) -> list[QueryResult]:
    with open_warehouse(data):  # while it is open, each query opens it at no cost
        return [ask(data, sql) for sql in questions]


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


def test_a_bucket_that_refuses_the_keys_is_a_sentence(bucket: Bucket, tmp_path: Path) -> None:
    bucket.fault("denied", method="GET")

    with pytest.raises(ObjectStoreError, match="AWS_SECRET_ACCESS_KEY"):
        run_sql(tmp_path, "FROM results")


def test_an_address_of_another_form_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NIGHTBENCH_LAKE", "nights/lake")

    with pytest.raises(UsageError, match="s3://bucket/prefix"):
        run_sql(tmp_path, "FROM results")
