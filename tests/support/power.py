"""A disk that loses power: what a program does with files is recorded, and each state that a cut of
power may leave is made again.

The model is that of POSIX, where file systems may be worse than they are: what was not synced is on
the disk or not, in any combination. The bytes of a file are there after its fsync; a name is there,
or gone, after the fsync of its folder. Bytes that are missing are zeros, the size and time of the
file being right, or the file is shorter. (The idea is that of ALICE, OSDI 2014, and CrashMonkey,
OSDI 2018; neither was read.)
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

#: Pending operations of which all subsets are tried; of more, as many samples.
EXHAUSTIVE = 6


@dataclass(frozen=True)
class Name:
    """A name in a folder was given to a file or folder, or removed."""

    folder: int
    name: str
    node: int | None


@dataclass(frozen=True)
class Rename:
    """A file got another name, in the same folder or another one."""

    folder: int
    name: str
    to: int
    new: str
    node: int


@dataclass(frozen=True)
class Write:
    """Bytes of a file."""

    node: int
    at: int
    data: bytes


@dataclass(frozen=True)
class Sync:
    """What was done with a file, or with the names in a folder, is on the disk."""

    node: int


@dataclass(frozen=True)
class Promise:
    """The program says that something is done."""

    what: Any


@dataclass
class Tree:
    """Files and folders by number; 0 is the root."""

    folders: dict[int, dict[str, int]] = field(default_factory=lambda: {0: {}})
    files: dict[int, bytearray] = field(default_factory=dict)

    def apply(self, op: Name | Rename | Write) -> None:
        if isinstance(op, Write):
            data = self.files.setdefault(op.node, bytearray())
            data.extend(bytes(max(0, op.at - len(data))))
            data[op.at : op.at + len(op.data)] = op.data
            return
        names = self.folders.setdefault(op.folder, {})
        if isinstance(op, Rename):
            if names.get(op.name) == op.node:
                del names[op.name]
            self.folders.setdefault(op.to, {})[op.new] = op.node
        elif op.node is None:
            names.pop(op.name, None)
        else:
            names[op.name] = op.node

    def walk(self, folder: int = 0, path: str = "") -> Iterator[tuple[str, int]]:
        for name, node in sorted(self.folders.get(folder, {}).items()):
            yield f"{path}{name}", node
            if node in self.folders:
                yield from self.walk(node, f"{path}{name}/")


class Recorder:
    """Records what this process does below a folder, by replacing functions of ``os``."""

    def __init__(self, root: Path) -> None:
        self.root = os.path.realpath(root)
        self.ops: list[Name | Rename | Write | Sync | Promise] = []
        self.live = Tree()
        self.kinds: dict[int, str] = {0: "folder"}
        self.times: dict[int, int] = {}
        self._numbers: dict[int, tuple[str, int]] = {}
        self._next = itertools.count(1)
        for path in sorted(Path(self.root).rglob("*")):  # what is there is on the disk
            node = self._node(path.is_dir())
            if path.is_file():
                self.live.files[node] = bytearray(path.read_bytes())
                self.times[node] = path.stat().st_mtime_ns
            folder, name = self._place(str(path))
            self.live.apply(Name(folder, name, node))
        self.first = Tree(
            {n: dict(names) for n, names in self.live.folders.items()},
            {n: bytearray(data) for n, data in self.live.files.items()},
        )

    def promise(self, what: Any) -> None:
        self.ops.append(Promise(what))

    def _node(self, folder: bool) -> int:
        node = next(self._next)
        self.kinds[node] = "folder" if folder else "file"
        (self.live.folders if folder else self.live.files)[node] = {} if folder else bytearray()
        return node

    def _path(self, path: Any, dir_fd: int | None) -> str | None:
        text = os.fsdecode(path)
        if dir_fd is not None:
            if dir_fd not in self._numbers:
                return None
            text = os.path.join(self._numbers[dir_fd][0], text)
        text = os.path.join(os.path.realpath(os.path.dirname(text)), os.path.basename(text))
        inside = text == self.root or text.startswith(self.root + os.sep)
        return os.path.normpath(text) if inside else None

    def _place(self, path: str) -> tuple[int, str]:
        parts = os.path.relpath(path, self.root).split(os.sep)
        folder = 0
        for part in parts[:-1]:
            folder = self.live.folders[folder][part]
        return folder, parts[-1]

    def _find(self, path: str) -> int | None:
        if path == self.root:
            return 0
        folder, name = self._place(path)
        return self.live.folders[folder].get(name)

    def _do(self, op: Name | Rename | Write) -> None:
        self.ops.append(op)
        self.live.apply(op)

    def _seen(self, node: int, real: int) -> None:
        """Take note of bytes that were written by others than ``os.write``."""
        size = os.fstat(real).st_size
        number = os.open(f"/proc/self/fd/{real}", os.O_RDONLY)
        try:
            data = os.pread(number, size, 0)
        finally:
            os.close(number)
        if data != self.live.files[node]:
            self._do(Write(node, 0, data))

    @contextlib.contextmanager
    def recording(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        real = {name: getattr(os, name) for name in (
            "open", "close", "write", "fsync", "replace", "rename", "link", "unlink", "mkdir",
            "rmdir",
        )}  # fmt: skip

        def open_(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            number = real["open"](path, flags, mode, dir_fd=dir_fd)
            found = None if isinstance(path, int) else self._path(path, dir_fd)
            if found is not None and not found.startswith("/proc"):
                node = self._find(found)
                if node is None:
                    assert flags & os.O_CREAT, found
                    node = self._node(False)
                    self._do(Name(*self._place(found), node))
                self._numbers[number] = found, node
            return number

        def close(number: int) -> None:
            self._numbers.pop(number, None)
            real["close"](number)

        def write(number: int, data: Any) -> int:
            at = os.lseek(number, 0, os.SEEK_CUR) if number in self._numbers else 0
            count = real["write"](number, data)
            if number in self._numbers:
                node = self._numbers[number][1]
                self._do(Write(node, at, bytes(data[:count])))
                self.times[node] = os.fstat(number).st_mtime_ns
            return count

        def fsync(number: int) -> None:
            real["fsync"](number)
            if number in self._numbers:
                node = self._numbers[number][1]
                if self.kinds[node] == "file":
                    self._seen(node, number)
                    self.times[node] = os.fstat(number).st_mtime_ns
                self.ops.append(Sync(node))

        def rename(
            old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
        ) -> None:
            source, target = self._path(old, src_dir_fd), self._path(new, dst_dir_fd)
            real["replace"](old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            if source is not None and target is not None:
                node = self._find(source)
                assert node is not None
                self._do(Rename(*self._place(source), *self._place(target), node))

        def link(
            old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
        ) -> None:
            source, target = self._path(old, src_dir_fd), self._path(new, dst_dir_fd)
            real["link"](old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            if source is not None and target is not None:
                self._do(Name(*self._place(target), self._find(source)))

        def removing(name: str) -> Any:
            def remove(path: Any, *, dir_fd: int | None = None) -> None:
                found = self._path(path, dir_fd)
                real[name](path, dir_fd=dir_fd)
                if found is not None:
                    self._do(Name(*self._place(found), None))

            return remove

        def mkdir(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
            found = self._path(path, dir_fd)
            real["mkdir"](path, mode, dir_fd=dir_fd)
            if found is not None:
                self._do(Name(*self._place(found), self._node(True)))

        with monkeypatch.context() as patch:
            for name, made in {
                "open": open_, "close": close, "write": write, "fsync": fsync, "replace": rename,
                "rename": rename, "link": link, "unlink": removing("unlink"),
                "remove": removing("unlink"), "mkdir": mkdir, "rmdir": removing("rmdir"),
            }.items():  # fmt: skip
                patch.setattr(os, name, made)
            yield
        self._check()

    def _check(self) -> None:
        """Nothing went past the recorder: the model is what the folder is."""
        expected = {
            path: None if node in self.live.folders else bytes(self.live.files[node])
            for path, node in self.live.walk()
        }
        found = {
            str(path.relative_to(self.root)): None if path.is_dir() else path.read_bytes()
            for path in Path(self.root).rglob("*")
        }
        assert found == expected

    # states ---------------------------------------------------------------------------------------
    def states(self, seed: int, samples: int = 64) -> Iterator[tuple[int, Tree]]:
        """Yield what a cut of power after each operation may leave, each state once."""
        chance = random.Random(seed)
        seen = set()
        for end in range(len(self.ops) + 1):
            done = [op for op in self.ops[:end] if not isinstance(op, Sync | Promise)]
            synced = self._synced(end)
            pending = [n for n, op in enumerate(done) if not synced[n]]
            for lost in _subsets(len(pending), samples, chance):
                missing = {pending[n] for n in lost}
                for torn in (None, "zeros", "half"):
                    if torn and not any(isinstance(done[n], Write) for n in missing):
                        continue
                    tree = self._tree(done, missing, torn)
                    key = self._key(end, tree)
                    if key not in seen:
                        seen.add(key)
                        yield end, tree

    def _synced(self, end: int) -> list[bool]:
        """Return which of the first operations must be on the disk."""
        made: list[bool] = []
        after: set[int] = set()
        for op in reversed(self.ops[:end]):
            if isinstance(op, Sync):
                after.add(op.node)
            elif isinstance(op, Write):
                made.append(op.node in after)
            elif isinstance(op, Name):
                made.append(op.folder in after)
            elif isinstance(op, Rename):
                made.append(op.folder in after and op.to in after)
        return made[::-1]

    def _tree(self, done: list[Any], missing: set[int], torn: str | None) -> Tree:
        tree = Tree(
            {n: dict(names) for n, names in self.first.folders.items()},
            {n: bytearray(data) for n, data in self.first.files.items()},
        )
        for number, op in enumerate(done):
            if number not in missing:
                tree.apply(op)
            elif torn and isinstance(op, Write):
                size = len(op.data)
                half = op.data[: size // 2] if torn == "half" else bytes(size)
                tree.apply(Write(op.node, op.at, half))
        return tree

    def _key(self, end: int, tree: Tree) -> int:
        promised = sum(isinstance(op, Promise) for op in self.ops[:end])
        files = tuple(
            (path, bytes(tree.files.get(node, b"")) if self.kinds[node] == "file" else None)
            for path, node in tree.walk()
        )
        return hash((promised, files))

    def restore(self, tree: Tree) -> None:
        """Make the folder what the disk has."""
        for entry in os.scandir(self.root):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        for path, node in tree.walk():
            place = os.path.join(self.root, path)
            if self.kinds[node] == "folder":
                os.mkdir(place)
                continue
            with open(place, "wb") as file:
                file.write(tree.files.get(node, b""))
            if node in self.times:
                os.utime(place, ns=(self.times[node], self.times[node]))
        assert stat.S_ISDIR(os.stat(self.root).st_mode)


def _subsets(count: int, samples: int, chance: random.Random) -> Iterator[list[int]]:
    """Yield all subsets of the first numbers, or some of them: none, all, and others by chance."""
    if count <= EXHAUSTIVE:
        for bits in range(1 << count):
            yield [n for n in range(count) if bits >> n & 1]
        return
    yield []
    yield list(range(count))
    for _ in range(samples):
        yield [n for n in range(count) if chance.random() < 0.5]
