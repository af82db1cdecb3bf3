"""Put a model's weights in place and prove that they are whole.

A model we generate goes the same way as one that is downloaded: put together in a temporary folder beside, listed with
hashes in `MANIFEST.sha256`, and renamed to its final name only when it is complete.
"""

import hashlib
import json
import re
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.errors import ModelError, NoSpaceError, UnreadableResultError
from bench.manifest import MANIFEST, manifest_text, parse_manifest
from infra.models.generated import SHAPES, LlamaShape, write_small_model
from infra.models.hub_download import Download, DownloadedModel, hash_files, look
from infra.models.parts import CachedFile, CachedModel, FetchResult
from infra.models.transfer_process import Hub
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say
from infra.storage.store import sync

GENERATED = re.compile(r"generated:(?P<shape>[a-z]+)\?seed=(?P<seed>\d+)")
FROM_HUB = re.compile(r"hf:(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
COMMIT = re.compile(r"[0-9a-f]{40}")
SPARE_BYTES = 256 * 1024**2  # left on the disk for logs and results

Hashes = dict[str, str]  # relative file name -> sha256


@dataclass(frozen=True)
class PreparedModel:
    """Weights on this host, verified."""

    name: str
    path: Path
    revision: str  # the hub's commit; else "seed-0-" or "path-" and 16 hex digits of the files' hash
    sha256: str  # over the manifest: one "hash  name" line a file, sorted by name
    bytes: int
    vocab_size: int
    weights_bytes: int
    came: FetchResult | None = field(default=None, compare=False)  # None: it was there


def prepare_model(
    source: str, models_dir: Path, say: Say, hub: Hub | None = None, kept: CachedModel | None = None
) -> PreparedModel:
    """Make or download the model of this source or find it there, and verify every byte; repeating it only verifies.

    Sources: "hf:org/name@<commit>", "generated:small?seed=0", "generated:tiny?seed=0", "path:/some/folder". A model
    that was whole and is corrupt now is refused, never repaired in silence: something damaged it, and somebody should
    know. `hub` says where downloads come from and how patient they are, `kept` which bucket has the model as well.
    """
    kind, _, rest = source.partition(":")
    if kind == "path" and rest:
        return _model_in_place(Path(rest).absolute())
    if generated := GENERATED.fullmatch(source):
        return _generated(source, generated["shape"], int(generated["seed"]), models_dir, say)
    if named := FROM_HUB.fullmatch(source):
        return _from_hub(named["repo"], named["revision"], models_dir, say, hub or Hub(), kept)
    raise ModelError(
        f"{source!r} is no model source; known are hf:org/name@<commit>, generated:small?seed=0 and path:/some/folder"
    )


def _model_in_place(path: Path) -> PreparedModel:
    """Somebody else's folder: verified where it has a manifest, hashed as it is where it has none."""
    if not (path / "config.json").is_file():
        raise ModelError(f"{path} is no model folder: it has no config.json")
    hashes = _verify(path) if (path / MANIFEST).exists() else _hash_files(path)
    return _prepared(path.name, path, f"path-{_hash_of(hashes)[:16]}", hashes)


def _generated(source: str, shape_name: str, seed: int, models_dir: Path, say: Say) -> PreparedModel:
    shape = SHAPES.get(shape_name)
    if shape is None:
        raise ModelError(f"{source} names no shape we generate; known are {', '.join(sorted(SHAPES))}")
    path = models_dir.absolute() / f"{shape_name}-seed-{seed}"
    models_dir.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(path.with_name(f".{path.name}.lock"), say, f"putting {path.name} there"):
        if not path.exists():
            say(f"writing the model {shape_name} to {path}")
            _make(path, shape, seed)
        hashes = _verify(path)
    return _prepared(shape_name, path, f"seed-{seed}-{_hash_of(hashes)[:16]}", hashes)


def _from_hub(
    repo: str, revision: str | None, models_dir: Path, say: Say, hub: Hub, kept: CachedModel | None
) -> PreparedModel:
    models_dir.mkdir(parents=True, exist_ok=True)
    if revision is None or not COMMIT.fullmatch(revision):
        aside = models_dir.absolute() / f".{repo.replace('/', '--')}.look"
        now = look(repo, revision or "main", aside, hub).sha
        shutil.rmtree(aside, ignore_errors=True)
        raise ModelError(
            f"hf:{repo}{'@' + revision if revision else ''} names no commit, so tomorrow it may be another model; "
            f"as it is now it is hf:{repo}@{now}"
        )
    path = models_dir.absolute() / f"{repo.replace('/', '--')}-{revision[:12]}"
    with exclusive_lock(path.with_name(f".{path.name}.lock"), say, f"putting {path.name} there"):
        if path.exists():
            return _prepared(repo, path, revision, _verify(path))
        found = _download(repo, revision, path, say, hub, kept)
    return replace(_prepared(repo, path, revision, found.hashes), came=found.came)


def _download(repo: str, sha: str, path: Path, say: Say, hub: Hub, kept: CachedModel | None) -> DownloadedModel:
    """Bring the model under its final name, whole or not at all; what a killed run had finished is used again."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    brought = Download(repo, sha, unfinished, path.with_name(f".{path.name}.download"), hub, say, kept).run()
    (unfinished / MANIFEST).write_text(manifest_text(brought.hashes), "utf-8")
    # The weights themselves are not forced to the disk, which would take a rented minute: a power cut that tears them
    # is found by their hashes.
    sync(unfinished / MANIFEST)
    unfinished.replace(path)
    sync(path.parent)
    return brought


def list_files(path: Path) -> tuple[CachedFile, ...]:
    """Every file of a model that is in place, with the hash it was verified by."""
    listed = sorted(_read_manifest(path).items())
    return tuple(CachedFile(name, (path / name).stat().st_size, digest) for name, digest in listed)


def _make(path: Path, shape: LlamaShape, seed: int) -> None:
    """Write the model under its final name, whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # what a killed run left
    _demand_free_space(path.parent, shape)
    write_small_model(unfinished, seed, shape)
    (unfinished / MANIFEST).write_text(manifest_text(_hash_files(unfinished)), "utf-8")
    for file in (*unfinished.iterdir(), unfinished):
        sync(file)
    unfinished.replace(path)
    sync(path.parent)


def _demand_free_space(folder: Path, shape: LlamaShape) -> None:
    needed = shape.weights_bytes + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NoSpaceError(
            f"the model needs {needed / 1e6:.0f} MB free in {folder}, which has {free / 1e6:.0f} MB; make room there"
        )


def _hash_files(path: Path) -> Hashes:
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != MANIFEST)
    return hash_files(path, [str(file.relative_to(path)) for file in files])


