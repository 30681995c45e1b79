"""Color look-up tables from any file: .cube, HALD pictures, and formats of OpenColorIO."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from dala.arguments import checked_path
from dala.budget import check_deadline
from dala.errors import CubeError
from dala.extras import needing
from dala.gpu.compute import Cube, load_cube
from dala.gpu.compute.cube import SIZES
from dala.notices import notify
from dala.typing import NDArray, PathLike

#: Suffixes of files that OpenColorIO reads.
OCIO_SUFFIXES: Final = frozenset((
    ".3dl", ".cc", ".ccc", ".cdl", ".clf", ".csp", ".ctf", ".cub", ".icc", ".icm", ".itx", ".look",
    ".lut", ".m3d", ".mga", ".pf", ".spi1d", ".spi3d", ".spimtx", ".vf",
))  # fmt: skip
#: Suffixes of pictures that may be HALD tables.
HALD_SUFFIXES: Final = frozenset((".bmp", ".png", ".ppm", ".tif", ".tiff", ".webp"))
#: Entries of curves, and of an axis of a table, where the file does not say.
_CURVE: Final = 16385
_SIDE: Final = 65
#: The largest input: that of half floats.
_END: Final = 65504.0

#: Bytes of a file for OpenColorIO at most, which may take it some seconds in one call.
MAX_OCIO_BYTES: Final = 1 << 24
#: What leads to other files, or could stand for that.
_NAMING: Final = re.compile(rb"<(!doctype|!entity|[\w:.-]*reference\b)", re.IGNORECASE)

#: An object of OpenColorIO, which has no types.
OcioObject: TypeAlias = Any


def load_lut(path: PathLike) -> Cube:
    """Read a color look-up table.

    Args:
        path: a .cube file, a HALD picture (.png, .tif, ..), or a file that OpenColorIO reads
            (.3dl, .spi1d, .spi3d, .csp, .clf, ..), which needs ``pip install "dala-gpu[color]"``.

    Raises:
        CubeError: the file cannot be read, or is not such a table.
        MissingPackage: the file needs OpenColorIO, and it is not installed.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "line.cube")
    >>> with open(path, "w") as file:
    ...     written = file.write("LUT_1D_SIZE 2\\n0 0 0\\n1 1 1\\n")
    >>> load_lut(path)
    <Cube '' 2>
    """
    found = checked_path("load_lut", "path", path, CubeError)
    suffix = found.suffix.lower()
    if suffix in HALD_SUFFIXES:
        return _hald(found)
    if suffix in OCIO_SUFFIXES:
        return _ocio(found)
    return load_cube(found)


# HALD pictures ----------------------------------------------------------------------------------
def _hald(path: Path) -> Cube:
    """Read a HALD picture: level n has n * n entries along each axis, red changing fastest."""
    from dala.media.files import read_picture

    try:
        pixels = read_picture(path, 1 << 27, color="raw", depth="float").pixels[..., :3]
    except (OSError, ValueError) as error:
        raise CubeError(f"load_lut: {str(path)!r} cannot be read: {error}") from None
    height, width = pixels.shape[:2]
    level = round(width ** (1 / 3))
    side = level * level
    least, most = 2, int(SIZES[3][1] ** 0.5)
    if pixels.ndim != 3 or width != height or level**3 != width or not least <= level <= most:
        raise CubeError(
            f"load_lut: {str(path)!r} must be a HALD picture of level {least} to {most} (a square "
            f"of {least**3} to {most**3} pixels, such as 512 for level 8), got {width}x{height}."
        )
    return Cube(pixels.reshape(side, side, side, 3).transpose(2, 1, 0, 3), _title(path))


def _title(path: Path) -> str:
    return "".join(c for c in path.stem if c.isprintable() and c != '"')


# OpenColorIO ------------------------------------------------------------------------------------
def _ocio(path: Path) -> Cube:
    """Sample OpenColorIO's reading of a file: curves, a table, or a table behind curves."""
    ocio = _package(path)
    name = repr(str(path))
    if not path.is_file():
        raise CubeError(f"load_lut: {name} cannot be read: there is no such file.")
    if path.stat().st_size > MAX_OCIO_BYTES:
        raise CubeError(f"load_lut: {name} has more than {MAX_OCIO_BYTES >> 20} MiB.")
    # OpenColorIO tries all of its formats, whatever the suffix.
    if _NAMING.search(path.read_bytes().replace(b"\0", b"")):
        raise CubeError(f"load_lut: {name} names another table. Give that one, or join them.")
    try:
        config = ocio.Config.CreateRaw()
        whole = ocio.FileTransform(str(path), interpolation=ocio.INTERP_BEST)
        parts = list(config.getProcessor(whole).createGroupTransform())
        apply = _Applied(ocio, config, parts)
        cubes = [n for n, part in enumerate(parts) if isinstance(part, ocio.Lut3DTransform)]
        title = _title(path)
        if not _mixes(ocio, config, parts):
            low, high = _domain(apply, name)
            return Cube(_curve(apply, low, high), title, (low,) * 3, (high,) * 3)
        first = cubes[0] if cubes else 0
        before = parts[:first]
        if not before or _mixes(ocio, config, before):
            side = parts[first].getGridSize() if cubes and not before else _SIDE
            return Cube(_table(apply, min(side, SIZES[3][1])), title)
        side = min(parts[first].getGridSize(), SIZES[3][1])
        shape, rest = (_Applied(ocio, config, some) for some in (before, parts[first:]))
        low, high = _domain(shape, name)
        curve = _curve(shape, low, high)
        return Cube(
            _table(rest, side), title, shaper=curve, shaper_min=(low,) * 3, shaper_max=(high,) * 3
        )
    except ocio.Exception as error:
        check_deadline("load_lut")
        raise CubeError(f"load_lut: OpenColorIO cannot read {name}: {error}") from None
    except UnicodeDecodeError:  # its own message quotes bytes of the file
        raise CubeError(
            f"load_lut: OpenColorIO cannot read {name}: it has text that is not UTF-8."
        ) from None


