"""Compute on surfaces: kernel text, and kernels with dicts."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import dala
from dala.errors import (
    CommandError,
    DalaError,
    KernelSyntaxError,
    ParameterError,
    ShaderError,
)
from dala.gpu import create_surface
from dala.gpu.compute import (
    Image,
    Pixel,
    buffer_zeros,
    from_array,
    rgba,
    run_kernel,
    to_array,
    vec3,
)
from dala.gpu.compute.kernel import get as get_kernel
from dala.gpu.shaders.dispatch import SurfaceShaders
from tests.gpu.shaders.shaded import BLOCK, GROUPS, MAIN, PHOTO, PIXELS, flood, refused
from tests.support.engines import run

# kernel text --------------------------------------------------------------------------------------


@pytest.fixture
def canvas(engine_id, dala_device):
    """A surface with the photo, whose kernel text runs on each engine."""
    with create_surface(29, 13) as s:
        s._renderer.shaders = SurfaceShaders(kernel_device=dala_device)
        s.set_pixels(PHOTO)
        yield s


TINT = """
def tint(px: Pixel, *, amount=1.0, off: int = 0, color=(1.0, 1.0, 1.0), flip=False):
    v = px.g + off / 255
    if flip:
        v = 1 - v
    return rgba(px.r * amount * color[0], v, px.b * color[2], px.a)
