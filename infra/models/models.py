"""Prepare a model's files on this host, and verify them.

A generated model and a downloaded one take the same steps: written to a temporary folder, listed with their hashes in
`MANIFEST.sha256`, and renamed to the final name once complete.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.errors import ModelError, NoSpaceError, UnreadableResultError
from bench.manifest import MANIFEST, manifest_text, parse_manifest
from bench.suite.workloads.adapters import generated_adapters
from infra.models.files import gguf_of, hash_files
from infra.models.generated import SHAPES, WEIGHTS, LlamaShape, write_small_model
from infra.models.generated_adapters import write_adapters
from infra.models.generated_vision import VISION_SHAPES, VisionShape, write_vision_model
from infra.models.gguf_model import FILE, gguf_vocab_size, write_gguf_model
from infra.models.hub_download import Download, DownloadedModel
from infra.models.hub_listing import read_listing
from infra.models.parts import CachedFile, CachedModel, FetchResult
from infra.models.transfer_process import Hub
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say
from nights.durable import move_into_place, rename, sync

GENERATED = re.compile(r"generated:(?P<shape>[a-z]+)\?seed=(?P<seed>\d+)(?P<gguf>&format=gguf)?(?:&adapters=\d+)?")
FROM_HUB = re.compile(r"hf:(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
COMMIT = re.compile(r"[0-9a-f]{40}")
SPARE_BYTES = 256 * 1024**2  # left on the disk for logs and results

Hashes = dict[str, str]  # relative file name -> sha256


@dataclass(frozen=True)
class PreparedModel:
    """A model on this host, verified."""

    name: str
    path: Path
    revision: str  # the hub's commit; else "seed-0-" or "path-" and 16 hex digits of the files' hash
    sha256: str  # over the manifest: one "hash  name" line a file, sorted by name
    bytes: int
    vocab_size: int
    weights_bytes: int
    fetched: FetchResult | None = field(default=None, compare=False)  # None: it was on disk already


def prepare_model(
    source: str, models_dir: Path, say: Say, hub: Hub | None = None, cached: CachedModel | None = None
) -> PreparedModel:
    """Generate, download or find the model of this source, and verify every byte; a repeated call only verifies.

    Sources: "hf:org/name@<commit>", "generated:small?seed=0" (and "&format=gguf"), "generated:vision?seed=0" (which
    reads images), "path:/some/folder". A model that was whole and is corrupt now is an error, never repaired in
    silence: the cause of the damage may return.
    `hub`: where to download from, and when to give up; `cached`: the model in a bucket, which is tried before the hub.
    """
    kind, _, rest = source.partition(":")
    if kind == "path" and rest:
        return _model_in_place(Path(rest).absolute())
    if generated := GENERATED.fullmatch(source):
        wanted = Generated(generated["shape"], int(generated["seed"]), generated["gguf"] is not None, source)
        return _generated(wanted, models_dir, say)
    if named := FROM_HUB.fullmatch(source):
        return _from_hub(named["repo"], named["revision"], models_dir, say, hub or Hub(), cached)
    raise ModelError(
        f"unknown model source {source!r}: use hf:org/name@<commit>, generated:small?seed=0 or path:/some/folder"
    )


def _model_in_place(path: Path) -> PreparedModel:
    """The user's own folder: verified if it has a manifest, else hashed as it is."""
    if not (path / "config.json").is_file() and not any(path.glob("*.gguf")):
        raise ModelError(f"{path} has no config.json and no GGUF file, so it is not a model's folder")
    hashes = _verify(path) if (path / MANIFEST).exists() else _hash_files(path)
    return _prepared(path.name, path, f"path-{_hash_of(hashes)[:16]}", hashes)


@dataclass(frozen=True)
class Generated:
    """A model that its source asks to generate."""

    shape: str
    seed: int
    is_gguf: bool
    source: str

    @property
    def folder(self) -> str:
        """The name of its folder."""
        adapters = generated_adapters(self.source)
        more = f"{'-gguf' if self.is_gguf else ''}{f'-adapters-{adapters}' if adapters else ''}"
        return f"{self.shape}-seed-{self.seed}{more}"


def _generated(wanted: Generated, models_dir: Path, say: Say) -> PreparedModel:
    shapes: Mapping[str, LlamaShape | VisionShape] = SHAPES if wanted.is_gguf else {**SHAPES, **VISION_SHAPES}
    shape = shapes.get(wanted.shape)
    if shape is None:
        raise ModelError(f"unknown shape in {wanted.source}: use one of {', '.join(sorted(shapes))}")
    path = models_dir.absolute() / wanted.folder
    models_dir.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(path.with_name(f".{path.name}.lock"), say, f"preparing {path.name}"):
        if not path.exists():
            say(f"writing the model {wanted.shape} to {path}")
            _make(path, shape, wanted)
        hashes = _verify(path)
    return _prepared(wanted.shape, path, f"seed-{wanted.seed}-{_hash_of(hashes)[:16]}", hashes)


