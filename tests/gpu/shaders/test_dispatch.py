"""Compute on a surface: WGSL on every adapter, kernel text on every engine."""

from __future__ import annotations

import gc
import os
import struct

import numpy as np
import pytest

import dala
from dala.errors import (
    CommandError,
    DalaError,
    DeviceUnavailable,
    KernelSyntaxError,
    ParameterError,
    ShaderError,
)
from dala.gpu import command, create_surface
from dala.gpu.compute import (
    Image,
    Pixel,
    buffer,
    buffer_zeros,
    from_array,
    read_list,
    rgba,
    run_kernel,
    to_array,
    vec3,
)
from dala.gpu.compute.kernel import get as get_kernel
from dala.gpu.shaders.dispatch import SurfaceShaders, wgsl_available
from tests.support.engines import NO_ADAPTER, run, targets

RNG = np.random.default_rng(11)
PHOTO = RNG.integers(0, 256, (13, 29, 4), dtype=np.uint8)
GROUPS = (4, 2, 1)  # of 8 x 8, which cover the photo

PIXELS = "@group(0) @binding(0) var<storage, read_write> pixels: array<u32>;\n"
BLOCK = "@group(0) @binding(1) var<uniform> block: vec4u;\n"
MAIN = "@compute @workgroup_size(8, 8)\nfn main(@builtin(global_invocation_id) id: vec3u) {\n"

#: Subtracts a parameter from red; keeps green, blue and alpha.
DARKER = (
    PIXELS
    + "struct Block { width: u32, height: u32, less: u32 }\n"
    + "@group(0) @binding(1) var<uniform> block: Block;\n"
    + MAIN
    + """    if (id.x >= block.width || id.y >= block.height) { return; }
    let at = id.y * block.width + id.x;
    let red = pixels[at] & 255u;
    pixels[at] = (pixels[at] & 0xffffff00u) | (red - min(red, block.less));
}
"""
)


def flood(body: str, *declared: str, size: str = "64") -> str:
    """Return a shader with one invocation per pixel."""
    head = PIXELS + "".join(line + "\n" for line in declared)
    return (
        f"{head}@compute @workgroup_size({size})\n"
        f"fn main(@builtin(global_invocation_id) id: vec3u) {{ {body} }}\n"
    )


def darker(pixels: np.ndarray, less: int) -> np.ndarray:
    out = pixels.astype(int)
    out[..., 0] = np.maximum(out[..., 0] - less, 0)
    return out.astype(np.uint8)


@pytest.fixture(params=[name for name in targets() if name.startswith("webgpu")])
def wgsl_device(request) -> str:
    device = targets()[request.param]
    if device is None:
        if os.environ.get("CI") == "true" or os.environ.get("DALA_REQUIRE_WEBGPU") == "1":
            pytest.fail(NO_ADAPTER)
        pytest.skip(NO_ADAPTER)
    return device


@pytest.fixture
def surface(wgsl_device):
    """A surface with the photo, whose WGSL runs on each adapter."""
    with create_surface(29, 13) as s:
        s._renderer.shaders = SurfaceShaders(wgsl_device)
        s.set_pixels(PHOTO)
        yield s


def refused(s, error=ShaderError) -> str:
    """Return the message of the error that the next wait raises."""
    with pytest.raises(error) as caught:
        s.synchronize()
    assert s.errors[-1] is caught.value
    s.synchronize()
    return str(caught.value)


# WGSL -----------------------------------------------------------------------------------------
def test_shader_reads_size_and_params(surface):
    surface.load_shader("darker", DARKER)
    surface.dispatch_compute("darker", struct.pack("<I", 40), GROUPS)
    assert np.array_equal(surface.to_array(), darker(PHOTO, 40))


def test_shader_given_by_source(surface):
    dala.gpu.dispatch_compute(surface, DARKER, struct.pack("<I", 9), GROUPS)
    dala.gpu.dispatch_compute(surface, DARKER, struct.pack("<I", 9), GROUPS)
    assert np.array_equal(surface.to_array(), darker(PHOTO, 18))


def test_block_as_a_storage_buffer(surface):
    source = DARKER.replace("var<uniform> block", "var<storage, read> block")
    surface.dispatch_compute(source, struct.pack("<I", 40), GROUPS)
    assert np.array_equal(surface.to_array(), darker(PHOTO, 40))


