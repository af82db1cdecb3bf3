"""Where a bucket keeps one model at one commit: pieces of its files, and a manifest, which comes last and goes first.

models/<org>--<name>/<commit>/manifest.json          every file with its size and its hash
models/<org>--<name>/<commit>/files/<file>/00000     its first piece

What has no manifest is not used, whatever else is there. Every method raises ObjectStoreError as the bucket does.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from bench.errors import ObjectStoreError
from bench.frozen import Frozen
from infra.models.parts import PIECE_BYTES, CachedFile, CachedModel, Part, cuts
from infra.storage.object_store import ObjectStore

ROOT, MANIFEST = "models", "manifest.json"
LENT_S = 2 * 3600.0  # an address is good for so long; the largest models arrive within one
KEPT_COMMITS = 2  # of one model, the newest; a suite that moves on leaves the last one for a while
UNFINISHED_MAX = timedelta(days=7)  # what nobody went on uploading for so long is removed


class _ManifestFile(Frozen):
    name: str
    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")

    @field_validator("name")
    @classmethod
    def _stays_inside(cls, name: str) -> str:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not name:
            msg = "a file's name must not lead out of its folder"
            raise ValueError(msg)
        return name


class Manifest(Frozen):
    """What a bucket has of a model: everything, since this is put there last."""

    version: Literal[1] = 1
    source: str
    piece_bytes: int = Field(ge=1)
    files: tuple[_ManifestFile, ...] = Field(strict=False)


class BucketCache:
    """One model at one commit in a bucket; `source` is hf:org/name@<commit>."""

    def __init__(self, bucket: ObjectStore, source: str, piece_bytes: int = PIECE_BYTES) -> None:
        repo, _, commit = source.removeprefix("hf:").partition("@")
        self._bucket = bucket
        self._source = source
        self._piece_bytes = piece_bytes
        self._model = f"{ROOT}/{repo.replace('/', '--')}"
        self._folder = f"{self._model}/{commit}"

    def find(self) -> CachedModel | None:
        """The whole model, with an address for each piece; None where there is none that can be read."""
        manifest = self._manifest()
        if manifest is None:
            return None
        files = tuple(CachedFile(one.name, one.size, one.sha256) for one in manifest.files)
        return CachedModel(files, tuple(self._pieces(files, manifest.piece_bytes, "get_object")))

    def has(self, files: Sequence[CachedFile]) -> bool:
        """Whether its manifest stands for exactly these files."""
        manifest = self._manifest()
        return manifest is not None and {CachedFile(one.name, one.size, one.sha256) for one in manifest.files} == set(
            files
        )

    def _manifest(self) -> Manifest | None:
        text = self._bucket.read(f"{self._folder}/{MANIFEST}")
        try:
            found = None if text is None else Manifest.model_validate_json(text)
        except ValidationError:
            return None  # it is written again
        return found if found is not None and found.source == self._source else None

    def lacking(self, files: Sequence[CachedFile], damaged: Sequence[str] = ()) -> tuple[Part, ...]:
        """What is to be put there for these files, with addresses: the pieces that are not there, and damaged files.

        From now on, and until `finish`, nobody uses what is there.
        """
        self._bucket.remove([f"{self._folder}/{MANIFEST}"])
        there = self._bucket.names(self._folder)
        wanted = self._pieces(files, self._piece_bytes, "put_object")
        return tuple(one for one in wanted if one.file in damaged or there.get(self._name(one)) != one.size)

    def finish(self, files: Sequence[CachedFile]) -> None:
        """Say that the whole model is there; ObjectStoreError where it is not."""
        there = self._bucket.names(self._folder)
        for one in self._pieces(files, self._piece_bytes, "put_object"):
            if there.get(self._name(one)) != one.size:
                raise ObjectStoreError(f"{self._source}: {self._bucket.place} has not all of {one.file}")
        listed = tuple(_ManifestFile(name=one.name, size=one.size, sha256=one.sha256) for one in files)
        manifest = Manifest(source=self._source, piece_bytes=self._piece_bytes, files=listed)
        self._bucket.write(f"{self._folder}/{MANIFEST}", manifest.model_dump_json(indent=1).encode())

    def sweep(self, now: datetime) -> list[str]:
        """Remove old commits of this model, and what of any was never finished; the commits that went."""
        there = self._bucket.dated(self._model)
        commits = sorted({name.partition("/")[0] for name in there})
        done = {one: there[f"{one}/{MANIFEST}"][1] for one in commits if f"{one}/{MANIFEST}" in there}
        newest = {one: max(at for name, (_size, at) in there.items() if name.startswith(f"{one}/")) for one in commits}
        own = self._folder.rpartition("/")[2]
        old = sorted((one for one in done if one != own), key=lambda one: done[one])[: -(KEPT_COMMITS - 1)]
        dead = [one for one in commits if one not in done and one != own and now - newest[one] > UNFINISHED_MAX]
        for commit in (*old, *dead):
            names = [name for name in there if name.startswith(f"{commit}/")]
            names.sort(key=lambda name: not name.endswith(f"/{MANIFEST}"))  # first what makes it usable
            self._bucket.remove([f"{self._model}/{name}" for name in names])
        return [*old, *dead]

    def _pieces(
        self, files: Sequence[CachedFile], piece_bytes: int, method: Literal["get_object", "put_object"]
    ) -> Iterator[Part]:
        for file in files:
            for at, (start, size) in enumerate(cuts(file.size, piece_bytes)):
                name = f"{self._folder}/{_piece_name(file.name, at)}"
                yield Part(file.name, start, size, self._bucket.presign(method, name, LENT_S))

    def _name(self, piece: Part) -> str:
        return _piece_name(piece.file, piece.start // self._piece_bytes)


def _piece_name(file: str, at: int) -> str:
    return f"files/{file}/{at:05d}"


def models_kept(bucket: ObjectStore) -> dict[str, int]:
    """The bytes that each model's commits take in a bucket: org--name/<commit>, finished or not."""
    found: dict[str, int] = {}
    for name, size in bucket.names(ROOT).items():
        commit = "/".join(name.split("/")[:2])
        found[commit] = found.get(commit, 0) + size
    return found