def _hash_of(hashes: Hashes) -> str:
    return hashlib.sha256(manifest_text(hashes).encode()).hexdigest()


def _verify(path: Path) -> Hashes:
    """Compare every listed file with its hash; files that are not listed are refused too: an engine might read them."""
    expected = _read_manifest(path)
    found = _hash_files(path)
    for name in sorted(expected | found):
        if expected.get(name) != found.get(name):
            raise ModelError(
                f"{path / name} is not the file that was put there: {MANIFEST} says "
                f"{expected.get(name, 'no such file')}, found {found.get(name, 'no file')}; "
                f"delete the folder {path} and run again"
            )
    return expected


def _read_manifest(path: Path) -> Hashes:
    try:
        return parse_manifest((path / MANIFEST).read_text("utf-8"))
    except FileNotFoundError as error:
        raise ModelError(
            f"{path / MANIFEST} is missing, so nothing proves the model; delete {path} and run again"
        ) from error
    except UnreadableResultError as error:
        raise ModelError(f"{path}: {error}; delete {path} and run again") from error


def _prepared(name: str, path: Path, revision: str, hashes: Hashes) -> PreparedModel:
    sizes = {file: (path / file).stat().st_size for file in hashes}
    return PreparedModel(
        name=name,
        path=path,
        revision=revision,
        sha256=_hash_of(hashes),
        bytes=sum(sizes.values()),
        vocab_size=_vocab_size(path),
        weights_bytes=sum(size for file, size in sizes.items() if file.endswith(".safetensors")),
    )


def _vocab_size(path: Path) -> int:
    try:
        config = json.loads((path / "config.json").read_text("utf-8"))
        return int(config.get("vocab_size") or config["text_config"]["vocab_size"])
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path / 'config.json'} does not say its vocab_size") from error
