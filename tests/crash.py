"""What a power cut leaves on disk: work is recorded while it writes, syncs and renames, and cut off before each step.

A disk keeps what was synced: a file's bytes when the file was, a folder's names when the folder was. Of everything
else it may keep all, nothing or a part, in any order. So each cut leaves several disks, from only what was synced to
everything that was done.

Recorded is what this process does through Python below one folder. What another process or a library in C writes
there counts as not synced.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Generic, TypeVar

import pytest

T = TypeVar("T")
STEPS = {"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.truncate", "os.link", "os.symlink"}
GONE = {"os.rmdir": (0, 1), "os.remove": (0, 1), "os.rename": (1, 3)}  # where a name that ends stands, and its folder
# Of each file and folder: does the disk have what was done to it (True), or only what was synced of it?
Keeps = Callable[["Node"], bool]


@dataclass(eq=False)
class Node:
    """One file or folder at one step; None: it was never synced."""

    is_folder: bool
    synced: "bytes | Mapping[str, Node] | None"
    done: "bytes | Mapping[str, Node]"


@dataclass(frozen=True)
class Cut(Generic[T]):
    """The disk before one step, and what was observed elsewhere at that moment."""

    step: str
    root: Node
    seen: T

    def disks(self, seed: int = 0) -> Iterator[tuple[str, Callable[[Path], None]]]:
        """Disks that a power cut here may leave, each with its name and what writes it to a folder."""
        random = Random(seed)
        kinds: dict[str, Keeps] = {
            "only what was synced": lambda _node: False,
            "every name, and synced content": lambda node: node.is_folder,
            "all content, and synced names": lambda node: not node.is_folder,
            "everything": lambda _node: True,
            "a part": lambda _node: random.random() < 0.5,
        }
        for name, keeps in kinds.items():
            yield f"{name}, before {self.step}", partial(_write, self.root, keeps)


def _write(node: Node, keeps: Keeps, path: Path) -> None:
    content = node.done if keeps(node) else node.synced
    if not node.is_folder:
        path.write_bytes(content if isinstance(content, bytes) else b"")
        return
    path.mkdir(parents=True, exist_ok=True)
    for name, each in content.items() if isinstance(content, Mapping) else ():
        _write(each, keeps, path / name)


@dataclass(eq=False)
class _Known:
    """What is on disk of one file or folder, whatever names it has now."""

    synced: "bytes | dict[str, _Known] | None" = None


@dataclass
class _Recorder(Generic[T]):
    root: Path
    observe: Callable[[], T]
    cuts: list[Cut[T]] = field(default_factory=list)
    known: dict[int, _Known] = field(default_factory=dict)  # by inode
    busy: threading.RLock = field(default_factory=threading.RLock)
    is_looking: bool = False

    def start(self) -> None:
        """Everything that is there now is on disk."""
        for path in (self.root, *self.root.rglob("*")):
            self.synced(path)

    def before(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note the disks before a step, and which file or folder it takes a name from."""
        with self.busy:
            if self.is_looking or not self._is_below(event, arguments):
                return
            self.cut(f"{event} {' '.join(str(each) for each in arguments[:2])}")
            if event in GONE:
                name, folder = (arguments[at] for at in GONE[event])
                path = _path_of(name, folder)
                if os.path.lexists(path) and (path.is_dir() or path.lstat().st_nlink == 1):
                    self.known.pop(path.lstat().st_ino, None)  # another may get this number

    def cut(self, step: str) -> None:
        """Note the disks of now."""
        with self.busy:
            self.is_looking = True
            try:
                paths = {id(self._of(path)): path for path in (self.root, *self.root.rglob("*"))}
                self.cuts.append(Cut(step, self._node(self._of(self.root), paths, {}), self.observe()))
            finally:
                self.is_looking = False

    def synced(self, path: Path) -> None:
        """Note that a file's bytes, or a folder's names, are on disk."""
        with self.busy:
            self.is_looking = True
            try:
                known = self._of(path)
                if path.is_dir():
                    known.synced = {each.name: self._of(each) for each in path.iterdir()}
                else:
                    known.synced = path.read_bytes()
            finally:
                self.is_looking = False

    def _is_below(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return False
        folder = arguments[GONE[event][1]] if event in GONE else -1
        named = arguments[GONE[event][0]] if event in GONE else arguments[0]
        return isinstance(named, (str, os.PathLike)) and _path_of(named, folder).is_relative_to(self.root)

    def _of(self, path: Path) -> _Known:
        return self.known.setdefault(path.lstat().st_ino, _Known())

    def _node(self, known: _Known, paths: Mapping[int, Path], made: dict[int, Node]) -> Node:
        """One file or folder as it is now. What has no name any more has only what was synced of it."""
        if id(known) in made:
            return made[id(known)]
        path = paths.get(id(known))
        is_folder = isinstance(known.synced, dict) if path is None else path.is_dir()
        node = made[id(known)] = Node(is_folder, None, {} if is_folder else b"")
        if isinstance(known.synced, dict):
            node.synced = {name: self._node(each, paths, made) for name, each in known.synced.items()}
        else:
            node.synced = known.synced
        if path is None:
            node.done = node.done if node.synced is None else node.synced
        elif is_folder:
            node.done = {each.name: self._node(self._of(each), paths, made) for each in path.iterdir()}
        else:
            node.done = path.read_bytes()
        return node


_ACTIVE: list[_Recorder[Any]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _ACTIVE and event in STEPS:
        for recorder in _ACTIVE:
            recorder.before(event, arguments)


_HOOKED: list[bool] = []


@contextmanager
def recorded(root: Path, observe: Callable[[], T]) -> Iterator[list[Cut[T]]]:
    """The cuts of what is done below a folder during the block: one before each step, and one at the end.

    `observe` is called at each, for what is compared with the disks: what another computer still has, say.
    """
    if not _HOOKED:
        sys.addaudithook(_hook)  # for good, since a hook cannot be removed
        _HOOKED.append(True)
    recorder = _Recorder(root.resolve(), observe)
    recorder.start()
    fsync = os.fsync

    def noted(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        is_ours = path.is_relative_to(recorder.root) and path.exists()
        if is_ours:
            recorder.cut(f"fsync {path}")
        fsync(handle)
        if is_ours:
            recorder.synced(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", noted)
        _ACTIVE.append(recorder)
        try:
            yield recorder.cuts
        finally:
            _ACTIVE.remove(recorder)
    recorder.cut("the end")


def _path_of(name: object, folder: object) -> Path:
    """A name as its system call has it: relative to an open folder, if one is given."""
    path = Path(os.fsdecode(name))  # type: ignore[arg-type]  # a name is text, bytes or a path
    if not path.is_absolute() and isinstance(folder, int) and folder >= 0:
        return Path(f"/proc/self/fd/{folder}").readlink() / path
    return Path.cwd() / path