def _from_hub(
    repo: str, revision: str | None, models_dir: Path, say: Say, hub: Hub, cached: CachedModel | None
) -> PreparedModel:
    models_dir.mkdir(parents=True, exist_ok=True)
    if revision is None or not COMMIT.fullmatch(revision):
        aside = models_dir.absolute() / f".{repo.replace('/', '--')}.look"
        newest = read_listing(repo, revision or "main", aside, hub).sha
        shutil.rmtree(aside, ignore_errors=True)
        raise ModelError(
            f"hf:{repo}{'@' + revision if revision else ''} names no commit, so its files may change; "
            f"its newest commit is hf:{repo}@{newest}"
        )
    path = models_dir.absolute() / f"{repo.replace('/', '--')}-{revision[:12]}"
    with exclusive_lock(path.with_name(f".{path.name}.lock"), say, f"preparing {path.name}"):
        if path.exists():
            return _prepared(repo, path, revision, _verify(path))
        found = _download(repo, revision, path, say, hub, cached)
    return replace(_prepared(repo, path, revision, found.hashes), fetched=found.fetched)


def _download(repo: str, sha: str, path: Path, say: Say, hub: Hub, cached: CachedModel | None) -> DownloadedModel:
    """Download the model to its final name, whole or not at all; files that a killed run completed are used again."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    downloaded = Download(repo, sha, unfinished, path.with_name(f".{path.name}.download"), hub, say, cached).run()
    (unfinished / MANIFEST).write_text(manifest_text(downloaded.hashes), "utf-8")
    # The weights are not synced, which would take a minute of a rented machine: the hashes show what a power cut tore.
    sync(unfinished / MANIFEST)
    rename(unfinished, path)
    return downloaded


def list_files(path: Path) -> tuple[CachedFile, ...]:
    """Every file of a prepared model with its size and the SHA-256 in its manifest."""
    listed = sorted(_read_manifest(path).items())
    return tuple(CachedFile(name, (path / name).stat().st_size, digest) for name, digest in listed)


def _make(path: Path, shape: LlamaShape | VisionShape, wanted: Generated) -> None:
    """Write the model under its final name, whole or not at all."""
    seed = wanted.seed
    unfinished = path.with_name(f".{path.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # of a killed run
    _require_free_space(path.parent, shape)
    if isinstance(shape, VisionShape):
        write_vision_model(unfinished, seed, shape)
    else:
        write_small_model(unfinished, seed, shape)
        write_adapters(unfinished, seed, shape, generated_adapters(wanted.source))
        if wanted.is_gguf:  # beside the configuration and the tokenizer, in place of the weights
            (unfinished / WEIGHTS).unlink()
            write_gguf_model(unfinished / FILE, seed, shape)
    (unfinished / MANIFEST).write_text(manifest_text(_hash_files(unfinished)), "utf-8")
    move_into_place(unfinished, path)


def _require_free_space(folder: Path, shape: LlamaShape | VisionShape) -> None:
    needed = shape.weights_bytes + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NoSpaceError(
            f"the model needs {needed / 1e6:.0f} MB in {folder}, which has {free / 1e6:.0f} MB free; make room there"
        )


def _hash_files(path: Path) -> Hashes:
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != MANIFEST)
    return hash_files(path, [str(file.relative_to(path)) for file in files])


def _hash_of(hashes: Hashes) -> str:
    return hashlib.sha256(manifest_text(hashes).encode()).hexdigest()


def _verify(path: Path) -> Hashes:
    """Compare every file with its hash; a file that is not listed is an error too, since an engine might read it."""
    expected = _read_manifest(path)
    found = _hash_files(path)
    for name in sorted(expected | found):
        if expected.get(name) != found.get(name):
            raise ModelError(
                f"{path / name}: SHA-256 mismatch: {MANIFEST} lists {expected.get(name, 'no such file')}, "
                f"found {found.get(name, 'no file')}; "
                f"delete the folder {path} and run again"
            )
    return expected


def _read_manifest(path: Path) -> Hashes:
    try:
        return parse_manifest((path / MANIFEST).read_text("utf-8"))
    except FileNotFoundError as error:
        raise ModelError(
            f"{path / MANIFEST} is missing, so the model cannot be verified; delete {path} and run again"
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
        weights_bytes=sum(size for file, size in sizes.items() if file.endswith((".safetensors", ".gguf"))),
    )


def _vocab_size(path: Path) -> int:
    if not (path / "config.json").exists() and any(path.glob("*.gguf")):
        try:
            return gguf_vocab_size(gguf_of(path))
        except (ValueError, KeyError, OSError) as error:
            raise ModelError(f"{gguf_of(path)} is not a GGUF file with a tokenizer: {error}") from error
    try:
        config = json.loads((path / "config.json").read_text("utf-8"))
        return int(config.get("vocab_size") or config["text_config"]["vocab_size"])
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path / 'config.json'} has no vocab_size") from error
