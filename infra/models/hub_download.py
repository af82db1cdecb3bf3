"""Bring a model from a hub: listed, fetched by a process that may be killed, compared with the hub's own hashes.

A download is killed and tried again where no new byte reaches the disk. Files that are finished are kept, also when
everything died half-way: the next call fetches only what is missing.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from bench.errors import ModelError, NoSpaceError
from infra.models.bucket_transfer import fetch_kept
from infra.models.parts import CachedModel, FetchResult
from infra.models.transfer_process import Hub, HubFailure, Job, run_child
from infra.processes import cancellation
from infra.reporting import Say
from infra.storage.store import sha256

HASHERS = 8  # files hashed at a time; hashing frees the interpreter, and a disk array gives more than one core can hash
SPACE_MARGIN = 1.05
TELL_S = 10.0  # between two lines of progress
PLAIN_HTTP_LIMIT = 50 * 1000**3  # a larger file comes by xet or not at all
# What an engine never reads where a model also has safetensors; some repositories carry their weights three times.
OTHER_WEIGHTS = (".bin", ".pth", ".pt", ".h5", ".msgpack", ".onnx", ".gguf", ".ot")
LOOK_S = 30.0  # to wait for a list that is in a bucket too
PERMANENT = ("gated", "bad-token", "no-repo", "no-revision", "disk-full")


@dataclass(frozen=True)
class HubFile:
    """One file as the hub lists it: `sha256` for large files, for the others git's hash of the content."""

    name: str
    size: int
    git_sha1: str
    sha256: str | None


@dataclass(frozen=True)
class Listing:
    """Every file of one commit."""

    sha: str
    files: tuple[HubFile, ...]


def look(repo: str, revision: str, aside: Path, hub: Hub) -> Listing:
    """What the hub has under this name now; ModelError where it has none or cannot be asked."""
    source = f"hf:{repo}@{revision}"
    job = {"verb": "look", "repo": repo, "revision": revision}
    last = HubFailure("other", "never tried")
    for _try in range(hub.tries):
        try:
            return _listing(run_child(job, aside, hub, _no_bytes), source)
        except HubFailure as failure:
            last = failure
            if failure.kind in PERMANENT:
                break
    raise _plain(last, source, repo, aside, hub)


def _no_bytes() -> int:
    return 0


def _listing(answer: Job, source: str) -> Listing:
    try:
        files = tuple(HubFile(**{**entry, "size": int(entry["size"])}) for entry in answer["files"])
        listing = Listing(str(answer["sha"]), files)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{source}: the hub's list of files cannot be read ({error!r}); try again") from error
    for file in files:
        name = PurePosixPath(file.name)
        if name.is_absolute() or ".." in name.parts:
            raise ModelError(f"{source} lists a file called {file.name!r}, which would leave its folder; refused")
    return listing


def chosen(files: Sequence[HubFile]) -> tuple[HubFile, ...]:
    """The files that an engine needs, small ones first: no second copy of the weights in another format."""
    names = {file.name for file in files}
    has_safetensors = any(name.endswith(".safetensors") and "/" not in name for name in names)
    is_sharded = any(name.startswith("model") and name.endswith(".safetensors") for name in names)

    def is_needed(name: str) -> bool:
        if name.startswith((".git", "original/", "onnx/")):
            return False
        if has_safetensors and name.endswith(OTHER_WEIGHTS):
            return False
        return not (is_sharded and name.startswith("consolidated"))

    return tuple(sorted((file for file in files if is_needed(file.name)), key=lambda file: (file.size, file.name)))


@dataclass(frozen=True)
class DownloadedModel:
    """A model that is there and verified: the sha256 of each file, and which way they came."""

    hashes: dict[str, str]
    came: FetchResult