def test_next_command_sees_the_result(surface):
    surface.clear((200, 100, 50, 255))
    surface.set_clip(0, 0, 3, 3)  # does not apply to shaders
    surface.dispatch_compute(DARKER, struct.pack("<I", 30), GROUPS)
    surface.reset_clip()
    surface.fill_rect(0, 0, 2, 2, (60, 0, 0, 255))
    surface.present()
    surface.dispatch_compute(DARKER, struct.pack("<I", 20), GROUPS)
    want = np.full((13, 29, 4), (150, 100, 50, 255), np.uint8)
    want[:2, :2] = (40, 0, 0, 255)
    assert np.array_equal(surface.to_array(), want)
    surface.present()
    surface.synchronize()
    assert np.array_equal(surface._renderer.front, want)


def test_compute_commands_in_a_batch(surface):
    params = struct.pack("<I", 10)
    surface.submit(
        command.encode_batch(
            [
                command.encode_load_shader("a", DARKER),
                command.encode_dispatch_compute("a", params, GROUPS),
                command.encode_fill_rect(0, 0, 1, 1, (90, 0, 0, 255)),
                command.encode_dispatch_compute("a", params, GROUPS),
            ]
        )
    )
    want = darker(PHOTO, 20)
    want[0, 0] = (80, 0, 0, 255)
    assert np.array_equal(surface.to_array(), want)


def test_loading_again_replaces_unless_the_source_is_refused(surface):
    surface.load_shader("it", DARKER)
    surface.load_shader("it", flood("if (id.x < 377u) { pixels[id.x] = 1u; }"))
    surface.dispatch_compute("it", b"", (6, 1, 1))
    assert surface.get_pixels() == struct.pack("<I", 1) * 377
    surface.load_shader("it", flood("pixels[id.x] = nothing;"))
    surface.dispatch_compute("it", b"", (6, 1, 1))
    assert "nothing" in refused(surface)
    assert surface.get_pixels() == struct.pack("<I", 1) * 377
    surface.load_shader("it", flood("if (id.x < 377u) { pixels[id.x] = 2u; }"))
    surface.dispatch_compute("it", b"", (6, 1, 1))
    assert surface.get_pixels() == struct.pack("<I", 2) * 377


def test_uniforms_by_name(surface):
    surface.load_shader(
        "sum",
        flood(
            "if (id.x < 377u) { pixels[id.x] = u32(tint.y) + table[id.x % arrayLength(&table)]; }",
            "@group(0) @binding(7) var<storage, read> table: array<u32>;",
            "@binding(2) @group(0) var < uniform > tint : vec4f; // var<uniform> no: f32;",
        ),
    )
    surface.set_uniform("tint", struct.pack("<4f", 1, 1000, 3, 4))
    surface.set_uniform("table", struct.pack("<3I", 5, 6, 7))
    surface.dispatch_compute("sum", b"", (6, 1, 1))
    got = surface.to_array().reshape(-1).view(np.uint32)
    assert got.tolist() == [1000 + 5 + n % 3 for n in range(377)]
    surface.set_uniform("table", np.arange(400, dtype=np.uint32))
    surface.dispatch_compute("sum", b"", (6, 1, 1))
    got = surface.to_array().reshape(-1).view(np.uint32)
    assert got.tolist() == [1000 + n for n in range(377)]


def test_number_of_workgroups(surface):
    source = flood(
        "pixels[id.x + 8u * (id.y + 3u * id.z)] = id.x + 100u * id.y + 10000u * id.z;", size="2"
    )
    surface.set_pixels(bytes(PHOTO.size))
    surface.dispatch_compute(source, b"", (4, 3, 2))
    got = surface.to_array().reshape(-1).view(np.uint32)
    want = [x + 100 * y + 10000 * z for z in range(2) for y in range(3) for x in range(8)]
    assert got.tolist() == want + [0] * (377 - 48)
    surface.dispatch_compute(source, b"", (0, 3, 2))
    assert surface.to_array().reshape(-1).view(np.uint32).tolist() == got.tolist()


def test_length_of_the_pixels_array(surface):
    source = flood("if (id.x == 0u) { pixels[0] = arrayLength(&pixels); }")
    surface.dispatch_compute(source)
    assert struct.unpack("<I", surface.read_pixels(0, 0, 1, 1)) == (377,)
    surface.resize(5, 3)
    surface.dispatch_compute(source)
    assert struct.unpack("<I", surface.read_pixels(0, 0, 1, 1)) == (15,)


