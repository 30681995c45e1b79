"""ISF files and Shadertoy texts: inputs, images, passes, vertex shaders, derivatives."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from PIL import Image

import dala
from dala.errors import LimitExceeded, ParameterError, StorageNotFound, UnknownParameter
from dala.media import Scene, gpu
from dala.media.filters.declarations import parameters_of
from dala.media.transitions import Transition
from dala.shaders import isf, load, shadertoy
from dala.studio.catalogue.parameters import parameter
from dala.web.controls import control
from dala.web.document import control_json

RNG = np.random.default_rng(3)
PICTURE = RNG.integers(0, 256, (6, 8, 4), dtype=np.uint8)
OTHER = RNG.integers(0, 256, (6, 8, 4), dtype=np.uint8)


def text(body, *inputs, **header):
    named = [{"NAME": i[0], "TYPE": i[1]} if isinstance(i, tuple) else i for i in inputs]
    head = json.dumps({"INPUTS": named, **header})
    return f"/*{head}*/\n{body}"


def frames(program, count, *pictures, device, size=(8, 6), dtype="u8", **params):
    with program.start(*size, dtype=dtype, device=device) as state:
        return [np.asarray(state.render(*pictures, **params)) for _ in range(count)]


IMG = ("inputImage", "image")


def test_places_and_images(dala_device):
    """The first row of a picture is at the top: y of GLSL counts from below."""
    program = isf(text("void main() { gl_FragColor = vec4(gl_FragCoord.xy, RENDERSIZE); }"))
    (made,) = frames(program, 1, device=dala_device, dtype="f32")
    assert made[0, 2].tolist() == [2.5, 5.5, 8, 6]
    assert made[5, 7].tolist() == [7.5, 0.5, 8, 6]
    reads = [
        "IMG_THIS_PIXEL(inputImage)", "IMG_NORM_PIXEL(inputImage, isf_FragNormCoord)",
        "IMG_PIXEL(inputImage, gl_FragCoord.xy)", "IMG_THIS_NORM_PIXEL(inputImage)",
        "texture2D(inputImage, isf_FragNormCoord.xy)", "through(inputImage)",
        "texelFetch(inputImage, ivec2(gl_FragCoord.xy), 0)",
        "IMG_PIXEL(inputImage, isf_FragNormCoord * IMG_SIZE(inputImage))",
        "IMG_PIXEL(inputImage, vv_FragNormCoord * _inputImage_imgRect.zw)",
    ]  # fmt: skip
    helper = "vec4 through(sampler2D s) { return texture(s, isf_FragNormCoord + 0.0); }\n"
    for read in reads:
        program = isf(text(f"{helper}void main() {{ gl_FragColor = {read}; }}", IMG))
        assert np.array_equal(frames(program, 1, PICTURE, device=dala_device)[0], PICTURE), read


def test_labels_are_shown_for_names():
    """By the studio, by exported pages and in the file that a shader is written to."""
    level = {"NAME": "level", "TYPE": "float", "DEFAULT": 1, "LABEL": "Level\n of <glow>"}
    program = isf(text("void main() { gl_FragColor = vec4(level + b); }", level, ("b", "float")))
    params = parameters_of(program)
    assert [p.label for p in params] == ["Level of <glow>", ""]
    cards = [parameter(p).get("label") for p in params]
    controls = [control(p, 1.0, "glow", 0, {}) for p in params]
    assert cards == ["Level of <glow>", None]
    assert [control_json(c).get("label") for c in controls] == cards
    assert '"LABEL": "Level of <glow>"' in program.source("isf")


def test_inputs_are_parameters():
    program = isf(text(
        "void main() { gl_FragColor = vec4(level); }",
        {"NAME": "level", "TYPE": "float", "MIN": 0, "MAX": 2, "DEFAULT": 5},
        {"NAME": "mode", "TYPE": "long", "VALUES": [1, 4], "LABELS": ["a", "b"], "DEFAULT": 4},
        {"NAME": "on", "TYPE": "bool", "DEFAULT": True}, ("hit", "event"),
        {"NAME": "tint", "TYPE": "color", "DEFAULT": [1, 0.5, 0]}, ("at", "point2D"),
        ("range", "float"), DESCRIPTION="All types.", CREDIT="me",
    ))  # fmt: skip
    known = {p.name: p for p in program.params}
    assert (known["level"].low, known["level"].high, known["level"].default) == (0, 2, 2)
    assert (known["mode"].type, known["mode"].low, known["mode"].default) == ("int", 1, 4)
    assert (known["on"].default, known["hit"].default) == (True, False)
    assert (known["tint"].default, known["at"].default) == ((1, 0.5, 0, 1), (0, 0))
    assert known["range_"].type == "float"
    assert program.doc == "All types."
    assert {role: name for name, role in program.roles}["time"] == "TIME"
    with pytest.raises(ParameterError, match="from 0 to 2"):
        frames(program, 1, device="reference", level=3.0)


def test_passes_keep_frames_and_sizes(dala_device):
    body = """
    void main() {
        if (PASSINDEX == 0) gl_FragColor = IMG_THIS_PIXEL(sum) + vec4(0.25, 0.0, 0.0, 1.0);
        else if (PASSINDEX == 1) gl_FragColor = vec4(IMG_PIXEL(sum, vec2(0.5)).r, RENDERSIZE, 1);
        else gl_FragColor = IMG_NORM_PIXEL(small, isf_FragNormCoord) + vec4(0, 0, 0, 1);
    }"""
    passes = [
        {"TARGET": "sum", "PERSISTENT": True, "FLOAT": True, "WIDTH": 1, "HEIGHT": "1"},
        {"TARGET": "small", "FLOAT": True, "WIDTH": "floor($WIDTH/4.0)", "HEIGHT": "max($n,2.0)"},
        {},
    ]
    program = isf(text(body, {"NAME": "n", "TYPE": "float", "DEFAULT": 1}, PASSES=passes))
    assert program.remembers
    made = frames(program, 3, device=dala_device, dtype="f32", n=3.0)
    assert [f[1, 1].tolist() for f in made] == [[0.25 * k, 2, 3, 2] for k in (1, 2, 3)]


def test_vertex_shaders_are_interpolated(dala_device):
    """The corners are clamped, and what is between them is not: as GPUs do it."""
    vertex = """
    #if __VERSION__ <= 120
    varying vec2 left, both[2];
    #else
    out vec2 left; out vec2 both[2];
    #endif
    void main() {
        isf_vertShaderInit();
        left = clamp(isf_FragNormCoord - vec2(0.5, 0.0), 0.0, 1.0);
        both[0] = isf_FragNormCoord * gain; both[1] = vec2(3.0);
    }"""
    body = """
    in vec2 left; in vec2 both[2];
    void main() { gl_FragColor = vec4(left, both[0].x, both[1].y); }"""
    program = isf(text(body, {"NAME": "gain", "TYPE": "float", "DEFAULT": 2}), vertex=vertex)
    (made,) = frames(program, 1, device=dala_device, dtype="f32")
    u, v = (np.arange(8) + 0.5) / 8, (5.5 - np.arange(6)) / 6
    assert np.allclose(made[..., 0], np.broadcast_to(u * 0.5, (6, 8)), atol=1e-6)
    assert np.allclose(made[..., 1], np.broadcast_to(v[:, None], (6, 8)), atol=1e-6)
    assert np.allclose(made[..., 2:], np.dstack(np.broadcast_arrays(2 * u, 3.0)), atol=1e-6)
    moved = "void main() { isf_vertShaderInit(); gl_Position.xy *= 0.5; }"
    (made,) = frames(isf(text("void main() { gl_FragColor = vec4(isf_FragNormCoord, 1, 1); }"),
                         vertex=moved), 1, device=dala_device, dtype="f32")  # fmt: skip
    assert made[0].max() == made[:, :2].max() == 0
    assert np.allclose(made[2, 2], [2 * (2.5 / 8) - 0.5, 2 * (3.5 / 6) - 0.5, 1, 1], atol=1e-6)


def test_derivatives(dala_device):
    """The difference within quads; 0 where the neighbor does not come there."""
    body = """
    float twice(float x) { return dFdx(x * 2.0); }
    void main() {
        vec2 p = gl_FragCoord.xy; float d = 9.0;
        if (p.x > 1.0) d = dFdx(p.x * p.x);
        float e = fwidth(vec2(p.x, p.y * 3.0)).y;
        gl_FragColor = vec4(d, dFdy(p.y * p.y), e, twice(p.x) + twice(p.y));
    }"""
    (made,) = frames(isf(text(body)), 1, device=dala_device, dtype="f32")
    x = np.arange(8)
    pair = (x - x % 2 + 1.5) ** 2 - (x - x % 2 + 0.5) ** 2
    y = 5 - np.arange(6)
    rise = (y - y % 2 + 1.5) ** 2 - (y - y % 2 + 0.5) ** 2
    assert np.allclose(made[..., 0], np.where(x < 1, 9, np.where(x < 2, 0, pair)))
    assert np.allclose(made[..., 1], rise[:, None])
    assert np.allclose(made[..., 2:], [3, 2])


def test_discard_and_colors(dala_device):
    body = "void main() { if (gl_FragCoord.x < 4.0) discard; gl_FragColor = vec4(1.0); }"
    (made,) = frames(isf(text(body)), 1, device=dala_device)
    assert made[:, :4].max() == 0
    assert made[:, 4:].min() == 255
    body = "out vec4 mine; void main() { mine = vec4(0, 1, 0, 1); }"
    assert frames(isf(text(body)), 1, device=dala_device)[0][0, 0].tolist() == [0, 255, 0, 255]


def test_shadertoy(dala_device):
    program = shadertoy(
        "void mainImage(out vec4 c, in vec2 p) { c = vec4(texture(iChannel1, p / iResolution.xy).r,"
        " texelFetch(iChannel0, ivec2(p), 0).r * GAIN, iMouse.y / iResolution.y, 0.0); }",
        "#define GAIN 0.5\n",
        {"A": "void mainImage(out vec4 c, in vec2 p) "
              "{ c = texelFetch(iChannel0, ivec2(p), 0) + float(iFrame + 1) * 0.25; }"},
        {"image": ["A", PICTURE], "A": ["A"]},
    )  # fmt: skip
    with program.start(8, 6, device=dala_device) as state:
        made = [state.render(pointer=(2.0, 1.5, 1.0)).numpy() for _ in range(2)]
    assert np.array_equal(made[1][..., 0], PICTURE[..., 0])
    assert [f[0, 0, 1:].tolist() for f in made] == [[32, 191, 255], [96, 191, 255]]
    repeated = shadertoy("void mainImage(out vec4 c, vec2 p) "
                         "{ c = texture(iChannel0, p / iResolution.xy + 1.0); }",
                         channels=["film"], edge="repeat")  # fmt: skip
    (made,) = frames(repeated, 1, PICTURE, device=dala_device)
    assert np.array_equal(made[..., :3], PICTURE[..., :3])


def test_sound(dala_device):
    program = isf(text("void main() { gl_FragColor = vec4(IMG_NORM_PIXEL(w, vec2(0.75, 0.5)).r, "
                       "IMG_NORM_PIXEL(f, vec2(0.3125, 0.5)).g, IMG_SIZE(w).x / 255.0, 1.0); }",
                       {"NAME": "w", "TYPE": "audio", "MAX": 2},
                       {"NAME": "f", "TYPE": "audioFFT", "MAX": 8}))  # fmt: skip
    tone = np.sin(np.arange(4096) * 2.5 * np.pi / 8)
    toy = shadertoy("void mainImage(out vec4 c, vec2 p) { c = vec4("
                    "texture(iChannel0, vec2(0.6259, 0.25)).x, texelFetch(iChannel0, "
                    "ivec2(511, 1), 0).x, texelFetch(iChannel0, ivec2(9, 0), 0).x, 1.0); }",
                    channels=["sound"])  # fmt: skip
    assert program.inputs == toy.inputs == ()
    for made, wanted in ((program, (128, 0, 2)), (toy, (0, 128, 0))):
        with made.start(2, 2, device=dala_device) as state:
            assert state.render().numpy()[0, 0, :3].tolist() == list(wanted)
            found = state.render(sound=np.append(tone, 0.5)).numpy()[0, 0, :3].tolist()
            low, high = sorted(found[:2])
            assert (low, high >= 250, found[0] == low) == (192, True, made is program)
            with pytest.raises(ParameterError, match="sound must be samples"):
                state.render(sound=3.0)
    picture = np.zeros((2, 4, 3), np.uint8)
    picture[0] = 200  # the spectrum
    still = shadertoy("void mainImage(out vec4 c, vec2 p) { c = texture(iChannel0, vec2(0.25)); }",
                      channels=["sound"], sound=picture)  # fmt: skip
    assert frames(still, 1, device=dala_device)[0][0, 0, 0] == 200


GAIN = text("void main() { vec4 c = IMG_THIS_PIXEL(inputImage); "
            "gl_FragColor = vec4(c.rgb * gain * (TIME + 1.0), c.a); }",
            IMG, {"NAME": "gain", "TYPE": "float", "DEFAULT": 0.5})  # fmt: skip


def test_shaders_go_where_filters_go():
    program = isf(GAIN)
    half = np.floor(PICTURE * 0.5 + 0.5).astype(np.uint8)
    half[..., 3] = PICTURE[..., 3]
    assert np.array_equal(gpu.apply(PICTURE, program, device="cpu"), half)
    with gpu.start_pipeline(8, 6, device="cpu") as pipeline:
        made = pipeline.process(PICTURE, [(program, {"gain": 1.0}), "invert", program])
    assert np.array_equal(made[..., 3], PICTURE[..., 3])
    with Scene(8, 6, background="gray", device="cpu") as scene:
        scene.add_effect(program)
        first, later = (scene.render(time=t).numpy()[0, 0, 0] for t in (0.0, 1.0))
    assert (first, later) == (64, 128)
    assert gpu.apply(PICTURE, pickle.loads(pickle.dumps(program)), device="cpu").shape == (6, 8, 4)
    mask = isf(text("void main() { gl_FragColor = IMG_THIS_PIXEL(mask); }", IMG, ("mask", "image")))
    assert np.array_equal(gpu.apply(PICTURE, mask, mask=OTHER, device="cpu"), OTHER)


def test_transitions():
    program = isf(
        text(
            "void main() { gl_FragColor = mix(IMG_THIS_PIXEL(startImage), "
            "IMG_THIS_PIXEL(endImage), progress); }",
            ("startImage", "image"),
            ("endImage", "image"),
            ("progress", "float"),
        )
    )
    made = Transition(program).mix(PICTURE, OTHER, 0.25)
    assert np.abs(made - (PICTURE * 0.75 + OTHER * 0.25)).max() <= 1


def test_files(tmp_path):
    (tmp_path / "gain.fs").write_text("\ufeff" + GAIN)
    assert load(tmp_path / "gain.fs").name == "gain"
    Image.fromarray(OTHER).save(tmp_path / "noise.png")
    body = "void main() { gl_FragColor = IMG_THIS_PIXEL(noise); }"
    (tmp_path / "a.fs").write_text(text(body, IMPORTED={"noise": {"PATH": "noise.png"}}))
    program = load(tmp_path / "a.fs")
    assert program.inputs == ()
    assert np.array_equal(frames(program, 2, device="cpu")[1], OTHER)
    assert np.array_equal(gpu.apply(PICTURE, program, device="cpu"), OTHER)
    (tmp_path / "b.fs").write_text(text(body, IMPORTED={"noise": {"PATH": "../noise.png"}}))
    with pytest.raises(ParameterError, match="in the folder of the shader"):
        load(tmp_path / "b.fs")
    with pytest.raises(StorageNotFound, match="none"):
        load(tmp_path / "none.fs")
    with pytest.raises(ParameterError, match="JSON header"):
        isf("void main() {}")


def test_limits_hold():
    program = isf(
        text("void main() { float x = 0.0; while (x >= 0.0) x += 1.0; gl_FragColor = vec4(x); }"),
        limits=dala.limits(iterations=10_000),
    )
    with pytest.raises(LimitExceeded):
        frames(program, 1, device="cpu")


def test_unknown_parameters():
    with pytest.raises(UnknownParameter, match="gain"):
        gpu.apply(PICTURE, isf(GAIN), gian=2.0)