@dataclass(frozen=True)
class Download:
    """One model on its way: `folder` gets its files, `aside` what is only needed until they are there.

    `kept` is the same model in a bucket, which is asked first: whatever it does not give comes from the hub.
    """

    repo: str
    sha: str
    folder: Path
    aside: Path
    hub: Hub
    say: Say
    kept: CachedModel | None = None

    @property
    def source(self) -> str:
        """How a suite names this model."""
        return f"hf:{self.repo}@{self.sha}"

    def run(self) -> DownloadedModel:
        """Fetch what is missing, verify everything, and return the sha256 of each file by name.

        Raises ModelError with the reason in plain words, NoSpaceError where the disk cannot hold it. What arrived
        whole stays for the next call.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.aside.mkdir(parents=True, exist_ok=True)
        files = chosen(self._look().files)
        self._sweep()
        self._demand_space(files)
        came = self._ask_bucket(files)
        self._fetch(files)
        hashes, wrong = self._verify(files)
        if wrong:
            came = _without(came, wrong)
            self._fetch_again(wrong)
            hashes, wrong = self._verify(files)
        if wrong:
            raise ModelError(f"{self.source}: {wrong[0][1]}, twice; the hub serves a damaged file, choose another sha")
        self._sweep()
        shutil.rmtree(self.aside, ignore_errors=True)
        return DownloadedModel(hashes, came)

    def _look(self) -> Listing:
        """The hub's list; where it cannot be had, that of the bucket, whose files had the hub's hashes once."""
        if self.kept is None:
            return look(self.repo, self.sha, self.aside, self.hub)
        try:
            hurried = replace(self.hub, tries=1, stall_s=min(self.hub.stall_s, LOOK_S))
            return look(self.repo, self.sha, self.aside, hurried)
        except ModelError as error:
            self.say(f"{error}; the bucket's own list is used")
        return Listing(self.sha, tuple(HubFile(one.name, one.size, "", one.sha256) for one in self.kept.files))

    def _ask_bucket(self, files: Sequence[HubFile]) -> FetchResult:
        if self.kept is None:
            return FetchResult()
        wanted = {file.name: (file.size, file.sha256) for file in self._missing(files)}
        came = fetch_kept(self.kept, wanted, self.folder, self.aside, self.hub)
        self.say(f"{self.source}: the bucket gave {len(came.given)} of {len(wanted)} files")
        if came.why:
            self.say(f"{self.source}: what the bucket does not give comes from the hub: {came.why}")
        return came

    def _sweep(self) -> None:
        """Remove what a killed process left: nobody can continue an `.incomplete` file."""
        shutil.rmtree(self.folder / ".cache", ignore_errors=True)
        shutil.rmtree(self.aside / "xet", ignore_errors=True)

    def _missing(self, files: Sequence[HubFile]) -> list[HubFile]:
        return [file for file in files if _size(self.folder / file.name) != file.size]

    def _demand_space(self, files: Sequence[HubFile]) -> None:
        needed = int(sum(file.size for file in self._missing(files)) * SPACE_MARGIN)
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise NoSpaceError(
                f"{self.source} needs {needed / 1e9:.1f} GB free in {self.folder}, which has {free / 1e9:.1f} GB; "
                "make room there, or keep models on a larger disk"
            )

    def _fetch(self, files: Sequence[HubFile]) -> None:
        """Try until nothing is missing; `tries` in a row that finish no file end it, the last of them without xet."""
        idle = 0
        while missing := self._missing(files):
            without_xet = idle == self.hub.tries - 1 and max(file.size for file in missing) <= PLAIN_HTTP_LIMIT
            try:
                self._try(files, missing, without_xet=without_xet)
            except HubFailure as failure:
                self._sweep()
                idle = idle + 1 if len(self._missing(files)) == len(missing) else 0
                if failure.kind in PERMANENT or idle >= self.hub.tries:
                    raise _plain(failure, self.source, self.repo, self.aside, self.hub) from failure
                self.say(f"{self.source}: {failure}; try again")

    def _try(self, files: Sequence[HubFile], missing: Sequence[HubFile], *, without_xet: bool) -> None:
        total = sum(file.size for file in files)
        self.say(
            f"downloading {self.source}: {len(missing)} of {len(files)} files, "
            f"{sum(file.size for file in missing) / 1e9:.2f} of {total / 1e9:.2f} GB"
            f"{', without xet' if without_xet else ''}"
        )
        job: Job = {"verb": "fetch", "repo": self.repo, "revision": self.sha, "folder": str(self.folder)}
        progress = _Progress(self, total)
        environment = {"HF_HUB_DISABLE_XET": "1"} if without_xet else {}
        run_child({**job, "names": [file.name for file in missing]}, self.aside, self.hub, progress.seen, environment)
        progress.tell()

    def _verify(self, files: Sequence[HubFile]) -> tuple[dict[str, str], list[tuple[HubFile, str]]]:
        """The sha256 of every file, and those whose content is not what the hub says, each with the reason."""
        self.say(f"verifying {len(files)} files of {self.source}")
        hashes = hash_files(self.folder, [file.name for file in files])
        wrong = []
        for file in files:
            found = hashes[file.name] if file.sha256 else _git_sha1(self.folder / file.name)
            expected = file.sha256 or file.git_sha1
            if found != expected:
                wrong.append((file, f"{file.name} has the hash {found}, the hub says {expected}"))
        return hashes, wrong

    def _fetch_again(self, wrong: Sequence[tuple[HubFile, str]]) -> None:
        for file, reason in wrong:
            self.say(f"{self.source}: {reason}; it is fetched once more")
            (self.folder / file.name).unlink()
        self._sweep()
        self._fetch([file for file, _reason in wrong])


class _Progress:
    """Counts a download's bytes on disk, and tells them now and then."""

    def __init__(self, download: Download, total: int) -> None:
        self._download = download
        self._total = total
        self._began = self._told = time.monotonic()
        self._start = self._now = bytes_under(download.folder)

    def seen(self) -> int:
        """The bytes that came so far, wherever they are put together."""
        self._now = bytes_under(self._download.folder)
        if time.monotonic() - self._told >= TELL_S:
            self.tell()
        return self._now + bytes_under(self._download.aside / "xet")

    def tell(self) -> None:
        """One line: bytes of bytes, and the rate since the try began."""
        self._told = time.monotonic()
        self._now = bytes_under(self._download.folder)
        rate = (self._now - self._start) / max(self._told - self._began, 1e-9)
        self._download.say(
            f"{self._download.source}: {min(self._now, self._total) / 1e9:.2f} of {self._total / 1e9:.2f} GB, "
            f"{rate / 1e6:.0f} MB/s"
        )