def test_unused_variables(surface):
    source = flood(
        "if (id.x < 377u) { pixels[id.x] = 3u; }",
        BLOCK,
        "@group(0) @binding(5) var<uniform> unused: vec4f;",
    )
    surface.set_uniform("unused", bytes(16))
    surface.dispatch_compute(source, bytes(8), (6, 1, 1))
    assert surface.get_pixels() == struct.pack("<I", 3) * 377


def test_entry_point_with_another_name(surface):
    source = flood("if (id.x < 377u) { pixels[id.x] = helper(); }").replace("fn main", "fn paint")
    surface.dispatch_compute(source + "fn helper() -> u32 { return 4u; }", b"", (6, 1, 1))
    assert surface.get_pixels() == struct.pack("<I", 4) * 377


# its errors -----------------------------------------------------------------------------------
def test_compile_error_has_line_and_caret(surface):
    surface.load_shader("wave", flood("\n    pixels[id.x] = foo + 1u;\n"))
    assert refused(surface) == (
        "shader 'wave', line 4: no definition in scope for identifier: `foo`\n"
        "    pixels[id.x] = foo + 1u;\n"
        "                   ^ unknown identifier"
    )
    error = surface.errors[-1]
    assert isinstance(error, ValueError)
    assert (error.shader, error.lineno, error.column) == ("wave", 4, 19)
    assert error.text == "    pixels[id.x] = foo + 1u;"
    surface.dispatch_compute("wave")
    assert refused(surface) == (
        "shader 'wave': no shader with this name is loaded. "
        "load_shader(surface, name, source) loads one."
    )
    assert np.array_equal(surface.to_array(), PHOTO)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (flood("pixels[id.x] = 1.5;"), "line 3: "),
        (flood("pixels[id.x] = 1u;", size="4096, 4096"), "workgroup size"),
        (flood("pixels[id.x] = 1u"), "expected"),
        (flood("var a = array<u32, 2>(1u, 2u); pixels[0] = a[7];"), "line 3: "),
        (flood("let z = " + "(" * 9999 + "1" + ")" * 9999 + ";"), "more than 500 operators and"),
        (flood("let z = " + "1+" * 9999 + "1;"), "more than 500 operators and"),
        (flood("if true {} " + "else if true {} " * 9999), "more than 500 operators and"),
    ],
)
def test_compile_errors(surface, source, says):
    surface.load_shader("bad", source)
    assert says in refused(surface)
    surface.dispatch_compute(DARKER, struct.pack("<I", 5), GROUPS)
    assert np.array_equal(surface.to_array(), darker(PHOTO, 5))


def test_unknown_shader_name(surface):
    surface.load_shader("darker", DARKER)
    surface.dispatch_compute("darkr")
    expected = "shader 'darkr': no shader with this name is loaded. Did you mean 'darker'?"
    assert refused(surface) == expected


def test_uniform_that_is_not_set(surface):
    source = flood("pixels[id.x] = u32(tint.x);", "@group(0) @binding(3) var<uniform> tint: vec4f;")
    surface.load_shader("tinted", source)
    surface.dispatch_compute("tinted")
    assert refused(surface) == (
        "shader 'tinted': the uniform 'tint' is not set. "
        "Set it first: set_uniform(surface, 'tint', data)"
    )
    surface.set_uniform("tint", bytes(12))
    surface.dispatch_compute("tinted")
    assert refused(surface) == "shader 'tinted': the uniform 'tint' must have 16 bytes, got 12"
    surface.set_uniform("tint", b"")
    assert refused(surface, CommandError) == (
        "set_uniform: data must be at least one byte, got b''. It is the uniform 'tint'."
    )
    surface.set_uniform("tint", bytes(70000 * 4))
    surface.dispatch_compute("tinted")
    assert "'tint' has 280000 bytes" in refused(surface)
    assert np.array_equal(surface.to_array(), PHOTO)


