"""A bucket's copy of one model at one commit: parts of its files, and a manifest, written last and deleted first.

models/<org>--<name>/<commit>/manifest.json          every file with its size and its hash
models/<org>--<name>/<commit>/files/<file>/00000     its first part

A commit without a manifest is not used. Every method raises ObjectStoreError if the bucket fails.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from bench.errors import ObjectStoreError
from bench.frozen import Frozen
from infra.models.parts import PART_BYTES, CachedFile, CachedModel, Part, cut
from infra.storage.object_store import ObjectStore

ROOT, MANIFEST = "models", "manifest.json"
URL_LIFE_S = 2 * 3600.0  # of a presigned URL; the largest models transfer within one hour
KEPT_COMMITS = 2  # of one model, the newest; the former one stays for a while when a suite changes its commit
UNFINISHED_MAX = timedelta(days=7)  # an upload that stopped so long ago is deleted


class _ManifestFile(Frozen):
    name: str
    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")

    @field_validator("name")
    @classmethod
    def _is_inside(cls, name: str) -> str:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not name:
            msg = "a file's name must be a relative path without `..`"
            raise ValueError(msg)
        return name


class Manifest(Frozen):
    """The files of a model in a bucket; written last, so that every part of them is there."""

    version: Literal[1] = 1
    source: str
    piece_bytes: int = Field(ge=1)  # of each part but a file's last
    files: tuple[_ManifestFile, ...] = Field(strict=False)


class BucketCache:
    """One model at one commit in a bucket; `source` is hf:org/name@<commit>."""

    def __init__(self, bucket: ObjectStore, source: str, part_bytes: int = PART_BYTES) -> None:
        repo, _, commit = source.removeprefix("hf:").partition("@")
        self._bucket = bucket
        self._source = source
        self._part_bytes = part_bytes
        self._model = f"{ROOT}/{repo.replace('/', '--')}"
        self._folder = f"{self._model}/{commit}"

    def find(self) -> CachedModel | None:
        """The whole model, with a URL for each part; None if it is missing, or its manifest is not valid."""
        manifest = self._manifest()
        if manifest is None:
            return None
        files = tuple(CachedFile(one.name, one.size, one.sha256) for one in manifest.files)
        return CachedModel(files, tuple(self._parts(files, manifest.piece_bytes, "get_object")))

    def has(self, files: Sequence[CachedFile]) -> bool:
        """Whether the bucket's manifest lists exactly these files."""
        manifest = self._manifest()
        return manifest is not None and {CachedFile(one.name, one.size, one.sha256) for one in manifest.files} == set(
            files
        )

    def _manifest(self) -> Manifest | None:
        text = self._bucket.read(f"{self._folder}/{MANIFEST}")
        try:
            found = None if text is None else Manifest.model_validate_json(text)
        except ValidationError:
            return None  # the next upload replaces it
        return found if found is not None and found.source == self._source else None

    def start_upload(self, files: Sequence[CachedFile], damaged: Sequence[str] = ()) -> tuple[Part, ...]:
        """The parts to upload for these files, with their URLs: missing parts, and every part of a damaged file.

        It deletes the manifest, so the model is not used until `finish`.
        """
        self._bucket.remove([f"{self._folder}/{MANIFEST}"])
        sizes = self._bucket.names(self._folder)
        wanted = self._parts(files, self._part_bytes, "put_object")
        return tuple(one for one in wanted if one.file in damaged or sizes.get(self._name(one)) != one.size)

    def finish(self, files: Sequence[CachedFile]) -> None:
        """Write the manifest, so that the model is used; ObjectStoreError if a part is missing."""
        sizes = self._bucket.names(self._folder)
        for one in self._parts(files, self._part_bytes, "put_object"):
            if sizes.get(self._name(one)) != one.size:
                raise ObjectStoreError(f"{self._source}: {one.file} is not complete in {self._bucket.place}")
        listed = tuple(_ManifestFile(name=one.name, size=one.size, sha256=one.sha256) for one in files)
        manifest = Manifest(source=self._source, piece_bytes=self._part_bytes, files=listed)
        self._bucket.write(f"{self._folder}/{MANIFEST}", manifest.model_dump_json(indent=1).encode())

    def sweep(self, now: datetime) -> list[str]:
        """Delete old commits of this model, and uploads that never finished; returns the deleted commits."""
        objects = self._bucket.dated(self._model)
        commits = sorted({name.partition("/")[0] for name in objects})
        done = {one: objects[f"{one}/{MANIFEST}"][1] for one in commits if f"{one}/{MANIFEST}" in objects}
        newest = {
            one: max(at for name, (_size, at) in objects.items() if name.startswith(f"{one}/")) for one in commits
        }
        own = self._folder.rpartition("/")[2]
        old = sorted((one for one in done if one != own), key=lambda one: done[one])[: -(KEPT_COMMITS - 1)]
        unfinished = [one for one in commits if one not in done and one != own and now - newest[one] > UNFINISHED_MAX]
        for commit in (*old, *unfinished):
            names = [name for name in objects if name.startswith(f"{commit}/")]
            names.sort(
                key=lambda name: not name.endswith(f"/{MANIFEST}")
            )  # the manifest first, so that no partial model is used
            self._bucket.remove([f"{self._model}/{name}" for name in names])
        return [*old, *unfinished]

    def _parts(
        self, files: Sequence[CachedFile], part_bytes: int, method: Literal["get_object", "put_object"]
    ) -> Iterator[Part]:
        for file in files:
            for at, (start, size) in enumerate(cut(file.size, part_bytes)):
                name = f"{self._folder}/{_part_name(file.name, at)}"
                yield Part(file.name, start, size, self._bucket.presign(method, name, URL_LIFE_S))

    def _name(self, part: Part) -> str:
        return _part_name(part.file, part.start // self._part_bytes)


def _part_name(file: str, at: int) -> str:
    return f"files/{file}/{at:05d}"


def cached_models(bucket: ObjectStore) -> dict[str, int]:
    """The bytes of each model in a bucket by org--name/<commit>, finished or not."""
    return {model: sum(size for size, _at in objects) for model, objects in dated_models(bucket).items()}


def dated_models(bucket: ObjectStore) -> dict[str, list[tuple[int, datetime]]]:
    """The bytes and the upload time of each object of each model in a bucket, by org--name/<commit>."""
    found: dict[str, list[tuple[int, datetime]]] = {}
    for name, one in bucket.dated(ROOT).items():
        found.setdefault("/".join(name.split("/")[:2]), []).append(one)
    return found


def remove_model(bucket: ObjectStore, model: str) -> None:
    """Delete one model, named as `cached_models` does; ObjectStoreError if some of it is still there."""
    folder = f"{ROOT}/{model}"
    names = sorted(bucket.names(folder), key=lambda name: name != MANIFEST)  # first, so that no partial model is used
    bucket.remove([f"{folder}/{name}" for name in names])
    left = len(bucket.names(folder))
    if left:
        raise ObjectStoreError(
            f"{folder}: {left} of {len(names)} objects are still in {bucket.place}: the keys may not delete"
        )