def _without(came: FetchResult, wrong: Sequence[tuple[HubFile, str]]) -> FetchResult:
    """What a bucket gave, less the files that are not the hub's."""
    bad = {file.name: reason for file, reason in wrong if file.name in came.given}
    if not bad:
        return came
    given = tuple(name for name in came.given if name not in bad)
    return FetchResult(given, (*came.damaged, *bad), came.why or f"the bucket's {next(iter(bad.values()))}")


def bytes_under(folder: Path) -> int:
    """The bytes of every file below a folder; files that go away meanwhile count as gone."""
    return sum(_size(Path(where) / name) or 0 for where, _folders, names in os.walk(folder) for name in names)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def hash_files(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """The sha256 of each named file, several at a time."""
    with ThreadPoolExecutor(HASHERS) as pool:
        hashes = {}
        try:
            for name, digest in zip(names, pool.map(lambda name: sha256(folder / name), names), strict=True):
                cancellation.check()
                hashes[name] = digest
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return hashes


def _git_sha1(path: Path) -> str:
    """The hash git gives a file's content, which the hub lists for what is small enough to be in git."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\x00" % len(content) + content, usedforsecurity=False).hexdigest()


def _plain(failure: HubFailure, source: str, repo: str, aside: Path, hub: Hub) -> ModelError | NoSpaceError:
    """A failure of the hub as a sentence for a person."""
    sentences = {
        "gated": f"{source} is gated: accept its terms on its page with the account of your token, and set HF_TOKEN",
        "bad-token": f"the model hub does not accept HF_TOKEN, asked for {source}: make a new token with read access",
        "no-repo": f"the model hub knows no model {repo}, or hides it from this token: check the name and HF_TOKEN",
        "throttled": f"the model hub asks us to wait, and goes on asking ({source}): try later, or set HF_TOKEN",
        "stalled": f"the download of {source} stood still for {hub.stall_s:g} s, {hub.tries} times: try later",
    }
    if failure.kind == "disk-full":
        return NoSpaceError(f"the disk filled up while {source} was downloaded to {aside.parent}; make room there")
    if failure.kind == "no-revision":
        now = look(repo, "main", aside, hub).sha
        return ModelError(f"{repo} has no commit {source.partition('@')[2]}; its newest is hf:{repo}@{now}")
    told = sentences.get(failure.kind, f"{source} could not be downloaded: try later")
    return ModelError(f"{told} ({failure.said})")
