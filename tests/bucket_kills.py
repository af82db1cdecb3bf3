"""Kill a load, a rebuild, an upload or a fetch that uses a bucket, and look at what the next comer finds.

`python -m tests.bucket_kills FOLDER WORK STEPS RANDOM` kills the work before every STEPS-th change of a file or of the
bucket, and RANDOM times at random moments of its CPU time. The bucket is a process of its own, as this one has no
thread when it forks.
"""

import gc
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections import Counter
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import boto3

from infra.storage import store
from infra.storage.fetch import fetch_night
from infra.storage.object_store import ObjectStore
from infra.storage.upload import upload_runs
from nights import journal
from nights.bucket import BucketLocation
from tests.emulators.s3 import KEYS
from tests.forked import ended, forked
from tests.killed import killed_before
from tests.warehouse.folders import Shape, whole_night
from tests.warehouse.kills import IMPORTED_BY_A_LOAD, PROGRESS, RESULTS, SEED, Content, killed_after
from warehouse.imports import import_file
from warehouse.lake.bucket.client import LakeBucket, lake_bucket
from warehouse.lake.bucket.location import lake_location
from warehouse.lake.database import open_warehouse
from warehouse.lake.query import ask
from warehouse.load import load_night
from warehouse.rebuild import rebuild

NIGHT, EARLIER, GONE = "2026-03-02", "2026-03-01", "2026-02-01"
BUCKET, OTHER = "nights", "other.json"
EVERY_QUESTION = 100  # kills, after which the twelve questions are asked; the hashes are compared after each
QUERIES = Path(__file__).parents[1] / "docs" / "how-to" / "queries"


class Case(ABC):
    """One kind of work on a data folder and a bucket, and the states that a kill of it may leave."""

    states: ClassVar[tuple[str, ...]] = ("before", "after")

    def __init__(self, data: Path) -> None:
        self.data = data

    @abstractmethod
    def make(self) -> None:
        """Make the state before the work."""

    @abstractmethod
    def work(self, data: Path) -> None:
        """The work that is killed."""

    @abstractmethod
    def come(self, at: int) -> None:
        """Let somebody come after the kill."""

    @abstractmethod
    def content(self) -> Content:
        """What was killed has, as the next comer sees it; fails where a part of it cannot be read."""

    def answers(self) -> object:
        """The answers of the twelve questions in the final state."""
        return answers(self.data)

    def finish(self) -> None:
        """Do the work again, after a kill."""
        self.work(self.data)


class Load(Case):
    """A load into a lake in a bucket, of a night that was loaded with other results before."""

    def make(self) -> None:
        """A lake of three nights and an import; two of the nights have changed since, and one has no run folders."""
        for night in (GONE, EARLIER, NIGHT):
            whole_night(self.data, night, {"chat": Shape(gap_ms=5.0)})
            load_night(self.data, night)
        shutil.rmtree(self.data / "runs" / GONE)
        shutil.rmtree(self.data / "runs" / NIGHT)
        whole_night(self.data, NIGHT, {"chat": Shape(gap_ms=7.0, failed=3)})
        shutil.copy(RESULTS / "vllm_bench_serve.json", self.data / "results.json")
        import_file(self.data, self.data / "results.json")
        (self.data / OTHER).write_bytes((self.data / "results.json").read_bytes() + b"\n")

    def work(self, data: Path) -> None:
        load_night(data, NIGHT)

    def come(self, at: int) -> None:
        """A reader, and each tenth time a load of something else."""
        if at % 10:
            with open_warehouse(self.data):
                pass
        else:
            import_file(self.data, self.data / OTHER)

    def content(self) -> Content:
        other = hashlib.sha256((self.data / OTHER).read_bytes()).hexdigest()[:16]
        bucket = _lake()
        manifest = bucket.read_manifest().manifest
        assert not bucket.lost(manifest)
        return {name: file.sha256 for name, file in manifest.files.items() if other not in name}


class Rebuild(Load):
    """A rebuild of that lake, which removes the night without run folders."""

    def work(self, data: Path) -> None:
        rebuild(data, prune=[GONE])