def _package(path: Path) -> OcioObject:
    with needing("load_lut", "color", "OpenColorIO", f", and {path.suffix} files need it"):
        import PyOpenColorIO
    return PyOpenColorIO


class _Applied:
    """The colors that some transforms make of others."""

    def __init__(self, ocio: OcioObject, config: OcioObject, parts: list[OcioObject]) -> None:
        group = ocio.GroupTransform(parts)
        # Exact arithmetic: the default replaces functions by tables.
        flags = ocio.OPTIMIZATION_LOSSLESS
        made = config.getProcessor(group)
        self._made = made.getOptimizedCPUProcessor(ocio.BIT_DEPTH_F32, ocio.BIT_DEPTH_F32, flags)

    def __call__(self, colors: NDArray) -> NDArray:
        pixels = np.ascontiguousarray(colors.reshape(-1, 3), np.float32)
        self._made.applyRGB(pixels)
        return pixels.reshape(colors.shape)


def _mixes(ocio: OcioObject, config: OcioObject, parts: list[OcioObject]) -> bool:
    made = config.getProcessor(ocio.GroupTransform(parts))
    return bool(made.hasChannelCrosstalk())


def _domain(apply: _Applied, name: str) -> tuple[float, float]:
    """Return the part of the numbers outside of which curves are constant."""
    low, high = 0.0, 1.0
    ends = apply(np.repeat(np.array([[-_END], [_END]]), 3, axis=1))
    while high < _END and not _same(apply, high, ends[1]):
        high = min(high * 2, _END)
    while low > -_END and not _same(apply, low, ends[0]):
        low = max(low * 2, -_END) if low else -0.125
    if low == -_END or high == _END:
        low, high = max(low, -1.0), min(high, 16.0)
        notify(f"{name}: the curves are read for colors from {low:g} to {high:g}.")
    return low, high


def _same(apply: _Applied, at: float, end: NDArray) -> bool:
    return bool(np.allclose(apply(np.full((1, 3), at)), end, rtol=1e-6, atol=1e-6))


def _curve(apply: _Applied, low: float, high: float) -> NDArray:
    line = np.linspace(low, high, _CURVE)
    return apply(np.repeat(line[:, None], 3, axis=1))


def _table(apply: _Applied, side: int) -> NDArray:
    axis = np.linspace(0.0, 1.0, side)
    return apply(np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1))
