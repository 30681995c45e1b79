"""Compute on surfaces: WGSL and its errors."""

from __future__ import annotations

import gc
import struct

import numpy as np
import pytest

import dala
from dala.errors import (
    CommandError,
    DeviceUnavailable,
)
from dala.gpu import command, create_surface
from dala.gpu.compute import (
    buffer,
    buffer_zeros,
    read_list,
    run_kernel,
)
from dala.gpu.shaders.dispatch import SurfaceShaders, wgsl_available
from tests.gpu.shaders.shaded import BLOCK, GROUPS, MAIN, PHOTO, PIXELS, flood, refused

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


def darker(pixels: np.ndarray, less: int) -> np.ndarray:
    out = pixels.astype(int)
    out[..., 0] = np.maximum(out[..., 0] - less, 0)
    return out.astype(np.uint8)


# WGSL ---------------------------------------------------------------------------------------------


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


# its errors ---------------------------------------------------------------------------------------


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
