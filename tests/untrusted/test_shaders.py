"""Shaders of strangers: their headers, macros and numbers cost little, and open nothing outside."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from PIL import Image

import dala
from dala.errors import DalaError, KernelTooLarge, LimitExceeded, ParameterError
from dala.media import gpu
from dala.shaders import isf, load

SHOW = "void main() { gl_FragColor = IMG_THIS_PIXEL(noise); }"
WHITE = "void main() { gl_FragColor = vec4(1.0); }"
FILLS = "#define F(a) " + "a " * 250


def text(body: str, **header: object) -> str:
    return f"/*{json.dumps(header)}*/\n{body}"


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e999", "NaN", "-1e300"])
@pytest.mark.parametrize("key", ["MIN", "MAX", "DEFAULT", "VALUES"])
@pytest.mark.parametrize("kind", ["float", "long", "color", "point2D", "bool"])
def test_numbers_of_a_header_that_fit_nowhere_count_as_missing(number, key, kind):
    given = f"[{number}]" if key == "VALUES" or kind in ("color", "point2D") else number
    head = f'{{"INPUTS": [{{"NAME": "a", "TYPE": "{kind}", "{key}": {given}}}]}}'
    param = {p.name: p for p in isf(f"/*{head}*/ {WHITE}").params}["a"]
    assert np.isfinite(param.default).all()


@pytest.mark.parametrize(
    "body",
    [
        f"{FILLS}\nvoid main() {{ {'F(' * 5};{')' * 5} }}",  # 250^5 tokens
        f"#define F(a) a\nvoid main() {{ gl_FragColor = vec4({'F(' * 3000}1.0{')' * 3000}); }}",
        f"void main() {{ gl_FragColor = vec4(float({'9' * 5000})); }}",
        f"#if {'9' * 5000}\n#endif\n{WHITE}",
    ],
)
def test_macros_and_numbers_are_bounded(body):
    """The first took 100 s whatever ``limits`` said; the others were errors of Python."""
    with pytest.raises(DalaError) as caught:
        isf(text(body))
    assert isinstance(caught.value, KernelTooLarge) or "digits" in str(caught.value)


def test_long_sums_are_no_recursion():
    """Looking for luma in a sum of 5,000 numbers was one call inside the other for each."""
    body = f"void main() {{ gl_FragColor = vec4({' + '.join(['sin(0.0)'] * 5000)}); }}"
    with isf(text(body)).start(1, 1, device="cpu") as state:
        assert state.render().numpy().tolist() == [[[0, 0, 0, 0]]]


@pytest.fixture
def folder(tmp_path):
    """A folder with a shader, beside a picture and a text that are not in it."""
    inside = tmp_path / "shaders"
    inside.mkdir()
    Image.new("RGBA", (2, 2), (10, 20, 30, 255)).save(inside / "noise.png")
    Image.new("RGBA", (2, 2), (1, 2, 3, 255)).save(tmp_path / "secret.png")
    (tmp_path / "secret.txt").write_text("my password;")
    return inside


def write(folder, where: str) -> os.PathLike:
    (folder / "a.fs").write_text(text(SHOW, IMPORTED={"noise": {"PATH": where}}))
    return folder / "a.fs"


@pytest.mark.parametrize(
    "where",
    [
        "../secret.png", "link.png", "deep/../../secret.png", "/etc/passwd", "noise.png\n", "",
        "noise.png\0", "pipe", ".", "away/secret.png", "file://noise.png", "x" * 5000, "\ud800",
    ],
)  # fmt: skip
def test_imported_pictures_stay_in_the_folder(folder, where):
    (folder / "link.png").symlink_to(folder.parent / "secret.png")
    (folder / "deep").symlink_to(folder.parent)
    (folder / "away").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe")
    with pytest.raises(ParameterError, match=r"IMPORTED|there is no file|cannot be opened"):
        load(write(folder, where))


def test_a_picture_that_is_swapped_is_the_one_that_was_checked(folder, monkeypatch):
    from dala.shaders import files

    def swapped(*args, **kwargs):
        (folder / "noise.png").unlink()
        (folder / "noise.png").symlink_to(folder.parent / "secret.png")
        return isf(*args, **kwargs)

    monkeypatch.setattr(files, "isf", swapped)
    shown = gpu.apply(np.zeros((2, 2, 4), np.uint8), load(write(folder, "noise.png")), device="cpu")
    assert shown[0, 0].tolist() == [10, 20, 30, 255]


def test_a_vertex_shader_that_is_a_link_shows_nothing(folder):
    """Its first line would be shown by the error."""
    (folder / "a.vs").symlink_to(folder.parent / "secret.txt")
    (folder / "a.fs").write_text(text(WHITE))
    with pytest.raises(ParameterError, match="allowed folder") as caught:
        load(folder / "a.fs")
    assert "password" not in str(caught.value)


def test_a_shader_that_is_a_link_has_what_is_beside_it_and_beside_its_file(folder, tmp_path):
    other = tmp_path / "mine"
    other.mkdir()
    (other / "a.fs").symlink_to(write(folder, "noise.png"))
    (folder / "a.vs").write_text("void main() { isf_vertShaderInit(); }")
    (other / "a.vs").symlink_to(folder / "a.vs")
    (other / "noise.png").symlink_to(folder / "noise.png")
    assert load(other / "a.fs").name == "a"


@pytest.mark.long
def test_imported_pictures_are_counted_together():
    """One small file of many pixels may be named a thousand times."""
    picture = np.broadcast_to(np.zeros(4, np.uint8), (8192, 4096, 4))
    names = [f"p{count}" for count in range(5)]
    header = text(WHITE, IMPORTED={name: {"PATH": "a.png"} for name in names})
    with pytest.raises(LimitExceeded, match="134,217,728 pixels together"):
        isf(header, images=dict.fromkeys(names, picture))


def test_sizes_of_passes_are_reserved():
    side = {"WIDTH": "2048", "HEIGHT": "2048"}
    wide = [{"TARGET": f"b{n}", "FLOAT": True, "PERSISTENT": True, **side} for n in range(60)]
    program = isf(text(WHITE, PASSES=[*wide, {}]))
    with (
        dala.limits(memory=200 << 20),
        pytest.raises(dala.MemoryLimitExceeded),
        program.start(4, 4, device="cpu") as state,
    ):
        state.render()