def test_params_of_the_wrong_size(surface):
    surface.load_shader("darker", DARKER)
    surface.dispatch_compute("darker", b"", GROUPS)
    assert refused(surface) == (
        "shader 'darker': the block 'block' has 12 bytes: 8 for width and height and 4 of params; "
        "got 0 bytes of params"
    )
    surface.dispatch_compute("darker", bytes(70000 * 4), GROUPS)
    assert "'block' has 280008 bytes" in refused(surface)
    surface.dispatch_compute(flood("pixels[0] = 0u;"), b"abcd")
    assert refused(surface).startswith(
        "shader 'source': got 4 bytes of params, but the shader binds no block for them."
    )
    assert np.array_equal(surface.to_array(), PHOTO)


def test_too_many_workgroups(surface):
    for groups in ((65536, 1, 1), (1, 2**32 - 1, 1), (1, 1, 65536)):
        surface.dispatch_compute(DARKER, bytes(4), groups)
        assert f"{groups} workgroups are more than" in refused(surface)
    with pytest.raises(CommandError):
        surface.dispatch_compute(DARKER, bytes(4), (2**32, 1, 1))
    with pytest.raises(CommandError):
        surface.dispatch_compute(DARKER, bytes(4), (-1, 1, 1))
    assert np.array_equal(surface.to_array(), PHOTO)


def test_other_work_on_the_device_continues(surface, wgsl_device):
    """A refused dispatch does not affect other work."""
    a, out = buffer([1.0, -2.0], device=wgsl_device), buffer_zeros((2,), device=wgsl_device)
    run_kernel("relu", [a], out)
    surface.dispatch_compute(DARKER, b"", GROUPS)
    run_kernel("scalar_mul", [out], out, {"scalar": 3.0})
    refused(surface)
    assert read_list(out) == [3.0, 0.0]


def test_shaders_of_many_surfaces_leave_no_buffers(wgsl_device):
    engine = buffer_zeros((1,), device=wgsl_device).engine
    gc.collect()
    engine.synchronize()
    before = engine.stats()["live_buffers"]
    surfaces = [create_surface(4, 4) for _ in range(8)]
    for n, s in enumerate(surfaces):
        s._renderer.shaders = SurfaceShaders(wgsl_device)
        s.set_uniform("u", struct.pack("<I", n))
        s.dispatch_compute(
            flood(
                "if (id.x < 16u) { pixels[id.x] = u[0]; }",
                "@group(0) @binding(2) var<storage, read> u: array<u32>;",
            )
        )
    for n, s in enumerate(surfaces):
        assert s.get_pixels() == struct.pack("<I", n) * 16
        s.close()
    del surfaces, s
    gc.collect()
    engine.synchronize()
    assert engine.stats()["live_buffers"] == before


def test_wgsl_without_an_adapter():
    with create_surface(4, 4) as s:
        s._renderer.shaders = SurfaceShaders("webgpu:99")
        s.dispatch_compute(DARKER)
        message = refused(s, DeviceUnavailable)
        assert "Kernel text (def name(px: Pixel): return ...) runs without one." in message
        s.clear("white")
        s.dispatch_compute("def f(px: Pixel): return px * 0.0")
        assert s.get_pixels() == bytes(64)


def test_supports_compute(monkeypatch):
    with create_surface(1, 1) as s:
        assert s.supports_compute() == any(d.backend == "webgpu" for d in dala.devices())
        monkeypatch.setattr(dala, "devices", list)
        assert not wgsl_available()
        assert not dala.gpu.supports_compute(s)


# kernel text ----------------------------------------------------------------------------------
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


# kernels and dicts ----------------------------------------------------------------------------
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
        pack_block(reflect(VECTORS, "tint"), {**given, **change}, "tint")


def test_blocks_without_names_take_bytes():
    from dala.gpu.shaders.block import pack_block
    from dala.gpu.shaders.wgsl import reflect

    plain = reflect(PIXELS + BLOCK + MAIN + "}", "plain")
    with pytest.raises(ShaderError, match=r"is no struct.*Pass bytes"):
        pack_block(plain, {"a": 1}, "plain")
    without = reflect(PIXELS + MAIN + "}", "none")
    assert pack_block(without, {}, "none") == b""
    with pytest.raises(ShaderError, match="binds no block"):
        pack_block(without, {"a": 1}, "none")
    nested = VECTORS.replace("vec2u", "mat4x4f")
    with pytest.raises(ShaderError, match=r"more: mat4x4f.*Pass bytes"):
        pack_block(reflect(nested, "nested"), {"a": 1}, "nested")
