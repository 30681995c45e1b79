"""Color look-up tables from files: the same colors as OpenColorIO, and HALD pictures."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from PIL import Image

from dala.errors import CubeError, MissingPackage
from dala.gpu.compute import Cube, load_cube, save_cube
from dala.media import gpu, load_lut
from dala.media.filters.luts import MAX_OCIO_BYTES

SIDE = 5


def look(color):
    """Return a look with crosstalk, as a function."""
    r, g, b = np.moveaxis(np.asarray(color, float), -1, 0)
    return np.stack([0.8 * r + 0.2 * g * g, g**1.3, 0.1 + 0.7 * b + 0.2 * r * b], axis=-1)


def grid(side=SIDE):
    axis = np.linspace(0, 1, side)
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)


def rows(entries, kind="{:.6f}"):
    return "\n".join(" ".join(kind.format(v) for v in row) for row in entries.reshape(-1, 3))


def red_first(table):
    return table.transpose(2, 1, 0, 3)


def spi1d():
    line = np.linspace(0, 2, 33) ** 0.5
    numbers = "\n".join(f" {v:.6f} {v * 0.9:.6f} {v * v:.6f}" for v in line)
    return f"Version 1\nFrom 0.0 2.0\nLength 33\nComponents 3\n{{\n{numbers}\n}}\n"


def spi3d():
    table = look(grid())
    body = "\n".join(
        f"{i} {j} {k} " + " ".join(f"{v:.6f}" for v in table[i, j, k])
        for i, j, k in np.ndindex(SIDE, SIDE, SIDE)
    )
    return f"SPILUT 1.0\n3 3\n{SIDE} {SIDE} {SIDE}\n{body}\n"


def csp():
    pre = "\n".join("3\n0.0 1.0 4.0\n0.0 0.6 1.0" for _ in range(3))
    return f"CSPLUTV100\n3D\n\n{pre}\n\n{SIDE} {SIDE} {SIDE}\n{rows(red_first(look(grid())))}\n"


def three_dl():
    table = np.round(np.clip(look(grid()), 0, 1) * 4095).astype(int)  # blue changes fastest
    shaper = " ".join(str(round(v)) for v in np.linspace(0, 1, SIDE) ** 0.8 * 1023)
    return f"{shaper}\n" + rows(table, "{}") + "\n"


def clf():
    table = rows(look(grid()))
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<ProcessList id="x" compCLFversion="3">
<LUT1D inBitDepth="32f" outBitDepth="32f"><Array dim="3 1">0.0 0.4 1.0</Array></LUT1D>
<LUT3D inBitDepth="32f" outBitDepth="32f"><Array dim="{SIDE} {SIDE} {SIDE} 3">
{table}
</Array></LUT3D></ProcessList>
"""


def resolve():
    line = np.linspace(0, 1, 9)[:, None] ** np.array([0.5, 0.7, 0.9])
    return (
        f"# made by a test\nLUT_1D_SIZE 9\nLUT_1D_INPUT_RANGE -0.25 1.5\nLUT_3D_SIZE {SIDE}\n"
        f"LUT_3D_INPUT_RANGE 0.0 1.0\n{rows(line)}\n{rows(red_first(look(grid())))}\n"
    )


def iridas():
    return f'\ufeffTITLE "x"\r\nLUT_3D_SIZE\t{SIDE}\r\n{rows(red_first(look(grid())))}\r\n'


FILES = {
    "a.spi1d": spi1d, "a.spi3d": spi3d, "a.csp": csp, "a.3dl": three_dl, "a.clf": clf,
    "resolve.cube": resolve,
}  # fmt: skip


def colors(low=-0.2, high=1.2):
    made = np.random.default_rng(5).uniform(low, high, (12, 16, 3)).astype("<f4")
    made[0, :, :] = np.linspace(low, high, 16)[:, None]
    return made


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("method", ["tetrahedral", "trilinear"])
def test_colors_are_those_of_opencolorio(tmp_path, name, method):
    ocio = pytest.importorskip("PyOpenColorIO")
    path = tmp_path / name
    path.write_text(FILES[name](), newline="")
    image = colors()
    # Before it, OpenColorIO clamps nothing; a table of ours clamps to its domain as OCIO's does.
    kind = {"tetrahedral": ocio.INTERP_TETRAHEDRAL, "trilinear": ocio.INTERP_LINEAR}[method]
    config = ocio.Config.CreateRaw()
    made = config.getProcessor(ocio.FileTransform(str(path), interpolation=kind))
    wanted = image.copy()
    made.getDefaultCPUProcessor().applyRGB(wanted)
    got = gpu.lut_apply(image, lut=path, method=method, device="cpu")
    assert np.abs(got - wanted).max() < 2e-4
    assert np.abs(wanted - image).max() > 0.05


