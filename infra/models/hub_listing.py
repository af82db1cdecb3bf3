"""What a model hub has: the files of one commit with their sizes and hashes, and why a request to it failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bench.errors import ModelError, NoSpaceError
from infra.models.child_protocol import DISK_FULL, OTHER, Result, TransferFailure
from infra.models.transfer_process import Hub, Transfer, run_child

# What an engine never reads if a model also has safetensors; some repositories hold their weights three times.
OTHER_WEIGHTS = (".bin", ".pth", ".pt", ".h5", ".msgpack", ".onnx", ".gguf", ".ot")
PERMANENT = ("gated", "bad-token", "no-repo", "no-revision", DISK_FULL)


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


def read_listing(repo: str, revision: str, aside: Path, hub: Hub) -> Listing:
    """The files that the hub has for a revision now; ModelError if it has none or does not answer."""
    source = f"hf:{repo}@{revision}"
    transfer = Transfer("hub_child", "list_files", {"repo": repo, "revision": revision})
    last = TransferFailure(OTHER, "never tried")
    for _try in range(hub.tries):
        try:
            return _listing(run_child(transfer, aside, hub, lambda: 0), source)
        except TransferFailure as failure:
            last = failure
            if failure.kind in PERMANENT:
                break
    raise explain_failure(last, source, aside, hub)


def _listing(result: Result, source: str) -> Listing:
    try:
        files = tuple(HubFile(**{**entry, "size": int(entry["size"])}) for entry in result["files"])
        listing = Listing(str(result["sha"]), files)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{source}: the hub's list of files cannot be parsed ({error!r}); try again") from error
    for file in files:
        name = PurePosixPath(file.name)
        if name.is_absolute() or ".." in name.parts:
            raise ModelError(f"{source} lists a file {file.name!r}, which is outside the model's folder; refused")
    return listing


def needed_files(files: Sequence[HubFile]) -> tuple[HubFile, ...]:
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


def explain_failure(failure: TransferFailure, source: str, aside: Path, hub: Hub) -> ModelError | NoSpaceError:
    """The error for a failed request about `source` (hf:org/name@revision), with what to do about it."""
    repo, _, revision = source.removeprefix("hf:").partition("@")
    sentences = {
        "gated": f"{source} is gated: accept its terms on its page with the account of your token, and set HF_TOKEN",
        "bad-token": f"the model hub rejected HF_TOKEN for {source}: create a new token with read access",
        "no-repo": f"the model hub has no model {repo}, or it is private: check the name, and set HF_TOKEN",
        "throttled": f"the model hub still limits our requests for {source}: try again later, or set HF_TOKEN",
        "stalled": f"the download of {source} stalled for {hub.stall_s:g} s, {hub.tries} times: try later",
    }
    if failure.kind == DISK_FULL:
        return NoSpaceError(f"{aside.parent}: the disk is full, so {source} was not downloaded; free some space there")
    if failure.kind == "no-revision":
        newest = read_listing(repo, "main", aside, hub).sha
        return ModelError(f"{repo} has no commit {revision}; its newest is hf:{repo}@{newest}")
    sentence = sentences.get(failure.kind, f"{source} could not be downloaded: try again later")
    return ModelError(f"{sentence} ({failure.message})")