"""


def made_by(text: str, params: dict) -> np.ndarray:
    return run(dala.gpu.compute.kernel(text), [PHOTO], PHOTO.shape, "u8", params)


def test_pixel_kernel(canvas):
    canvas.load_shader("tint", TINT)
    canvas.dispatch_compute("tint")
    assert np.array_equal(canvas.to_array(), made_by(TINT, {}))
    canvas.set_pixels(PHOTO)
    canvas.dispatch_compute("tint", struct.pack("<fi3fi", 0.5, -7, 1.0, 0.5, 0.25, 1))
    given = {"amount": 0.5, "off": -7, "color": (1.0, 0.5, 0.25), "flip": True}
    want = made_by(TINT, given)
    assert np.array_equal(canvas.to_array(), want)
    assert not np.array_equal(want, PHOTO)


def test_parameters_from_bytes_then_uniforms_then_defaults(canvas):
    canvas.load_shader("tint", TINT)
    canvas.set_uniform("amount", struct.pack("<f", 0.1))  # params take precedence
    canvas.set_uniform("color", struct.pack("<3f", 0.5, 0.5, 0.5))
    canvas.dispatch_compute("tint", struct.pack("<f", 0.75))
    want = made_by(TINT, {"amount": 0.75, "color": (0.5, 0.5, 0.5)})
    assert np.array_equal(canvas.to_array(), want)


def test_image_kernel_reads_the_previous_pixels(canvas):
    text = "def shift(img: Image, *, n=1): return img[n, 0] * 0.5 + img[0, -1] * 0.5"
    want = made_by(text, {"n": 3})
    for _ in range(2):
        canvas.set_pixels(PHOTO)
        canvas.dispatch_compute(text, struct.pack("<i", 3))
        assert np.array_equal(canvas.to_array(), want)


def test_kernel_text_calls_other_kernels_in_order(canvas):
    canvas.fill_rect(0, 0, 5, 5, "red")
    canvas.set_clip(0, 0, 1, 1)
    canvas.dispatch_compute("def gray(px: Pixel): return grayscale(px)", b"", (0, 0, 0))
    canvas.reset_clip()
    canvas.fill_rect(1, 1, 2, 2, "blue")
    canvas.present()
    before = PHOTO.copy()
    before[:5, :5] = (255, 0, 0, 255)
    want = run("grayscale", [before], PHOTO.shape, "u8")
    want[1:3, 1:3] = (0, 0, 255, 255)
    assert np.array_equal(canvas.to_array(), want)
    assert np.array_equal(canvas._renderer.front, want)


def test_kernel_without_input(canvas):
    text = "def paint() -> Pixel: return rgba(1.0, 0.5, 0.0, 1.0)"
    canvas.dispatch_compute(text)
    assert canvas.get_pixels() == bytes([255, 128, 0, 255]) * 377


def test_kernel_text_after_a_resize(canvas):
    canvas.resize(5, 4)
    canvas.dispatch_compute("def f(img: Image): return 1.0 - img[0, 0]")
    assert np.array_equal(canvas.to_array(), 255 - PHOTO[:4, :5])


@pytest.mark.parametrize(
    ("text", "params", "error", "says"),
    [
        ("def f(x): return x", b"", KernelSyntaxError, "has one input, the pixels"),
        ("def f(a: Pixel, b: Pixel): return a", b"", KernelSyntaxError, "has one input"),
        ("def f(px: Pixel): return open(px)", b"", KernelSyntaxError, "open"),
        ("def f(px: Pixel): return px.r +", b"", KernelSyntaxError, "not valid Python"),
        ("def f(px: Pixel): return px", b"1234", ShaderError, "in order: none"),
        ("def f(px: Pixel, *, a=1.0): return px", b"123", ShaderError, "in order: a (4)"),
        ("def f(px: Pixel, *, a=1.0): return px", b"12345", ShaderError, "in order: a (4)"),
        (
            "def f(px: Pixel, *, a): return px * a",
            b"",
            ParameterError,
            "missing required parameter 'a'",
        ),
        (
            "def f(px: Pixel, *, w=1.0): return px * w",
            b"",
            ShaderError,
            "'w' must have 4 bytes, got 8",
        ),
        ("neither\nnor", b"", ShaderError, "neither WGSL (a function with @compute) nor kernel"),
    ],
)
def test_refused_kernel_text(text, params, error, says):
    with create_surface(29, 13) as s:
        s.set_pixels(PHOTO)
        s.set_uniform("w", bytes(8))
        s.dispatch_compute(text, params)
        assert says in refused(s, error)
        assert np.array_equal(s.to_array(), PHOTO)


def test_every_error_is_a_dala_error():
    assert issubclass(ShaderError, DalaError)
    assert dala.ShaderError is ShaderError
    assert str(ShaderError("it is long", line="x" * 300, column=200, lineno=1)).splitlines() == [
        "shader 'shader', line 1: it is long",
        "    " + "x" * 120,
        "    " + " " * 80 + "^",
    ]


def test_shader_and_kernel_agree(wgsl_device):
    """The same picture from WGSL, from kernel text, and from run_kernel."""
    source = flood("if (id.x < 377u) { pixels[id.x] = pixels[id.x] ^ 0x00ffffffu; }")
    text = "def f(px: Pixel): return rgba(1 - px.r, 1 - px.g, 1 - px.b, px.a)"
    with create_surface(29, 13) as one, create_surface(29, 13) as other:
        one._renderer.shaders = SurfaceShaders(wgsl_device)
        for s, shader in ((one, source), (other, text)):
            s.set_pixels(PHOTO)
            s.dispatch_compute(shader, b"", (6, 1, 1))
        assert one.get_pixels() == other.get_pixels()
        out = buffer_zeros(PHOTO.shape, "u8", device="cpu")
        run_kernel("invert", [from_array(PHOTO, device="cpu")], out)
        assert one.get_pixels() == np.array(to_array(out)).tobytes()


# kernels and dicts --------------------------------------------------------------------------------


@dala.gpu.compute.kernel
def surface_tint(px: Pixel, *, color: vec3 = (1.0, 1.0, 1.0), n: int = 1):
    """Multiply the pixels by a color, and shift red."""
    return rgba(px.r * color[0] * n, px.g * color[1], px.b * color[2], px.a)


@dala.gpu.compute.kernel
def surface_left(img: Image):
    """Return the pixel to the left."""
    return img[-1, 0]


def test_kernel_objects_with_dicts_and_bytes():
    with create_surface(29, 13) as s:
        s.set_pixels(PHOTO)
        s.dispatch_compute(surface_tint, {"color": (1.0, 0.0, np.float32(1.0))})
        s.dispatch_compute(surface_left)
        want = PHOTO * np.array([1, 0, 1, 1], np.uint8)
        want = want[:, [0, *range(28)]]
        assert np.array_equal(s.to_array(), want)
        s.dispatch_compute(surface_tint, struct.pack("<fffi", 0.0, 0.0, 0.0, 1))
        s.dispatch_compute(surface_tint)
        assert not s.to_array()[..., :3].any()


def test_kernels_keep_their_place_among_commands_and_copy_the_dict():
    color = [0.0, 1.0, 1.0]
    with create_surface(2, 1) as s:
        s.clear("white")
        s.dispatch_compute(surface_tint, {"color": color})
        color[0] = 0.5
        s.fill_rect(0, 0, 1, 1, "red")
        assert s.get_pixels() == bytes([255, 0, 0, 255, 0, 255, 255, 255])


def test_dicts_for_text_names_and_uniforms():
    text = "def fill(px: Pixel, *, red=0.0, green: float): return rgba(red, green, 0.0, 1.0)"
    with create_surface(1, 1) as s:
        s.dispatch_compute(text, {"red": 1.0, "green": 0})
        assert s.get_pixels() == bytes([255, 0, 0, 255])
        s.load_shader("fill", text)
        s.set_uniform("green", struct.pack("<f", 1.0))
        s.dispatch_compute("fill", {})
        assert s.get_pixels() == bytes([0, 255, 0, 255])
        s.dispatch_compute("fill", {"gren": 1.0})
        assert "Did you mean 'green'" in refused(s, ParameterError)
        s.dispatch_compute("fill", {"red": "x", "green": 1})
        assert refused(s, ParameterError).startswith("fill: red must be a number")
        s.dispatch_compute("nothing", {})
        assert "no shader with this name" in refused(s)


def test_kernels_that_do_not_fit_are_refused_by_the_call():
    with create_surface(1, 1) as s:
        with pytest.raises(CommandError, match="a kernel with one input, px: Pixel or img: Image"):
            s.dispatch_compute(dala.gpu.compute.kernel("def two(x, y): return x + y", name="_two"))
        with pytest.raises(CommandError, match=r"a Kernel or a str, .*run_to_surface"):
            s.dispatch_compute(get_kernel("resize"))
        with pytest.raises(CommandError, match="a Kernel or a str, got 5"):
            s.dispatch_compute(5)
        with pytest.raises(ParameterError, match="no parameter 'colour'"):
            s.dispatch_compute(surface_tint, {"colour": 1})
        with pytest.raises(CommandError, match="workgroups must be three ints"):
            s.dispatch_compute(surface_tint, {}, (1, 2))
        with pytest.raises(CommandError, match="params must be bytes"):
            s.dispatch_compute(surface_tint, 5)
        assert s.stats["queue"] == 0
        assert s.errors == []
    with pytest.raises(dala.FreedError, match="dispatch_compute: the surface was destroyed"):
        s.dispatch_compute(surface_tint, {})


VECTORS = (
    PIXELS
    + """struct Block {
    width: u32, height: u32, // the size
    shift: i32,
    tint: vec3<f32>, amount: f32,
    more: vec2u,
}
@group(0) @binding(1) var<uniform> block: Block;
"""
    + MAIN
    + """    if (id.x >= block.width || id.y >= block.height) { return; }
    let color = vec4f(block.tint * block.amount, f32(block.shift + i32(block.more.y)) / 255.0);
    pixels[id.y * block.width + id.x] = pack4x8unorm(color);
}
"""
)


def test_dicts_for_wgsl(surface):
    given = {"tint": (1.0, 0.5, 0.0), "amount": 0.4, "shift": -5, "more": [7, 205]}
    surface.dispatch_compute(VECTORS, given, GROUPS)
    assert (surface.to_array() == (102, 51, 0, 200)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tint": (1.0, 2.0)}, "tint must be 3 numbers"),
        ({"amount": None}, "missing required parameter 'amount'"),
        ({"amount": "x"}, "amount must be a number, got 'x'"),
        ({"shift": 1.5}, "shift must be an int, got 1.5"),
        ({"more": (-1, 0)}, "more must be 2 ints of at least 0"),
        ({"amuont": 1}, "Did you mean 'amount'"),
    ],
)
def test_wrong_values_for_wgsl(change, message):
    from dala.gpu.shaders.block import pack_block
    from dala.gpu.shaders.wgsl import reflect

    given = {"tint": (1.0, 0.5, 0.0), "amount": 0.4, "shift": -5, "more": [7, 205]}
    with pytest.raises(ParameterError, match=message):
        pack_block(reflect(VECTORS, "tint"), {**given, **change})


def test_blocks_without_names_take_bytes():
    from dala.gpu.shaders.block import pack_block
    from dala.gpu.shaders.wgsl import reflect

    plain = reflect(PIXELS + BLOCK + MAIN + "}", "plain")
    with pytest.raises(ShaderError, match=r"is no struct.*Pass bytes"):
        pack_block(plain, {"a": 1})
    without = reflect(PIXELS + MAIN + "}", "none")
    assert pack_block(without, {}) == b""
    with pytest.raises(ShaderError, match="binds no block"):
        pack_block(without, {"a": 1})
    nested = VECTORS.replace("vec2u", "mat4x4f")
    with pytest.raises(ShaderError, match=r"more: mat4x4f.*Pass bytes"):
        pack_block(reflect(nested, "nested"), {"a": 1})