class Upload(Case):
    """An upload of a night that was resumed since the last one: `end.json` is gone; a run, files and costs are new."""

    states = ("before", "between", "after")  # runs come one by one, each as a whole

    def make(self) -> None:
        whole_night(self.data, NIGHT, {str(count): Shape(requests=count) for count in (20, 30, 40)})
        folder = self.data / "runs" / NIGHT
        runs = sorted(path.parent for path in folder.glob("*/0/MANIFEST.sha256"))
        runs[0].parent.rename(self.data / "waiting")
        (folder / "end.json").write_text('{"stage": null, "reason": "it was stopped"}')
        _upload(self.data)
        (self.data / "waiting").rename(runs[0].parent)
        store.begin_again(self.data, NIGHT)
        for name in ("judgement.json", "searches.json", "repeats.json"):
            (folder / name).write_text(json.dumps({"file": name}))
        (folder / "leases" / "lease-1.json").write_text(json.dumps({"usd": 4.0}))

    def work(self, data: Path) -> None:
        _upload(data)

    def come(self, at: int) -> None:
        """Each second time another computer, which fetches what the bucket has: whole runs, or none."""
        if at % 2:
            there = self.data.with_name("there")
            shutil.rmtree(there, ignore_errors=True)
            fetch_night(_store(), there, NIGHT)
            assert all(store.is_whole(path.parent) for path in (there / "runs" / NIGHT).glob("*/0/MANIFEST.sha256"))

    def content(self) -> Content:
        """Whole runs and own files of the bucket, by the hash of their content; a run without its manifest is none."""
        found = _objects()
        whole = {name.rpartition("/")[0] for name in found if name.endswith("MANIFEST.sha256")}
        runs = {name: "/".join(name.split("/")[:2]) for name in found if name.count("/") > 1}
        return {name: etag for name, etag in found.items() if name not in runs or runs[name] in whole}

    def answers(self) -> object:
        """The answers of another computer that fetches and loads the night."""
        there = self.data.with_name("asker")
        shutil.rmtree(there, ignore_errors=True)
        fetch_night(_store(), there, NIGHT)
        rebuild(there)
        return answers(there)


class Fetch(Case):
    """A fetch of a night whose run, plan, costs and judgement came since it was fetched before."""

    def make(self) -> None:
        elsewhere = Upload(self.data.with_name("elsewhere"))
        elsewhere.make()
        fetch_night(_store(), self.data, NIGHT)
        _upload(elsewhere.data)

    def work(self, data: Path) -> None:
        fetch_night(_store(), data, NIGHT)

    def come(self, at: int) -> None:
        """Who completes what is coming into place, as each load does; each tenth time a load."""
        journal.complete(self.data / "runs" / NIGHT)
        if at % 10 == 0:
            load_night(self.data, NIGHT)

    def content(self) -> Content:
        hashes = store.file_hashes(self.data / "runs" / NIGHT)
        return {name: digest for name, digest in hashes.items() if name != ".swap.lock"}

    def answers(self) -> object:
        load_night(self.data, NIGHT)
        return answers(self.data)


CASES: dict[str, type[Case]] = {"load": Load, "rebuild": Rebuild, "upload": Upload, "fetch": Fetch}


def answers(data: Path) -> object:
    """The rows of the twelve questions and of what the judge and the audit say, as text."""
    questions = [path.read_text() for path in sorted(QUERIES.glob("*.sql"))]
    questions += [
        "SELECT night, scenario, repeat, verdict FROM measurements",
        "SELECT run_id, code, status FROM findings",
    ]
    return [sorted(str(row) for row in ask(data, question).rows) for question in questions]


def _place() -> BucketLocation:
    return BucketLocation(BUCKET, os.environ["NIGHTBENCH_S3_ENDPOINT"], "ours")


def _store() -> ObjectStore:
    return ObjectStore(_place())


def _upload(data: Path) -> None:
    assert upload_runs(partial(ObjectStore, _place()), _place(), data, NIGHT, 60.0) == []


def _lake() -> LakeBucket:
    location = lake_location()
    assert location is not None
    return lake_bucket(location)


def _client() -> Any:
    return boto3.client("s3", endpoint_url=os.environ["NIGHTBENCH_S3_ENDPOINT"], region_name="us-east-1")


def _objects() -> dict[str, str]:
    prefix = f"ours/runs/{NIGHT}/"
    return {key.removeprefix(prefix): etag for key, etag in _listed(_client()).items() if key.startswith(prefix)}


