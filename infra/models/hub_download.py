"""Download a model from a hub: in a process that can be killed, then compared with the hub's own hashes.

A download that receives almost nothing is killed and tried again. Whole files stay on disk, also after a crash: the
next call downloads only what is missing.
"""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.errors import ModelError, NoSpaceError
from infra.models.bucket_transfer import download_cached
from infra.models.child_protocol import TransferFailure
from infra.models.files import bytes_under, git_sha1, hash_files, size_of
from infra.models.hub_listing import PERMANENT, HubFile, Listing, explain_failure, needed_files, read_listing
from infra.models.parts import CachedModel, FetchResult
from infra.models.transfer_process import Hub, Transfer, run_child
from infra.reporting import Say

SPACE_MARGIN = 1.05
PROGRESS_EVERY_S = 10.0
PLAIN_HTTP_LIMIT = 50 * 1000**3  # a larger file is downloaded by xet or not at all
LISTING_STALL_S = 30.0  # if the bucket has a list as well


@dataclass(frozen=True)
class DownloadedModel:
    """A model on disk, verified: the SHA-256 of each file, and where the files came from."""

    hashes: dict[str, str]
    fetched: FetchResult


@dataclass(frozen=True)
class Download:
    """The download of one model: `folder` gets its files, `aside` holds temporary ones.

    `cached` is the same model in a bucket, which is tried first; the hub gives what the bucket does not.
    """

    repo: str
    sha: str
    folder: Path
    aside: Path
    hub: Hub
    say: Say
    cached: CachedModel | None = None

    @property
    def source(self) -> str:
        """How a suite names this model."""
        return f"hf:{self.repo}@{self.sha}"

    def run(self) -> DownloadedModel:
        """Download what is missing, verify everything, and return the SHA-256 of each file by name.

        Raises ModelError, or NoSpaceError if the disk cannot hold it. Whole files stay for the next call.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.aside.mkdir(parents=True, exist_ok=True)
        files = needed_files(self._read_listing().files)
        self._remove_partial()
        self._require_space(files)
        fetched = self._from_bucket(files)
        self._from_hub(files)
        hashes, wrong = self._verify(files)
        if wrong:
            fetched = _without(fetched, wrong)
            self._download_again(wrong)
            hashes, wrong = self._verify(files)
        if wrong:
            raise ModelError(f"{self.source}: {wrong[0][1]}, twice; the hub serves a damaged file, choose another sha")
        self._remove_partial()
        shutil.rmtree(self.aside, ignore_errors=True)
        return DownloadedModel(hashes, fetched)

    def _read_listing(self) -> Listing:
        """The hub's list; if the hub fails, the bucket's list, whose files had the hub's hashes when uploaded."""
        if self.cached is None:
            return read_listing(self.repo, self.sha, self.aside, self.hub)
        try:
            impatient = replace(self.hub, tries=1, stall_s=min(self.hub.stall_s, LISTING_STALL_S))
            return read_listing(self.repo, self.sha, self.aside, impatient)
        except ModelError as error:
            self.say(f"{error}; using the bucket's own list")
        return Listing(self.sha, tuple(HubFile(one.name, one.size, "", one.sha256) for one in self.cached.files))

    def _from_bucket(self, files: Sequence[HubFile]) -> FetchResult:
        if self.cached is None:
            return FetchResult()
        wanted = {file.name: (file.size, file.sha256) for file in self._missing(files)}
        fetched = download_cached(self.cached, wanted, self.folder, self.aside, self.hub)
        self.say(f"{self.source}: downloaded {len(fetched.given)} of {len(wanted)} files from the bucket")
        if fetched.why:
            self.say(f"{self.source}: the hub gives what the bucket did not: {fetched.why}")
        return fetched

    def _remove_partial(self) -> None:
        """Delete what a killed process left: an `.incomplete` file cannot be continued."""
        shutil.rmtree(self.folder / ".cache", ignore_errors=True)
        shutil.rmtree(self.aside / "xet", ignore_errors=True)

    def _missing(self, files: Sequence[HubFile]) -> list[HubFile]:
        return [file for file in files if size_of(self.folder / file.name) != file.size]

    def _require_space(self, files: Sequence[HubFile]) -> None:
        needed = int(sum(file.size for file in self._missing(files)) * SPACE_MARGIN)
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise NoSpaceError(
                f"{self.source} needs {needed / 1e9:.1f} GB free in {self.folder}, which has {free / 1e9:.1f} GB; "
                "free some space there, or keep models on a larger disk"
            )

    def _from_hub(self, files: Sequence[HubFile]) -> None:
        """Try until no file is missing, or until `tries` in a row finish no file; the last of them is without xet."""
        idle = 0
        while missing := self._missing(files):
            without_xet = idle == self.hub.tries - 1 and max(file.size for file in missing) <= PLAIN_HTTP_LIMIT
            try:
                self._try(files, missing, without_xet=without_xet)
            except TransferFailure as failure:
                self._remove_partial()
                idle = idle + 1 if len(self._missing(files)) == len(missing) else 0
                if failure.kind in PERMANENT or idle >= self.hub.tries:
                    raise explain_failure(failure, self.source, self.aside, self.hub) from failure
                self.say(f"{self.source}: {failure}; trying again")

    def _try(self, files: Sequence[HubFile], missing: Sequence[HubFile], *, without_xet: bool) -> None:
        total = sum(file.size for file in files)
        self.say(
            f"downloading {self.source}: {len(missing)} of {len(files)} files, "
            f"{sum(file.size for file in missing) / 1e9:.2f} of {total / 1e9:.2f} GB"
            f"{', without xet' if without_xet else ''}"
        )
        names = [file.name for file in missing]
        values = {"repo": self.repo, "revision": self.sha, "folder": str(self.folder), "names": names}
        environment = {"HF_HUB_DISABLE_XET": "1"} if without_xet else {}
        progress = _Progress(self, total)
        run_child(Transfer("hub_child", "download", values, environment), self.aside, self.hub, progress.count)
        progress.report()

    def _verify(self, files: Sequence[HubFile]) -> tuple[dict[str, str], list[tuple[HubFile, str]]]:
        """The SHA-256 of every file, and each file whose hash is not the hub's, with the reason."""
        self.say(f"verifying {len(files)} files of {self.source}")
        hashes = hash_files(self.folder, [file.name for file in files])
        wrong = []
        for file in files:
            found = hashes[file.name] if file.sha256 else git_sha1(self.folder / file.name)
            expected = file.sha256 or file.git_sha1
            if found != expected:
                wrong.append((file, f"{file.name} has the hash {found}, the hub lists {expected}"))
        return hashes, wrong

    def _download_again(self, wrong: Sequence[tuple[HubFile, str]]) -> None:
        for file, reason in wrong:
            self.say(f"{self.source}: {reason}; downloading it once more")
            (self.folder / file.name).unlink()
        self._remove_partial()
        self._from_hub([file for file, _reason in wrong])