def test_large_files_for_opencolorio_are_not_read(tmp_path):
    """18 MB took it 8 s, whatever dala.limits said."""
    pytest.importorskip("PyOpenColorIO", reason="needs the color extra")
    with (tmp_path / "a.3dl").open("wb") as file:
        file.truncate(MAX_OCIO_BYTES + 1)
    with pytest.raises(CubeError, match="has more than 16 MiB"):
        load_lut(tmp_path / "a.3dl")


def test_odd_text_of_a_cube_file(tmp_path):
    path = tmp_path / "a.cube"
    path.write_text(iridas(), newline="", encoding="utf-8")
    assert np.allclose(load_lut(path).table, look(grid()), atol=1e-6)


def test_shaped_tables_on_bytes_and_in_a_chain(tmp_path, engine_id):
    path = tmp_path / "resolve.cube"
    path.write_text(resolve())
    image = (colors(0, 1) * 255).astype(np.uint8)
    got = gpu.lut_apply(image, lut=path)
    cube = load_cube(path)
    exact = gpu.lut_apply((image / 255).astype("<f4"), lut=cube, device="reference")
    assert np.abs(got / 255.0 - np.clip(exact, 0, 1)).max() <= 0.51 / 255


@pytest.mark.parametrize("depth", [8, 16])
def test_hald_pictures(tmp_path, depth):
    level = 3
    table = np.clip(look(grid(level * level)), 0, 1)
    pixels = red_first(table).reshape(level**3, level**3, 3)
    path = tmp_path / "look.png"
    if depth == 8:
        Image.fromarray(np.round(pixels * 255).astype(np.uint8)).save(path)
    else:
        from dala.media import Frame

        Frame.from_array(pixels.astype("<f4")).save(path, depth=16)
    cube = load_lut(path)
    assert cube.title == "look"
    assert np.abs(cube.table - table).max() <= 0.51 / (2**depth - 1)
    image = colors(0, 1)
    got = gpu.lut_apply(image, lut=path, device="cpu")
    assert np.abs(got - look(image)).max() < 0.02


def test_refusals(tmp_path, monkeypatch):
    Image.new("RGB", (10, 10)).save(tmp_path / "photo.png")
    with pytest.raises(CubeError, match=r"must be a HALD picture of level 2 to 11 .* got 10x10"):
        load_lut(tmp_path / "photo.png")
    (tmp_path / "bad.png").write_text("no picture")
    with pytest.raises(CubeError, match=r"bad\.png' cannot be read"):
        load_lut(tmp_path / "bad.png")
    with pytest.raises(CubeError, match="path must be a str or Path, got 3"):
        load_lut(3)
    pytest.importorskip("PyOpenColorIO")
    (tmp_path / "bad.spi3d").write_text("nothing")
    with pytest.raises(CubeError, match=r"OpenColorIO cannot read .*bad\.spi3d"):
        load_lut(tmp_path / "bad.spi3d")
    with pytest.raises(CubeError, match="there is no such file"):
        load_lut(tmp_path / "none.clf")
    monkeypatch.setitem(sys.modules, "PyOpenColorIO", None)
    with pytest.raises(MissingPackage, match=r"pip install \"dala-gpu\[color\]\""):
        load_lut(tmp_path / "bad.spi3d")


def test_saved_tables_are_read_by_opencolorio(tmp_path):
    ocio = pytest.importorskip("PyOpenColorIO")
    line = np.linspace(0, 1, 17)[:, None].repeat(3, axis=1) ** 0.6
    cube = Cube(look(grid()), shaper=line)
    save_cube(cube, tmp_path / "a.cube")
    made = ocio.Config.CreateRaw().getProcessor(
        ocio.FileTransform(str(tmp_path / "a.cube"), interpolation=ocio.INTERP_TETRAHEDRAL)
    )
    image = colors(0, 1)
    wanted = image.copy()
    made.getDefaultCPUProcessor().applyRGB(wanted)
    assert np.abs(gpu.lut_apply(image, lut=cube, device="cpu") - wanted).max() < 1e-4