def _listed(client: Any) -> dict[str, str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    return {one["Key"]: one["ETag"] for page in pages for one in page.get("Contents", [])}


class Kills:
    """One case, killed again and again, each time from the same state of its folders and of the bucket."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self._ready, self._client = name, folder / "ready", _client()
        self.case = CASES[name](folder / "work" / "data")
        self._here = folder / "work"
        self._here.mkdir(parents=True)
        assert ended(forked(self.case.make)) == 0
        shutil.copytree(self._here, self._ready)
        self._etags = _listed(self._client)
        self._objects = {key: self._get(key) for key in self._etags}
        self.before = self.case.content()
        began = os.times()
        assert ended(forked(self.case.work, self.case.data)) == 0
        done = os.times()
        self.cpu_s = done.children_user - began.children_user + done.children_system - began.children_system
        self.after = self.case.content()
        assert self.after != self.before
        self._answers = self._asked()
        self.left: Counter[str] = Counter()

    def _get(self, key: str) -> tuple[bytes, dict[str, str]]:
        found = self._client.get_object(Bucket=BUCKET, Key=key)
        return found["Body"].read(), found["Metadata"]

    def again(self) -> None:
        """Go back to the state before the work."""
        shutil.rmtree(self._here)
        shutil.copytree(self._ready, self._here)
        now = _listed(self._client)
        for key in now.keys() - self._etags.keys():
            self._client.delete_object(Bucket=BUCKET, Key=key)
        for key, etag in self._etags.items():
            if now.get(key) != etag:
                content, metadata = self._objects[key]
                self._client.put_object(Bucket=BUCKET, Key=key, Body=content, Metadata=metadata)

    @property
    def killed(self) -> int:
        """How many kills there were."""
        return sum(self.left.values()) - self.left["not killed"]

    def look(self, code: int, moment: str) -> None:
        """Let somebody come, who must find a whole state; then finish the work, which must give the state after it."""
        at = sum(self.left.values())
        assert ended(forked(self.case.come, at)) == 0, f"{self.name} killed {moment}: the next comer failed"
        state = self._state(self.case.content(), moment)
        assert ended(forked(self.case.finish)) == 0, f"{self.name} killed {moment} could not be repeated"
        assert self.case.content() == self.after, f"{self.name} killed {moment}: its repetition gave something else"
        if at % EVERY_QUESTION == 0:
            assert self._asked() == self._answers, f"{self.name} killed {moment}: the questions have other answers"
        self.left["not killed" if code == 0 else state] += 1

    def _state(self, found: Content, moment: str) -> str:
        if found == self.before:
            return "before"
        if found == self.after:
            return "after"
        known = {*self.before.items(), *self.after.items()}
        is_between = "between" in self.case.states and set(found.items()) <= known
        assert is_between, f"{self.name} killed {moment} left a mixture"
        return "between"

    def _asked(self) -> object:
        """The answers, asked in a child: DuckDB starts threads."""
        file = self._here / "answers.json"
        assert ended(forked(lambda: file.write_text(json.dumps(self.case.answers())))) == 0
        return json.loads(file.read_text())


def main(folder: Path, name: str, steps: int, randoms: int) -> None:
    """Print how many kills left which state; fails for a mixture, and where something is lost or answered otherwise."""
    for module in IMPORTED_BY_A_LOAD:
        import_module(module)
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.emulators.s3", BUCKET], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    os.environ.update(KEYS | {"NIGHTBENCH_S3_ENDPOINT": server.stdout.readline().strip()})
    if name in {"load", "rebuild"}:
        os.environ["NIGHTBENCH_LAKE"] = f"s3://{BUCKET}/lake"
    _store()  # each child inherits what a first client parses, which takes it longer than an upload
    gc.freeze()
    try:
        _kill(Kills(folder, name), steps, randoms)
    finally:
        gc.unfreeze()
        server.terminate()
        server.wait()


def _kill(kills: Kills, steps: int, randoms: int) -> None:
    data = kills.case.data
    change, code = 0, -1
    while code and steps:
        kills.again()
        code = killed_before(change, data.parent, kills.case.work, data)
        kills.look(code, f"before change {change}")
        change += steps
    by_steps = kills.killed
    moments = random.Random(SEED)
    while kills.killed < by_steps + randoms:  # what ends before its moment was not killed
        kills.again()
        moment = moments.uniform(0.0, kills.cpu_s)
        kills.look(killed_after(moment, kills.case.work, data), f"after {moment:.4f} s")
        if kills.killed % PROGRESS == 0:
            sys.stdout.write(f"{kills.name} in a bucket: {kills.killed} kills, {dict(kills.left)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{kills.name} in a bucket: {kills.killed} kills, {dict(kills.left)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
