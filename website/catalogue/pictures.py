"""Pictures of the catalogue: made by the programs that pages show, and kept in a cache."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from PIL import Image

import dala

ROOT = pathlib.Path(__file__).parents[2]
#: Where pictures are kept between builds.
CACHE = ROOT / "build" / "catalogue"
#: Pixels of the longer side on a page.
SIDE = 600
#: The code that pictures depend on.
_CODE = (
    "src/dala/gpu/compute",
    "src/dala/media",
    "src/dala/ml",
    "src/dala/samples",
    "src/dala/web",
)


@cache
def _code() -> bytes:
    """Return a digest of the code that makes pictures."""
    digest = hashlib.sha256()
    for folder in _CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.digest()


class Pictures:
    """Runs programs and keeps their pictures; ``files`` has what the pages of a build show."""

    def __init__(self, folder: pathlib.Path = CACHE) -> None:
        self.folder = folder
        #: Files by their path on the site.
        self.files: dict[str, pathlib.Path] = {}

    def of(self, path: str, program: str, name: str = "result") -> None:
        """Put the picture that a program calls ``name`` on the site, at a path.

        Raises:
            Exception: whatever the program raises, so that a page never shows code that fails.
        """
        suffix = pathlib.PurePosixPath(path).suffix

        def make() -> bytes:
            return encoded(np.asarray(run(program, path)[name]), suffix)

        self.files[path] = self.kept(f"{program}\0{name}\0{SIDE}", suffix, make)

    def printed(self, program: str) -> str:
        """Return what a program prints."""

        def make() -> bytes:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                run(program, "printed")
            return said.getvalue().strip().encode()

        return self.kept(program, ".txt", make).read_text(encoding="utf-8")

    def kept(self, key: str, suffix: str, make: Callable[[], bytes]) -> pathlib.Path:
        """Return a file of the cache; ``make`` gives its bytes if it is not there yet.

        Files are made again when the code that they depend on has changed.
        """
        digest = hashlib.sha256(_code() + key.encode()).hexdigest()[:32]
        kept = self.folder / f"{digest}{suffix}"
        if not kept.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            with dala.device("cpu"), _elsewhere():
                data = make()
            part = kept.with_name(f"{kept.name}.{os.getpid()}")
            part.write_bytes(data)
            part.replace(kept)
        return kept


def run(program: str, path: str) -> dict[str, Any]:
    """Run a program and return its names."""
    names: dict[str, Any] = {}
    exec(compile(program, f"<{path}>", "exec"), names)
    return names


def encoded(picture: np.ndarray, suffix: str) -> bytes:
    """Return a picture as the bytes of a file for the web."""
    if picture.ndim != 3 or picture.dtype != np.uint8:  # planes of YUV, tensors of models
        picture = _visible(picture)
    image = Image.fromarray(picture)
    image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    data = io.BytesIO()
    image.save(data, {".webp": "WEBP", ".png": "PNG"}[suffix], quality=78, method=4)
    return data.getvalue()


def _visible(values: np.ndarray) -> np.ndarray:
    """Return numbers that are not a picture as one: planes side by side, from dark to bright."""
    while values.ndim > 3:
        values = values[0]
    if values.ndim == 3:
        values = np.concatenate(list(values), axis=1)
    values = values.astype(np.float64)
    low, high = values.min(), values.max()
    return np.round((values - low) / max(high - low, 1e-9) * 255).astype(np.uint8)


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """Run in a folder of its own, without the output of programs."""
    before = pathlib.Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            os.chdir(before)
