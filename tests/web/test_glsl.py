"""Kernels as GLSL and ISF, in a browser's WebGL 2, beside their own results."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dala.errors import ParameterError
from dala.gpu.compute import kernel
from tests.support.web import noise, start

DRAW = """([text, width, height, bytes, floats, ints, flip]) => {
    const canvas = new OffscreenCanvas(width, height);
    const gl = canvas.getContext("webgl2");
    const shader = (kind, source) => {
        const made = gl.createShader(kind);
        gl.shaderSource(made, source);
        gl.compileShader(made);
        if (!gl.getShaderParameter(made, gl.COMPILE_STATUS)) throw Error(gl.getShaderInfoLog(made));
        return made;
    };
    const program = gl.createProgram();
    gl.attachShader(program, shader(gl.VERTEX_SHADER, `#version 300 es
        void main() {
            gl_Position = vec4(gl_VertexID % 2 * 4 - 1, gl_VertexID / 2 * 4 - 1, 0, 1);
        }`));
    gl.attachShader(program, shader(gl.FRAGMENT_SHADER, text));
    gl.linkProgram(program);
    gl.useProgram(program);
    const data = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0));
    if (flip) {
        const rows = [];
        const wide = 4 * width;
        for (let y = height - 1; y >= 0; y--) rows.push(...data.subarray(wide * y, wide * (y + 1)));
        data.set(rows);
    }
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, data);
    const at = (name) => gl.getUniformLocation(program, name);
    gl.uniform2i(at("size"), width, height);
    gl.uniform2f(at("RENDERSIZE"), width, height);
    for (const [name, value] of Object.entries(floats)) gl.uniform1fv(at(name), value);
    for (const [name, value] of Object.entries(ints)) gl.uniform1i(at(name), value);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    const out = new Uint8Array(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, out);
    return btoa(String.fromCharCode(...out));
}"""

KERNELS = {
    "swirl": """def swirl(img: Image, *, time: Time, n=3, turns: Within[float, 0.0, 2.0] = 0.5):
    "Swirl a picture."
    y, x = position()
    t = 0.0
    for i in range(n):
        t += random(i, 7) * 3
        if t > 4.0:
            break
    p = img.sample(x + t, y * turns, edge="mirror")
    return rgba(mix(p.rgb, img[1, -2].bgr, 0.25 + 0.1 * sin(time)), 1.0)""",
    "chance": """def chance(px: Pixel, *, seed=3):
    y, x = position()
    h = hash(x, y, seed)
    v = float(h >> 8) / 16777216.0
    k = (x - 9) // 4 + (y % 3)
    return rgba(v, noise(x / 5, y / 5) * 0.5 + 0.5, select(k > 0, px.r, px.g ** 2.0), 1.0)""",
    "while_": """def while_(px: Pixel, *, size: Resolution, color=(0.9, 0.5, 0.2)):
    y, x = position()
    z = (x / size.x * 3 - 2, y / size.y * 2 - 1)
    w, n = vec2(0.0, 0.0), 0
    while n < 20 and dot(w, w) < 4.0:
        w = (w.x * w.x - w.y * w.y + z.x, 2 * w.x * w.y + z.y)
        n += 1
    return rgba(color * n / 20, 1.0)""",
}
FLOATS: dict[str, Any] = {
    "swirl": {"time": [0.7], "turns": [0.75]},
    "chance": {},
    "while_": {
        "size_0": [31.0], "size_1": [18.0], "color_0": [0.9], "color_1": [0.5],
        "color_2": [0.2],
    },
}  # fmt: skip
INTS = {"swirl": {"n": 3}, "chance": {"seed": 3}, "while_": {}}
PARAMS = {"swirl": {"time": 0.7, "turns": 0.75}, "chance": {}, "while_": {}}

#: What a program that reads ISF puts before a file.
ISF = """#version 300 es
precision highp float;
precision highp int;
uniform vec2 RENDERSIZE;
uniform float TIME;
uniform sampler2D inputImage;
out vec4 made;
#define gl_FragColor made
#define IMG_SIZE(image) RENDERSIZE
#define IMG_PIXEL(image, at) texture(image, (at) / RENDERSIZE)
"""


@pytest.fixture(scope="module")
def web(playwright: Any) -> Any:
    """A page with WebGL 2 on SwiftShader."""
    flags = "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"
    made = start(playwright, *flags)
    yield made.new_page()
    made.close()


def drawn(web: Any, text: str, floats: Any, ints: Any, flip: bool = False) -> np.ndarray:
    picture = base64.b64encode(noise(18, 31).tobytes()).decode()
    made = web.evaluate(DRAW, [text, 31, 18, picture, floats, ints, flip])
    return np.frombuffer(base64.b64decode(made), np.uint8).reshape(18, 31, 4)[::-1]


@pytest.mark.parametrize("name", KERNELS)
def test_glsl_draws_what_the_kernel_does(web: Any, name: str):
    made = kernel(KERNELS[name])
    seen = drawn(web, made.source("glsl"), FLOATS[name], INTS[name])
    wanted = np.asarray(made(noise(18, 31), **PARAMS[name]))
    assert np.abs(seen[..., :3].astype(int) - wanted[..., :3]).max() <= 1


def test_isf_files_draw_it_too(web: Any, tmp_path: Path):
    made = kernel(KERNELS["swirl"])
    made.export_isf(tmp_path / "swirl.fs")
    text = (tmp_path / "swirl.fs").read_text(encoding="utf-8")
    header = json.loads(re.match(r"/\*(.*?)\*/", text, re.S)[1])
    assert header["DESCRIPTION"] == "Swirl a picture."
    assert header["INPUTS"] == [
        {"NAME": "inputImage", "TYPE": "image"},
        {"NAME": "n", "TYPE": "float", "DEFAULT": 3},
        {"NAME": "turns", "TYPE": "float", "DEFAULT": 0.5, "MIN": 0.0, "MAX": 2.0},
    ]
    inputs = "uniform float n;\nuniform float turns;\n"
    floats = {"TIME": [0.7], "turns": [0.75], "n": [3.0]}
    seen = drawn(web, ISF + inputs + text, floats, {}, flip=True)
    wanted = np.asarray(made(noise(18, 31), **PARAMS["swirl"]))
    assert np.abs(seen[..., :3].astype(int) - wanted[..., :3]).max() <= 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def f(x): return x + 1", "it has elements"),
        ("def f(px: Pixel, a: Array): return px * a[0]", "it reads arrays"),
    ],
)
def test_what_glsl_has_not_is_refused(text: str, why: str):
    with pytest.raises(ParameterError, match=why):
        kernel(text).source("glsl")