class _Progress:
    """Counts a download's bytes on disk, and reports them every PROGRESS_EVERY_S."""

    def __init__(self, download: Download, total: int) -> None:
        self._download = download
        self._total = total
        self._began = self._reported = time.monotonic()
        self._start = self._now = bytes_under(download.folder)

    def count(self) -> int:
        """The bytes on disk so far, those of xet's temporary files included."""
        self._now = bytes_under(self._download.folder)
        if time.monotonic() - self._reported >= PROGRESS_EVERY_S:
            self.report()
        return self._now + bytes_under(self._download.aside / "xet")

    def report(self) -> None:
        """Report the bytes on disk, the total, and the rate since the try began."""
        self._reported = time.monotonic()
        self._now = bytes_under(self._download.folder)
        rate = (self._now - self._start) / max(self._reported - self._began, 1e-9)
        self._download.say(
            f"{self._download.source}: {min(self._now, self._total) / 1e9:.2f} of {self._total / 1e9:.2f} GB, "
            f"{rate / 1e6:.0f} MB/s"
        )


def _without(fetched: FetchResult, wrong: Sequence[tuple[HubFile, str]]) -> FetchResult:
    """What the bucket gave, less the files whose hash is not the hub's."""
    bad = {file.name: reason for file, reason in wrong if file.name in fetched.given}
    if not bad:
        return fetched
    given = tuple(name for name in fetched.given if name not in bad)
    return FetchResult(given, (*fetched.damaged, *bad), fetched.why or f"the bucket's {next(iter(bad.values()))}")
