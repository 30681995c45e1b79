"""Shaders at 1080p: against the same by hand in Numba, and as GLSL on SwiftShader in Chromium.

``sample`` is a turned picture by ``img.sample`` against the filter ``warp_affine``; its target is
1.5 times that filter's time. Numba and Chromium are left out where they are missing.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np

import dala
from benchmarks.harness import Machine, judge, race, write
from dala.gpu.compute import Kernel, from_array, kernel
from dala.gpu.compute.kernel import get

WIDTH, HEIGHT = 1920, 1080
ANGLE = math.radians(12)

SAMPLE = kernel("""
def bench_sample(img: Image, *, c=1.0, s=0.0):
    y, x = position()
    u, v = x - 959.5, y - 539.5
    return img.sample(c * u - s * v + 959.5, s * u + c * v + 539.5)
""")
SILK = kernel("""
def bench_silk(*, t=1.0):
    y, x = position()
    u, v = x / 540.0 - 1.78, y / 540.0 - 1
    for i in range(5):
        u, v = u + 0.55 * sin(1.7 * v + t + i), v + 0.45 * cos(1.9 * u - t + 0.6 * i)
    glow = 0.06 / (0.05 + abs(sin(1.5 * u + v)))
    return rgba(0.5 + 0.5 * sin(u + t) + glow, 0.5 + 0.5 * sin(v) + glow, 0.8 + glow, 1.0)
""")
JULIA = kernel("""
def bench_julia(*, t=1.0):
    y, x = position()
    a, b = (x - 960.0) / 400.0, (y - 540.0) / 400.0
    p, q = 0.7885 * cos(t), 0.7885 * sin(t)
    n = 0
    while n < 64 and a * a + b * b < 64.0:
        a, b = a * a - b * b + p, 2 * a * b + q
        n += 1
    v = n / 64.0
    return rgba(v, v * v, 1.0 - v, 1.0)
""")


def by_hand() -> dict[str, Callable[[np.ndarray, float], None]]:
    """Return the shaders as loops that Numba compiles; none where it is missing."""
    try:
        import numba
    except ImportError:
        return {}
    one = np.float32(1.0)

    @numba.njit(fastmath=True, inline="always")
    def byte(v):
        return np.uint8(min(max(v, np.float32(0.0)), one) * np.float32(255.0) + np.float32(0.5))

    f = np.float32

    @numba.njit(parallel=True, fastmath=True)
    def silk(out, t):
        for y in numba.prange(out.shape[0]):
            for x in range(out.shape[1]):
                u, v = f(x) / f(540.0) - f(1.78), f(y) / f(540.0) - one
                for i in range(5):
                    a = u + f(0.55) * np.sin(f(1.7) * v + t + f(i))
                    v = v + f(0.45) * np.cos(f(1.9) * u - t + f(0.6) * f(i))
                    u = a
                glow = f(0.06) / (f(0.05) + abs(np.sin(f(1.5) * u + v)))
                out[y, x, 0] = byte(f(0.5) + f(0.5) * np.sin(u + t) + glow)
                out[y, x, 1] = byte(f(0.5) + f(0.5) * np.sin(v) + glow)
                out[y, x, 2] = byte(f(0.8) + glow)
                out[y, x, 3] = 255

    @numba.njit(parallel=True, fastmath=True)
    def julia(out, t):
        p, q = f(0.7885) * np.cos(t), f(0.7885) * np.sin(t)
        for y in numba.prange(out.shape[0]):
            for x in range(out.shape[1]):
                a, b = (f(x) - f(960.0)) / f(400.0), (f(y) - f(540.0)) / f(400.0)
                n = 0
                while n < 64 and a * a + b * b < f(64.0):
                    a, b = a * a - b * b + p, f(2.0) * a * b + q
                    n += 1
                v = f(n) / f(64.0)
                out[y, x, 0] = byte(v)
                out[y, x, 1] = byte(v * v)
                out[y, x, 2] = byte(one - v)
                out[y, x, 3] = 255

    return {"silk": silk, "julia": julia}


DRAW = r"""([text, width, height, rounds]) => {
    const gl = new OffscreenCanvas(width, height).getContext("webgl2");
    const program = gl.createProgram();
    const corner = "gl_VertexID % 2 * 4 - 1, gl_VertexID / 2 * 4 - 1, 0, 1";
    for (const [kind, source] of [[gl.FRAGMENT_SHADER, text],
        [gl.VERTEX_SHADER, `#version 300 es\nvoid main() { gl_Position = vec4(${corner}); }`]]) {
        const made = gl.createShader(kind);
        gl.shaderSource(made, source);
        gl.compileShader(made);
        gl.attachShader(program, made);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    gl.uniform2i(gl.getUniformLocation(program, "size"), width, height);
    gl.uniform1f(gl.getUniformLocation(program, "t"), 1);
    const one = new Uint8Array(4), times = [];
    for (let i = 0; i < rounds; i++) {
        const begin = performance.now();
        gl.drawArrays(gl.TRIANGLES, 0, 3);
        gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, one);
        times.push(performance.now() - begin);
    }
    return Math.min(...times.slice(2));
}"""


def in_chromium(kernels: dict[str, Kernel], rounds: int = 12) -> dict[str, float]:
    """Return milliseconds of each shader as GLSL, by WebGL 2 on SwiftShader."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    program = shutil.which("chromium")
    if program is None:
        return {}
    flags = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_playwright() as api:
        browser = api.chromium.launch(executable_path=program, args=flags)
        page = browser.new_page()
        found = {
            name: page.evaluate(DRAW, [made.source("glsl"), WIDTH, HEIGHT, rounds])
            for name, made in kernels.items()
        }
        browser.close()
    return found


def main() -> None:
    results: dict[str, Any] = {}
    rng = np.random.default_rng(1)
    with dala.device("cpu"):
        picture = from_array(rng.integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8))
        out = from_array(np.zeros((HEIGHT, WIDTH, 4), np.uint8))
        other = from_array(np.zeros((HEIGHT, WIDTH, 4), np.uint8))
        c, s = math.cos(ANGLE), math.sin(ANGLE)
        x, y = (WIDTH - 1) / 2, (HEIGHT - 1) / 2
        matrix = (c, -s, x - c * x + s * y, s, c, y - s * x - c * y)
        warp = get("warp_affine")
        contestants: dict[str, Callable[[], Any]] = {
            "dala": lambda: SAMPLE.run([picture], out, {"c": c, "s": s}),
            "warp_affine": lambda: warp.run([picture], other, {"matrix": matrix}),
        }
        with Machine() as machine:
            times = race(contestants)
        inside = np.abs(
            out.numpy()[300:700, 600:1300].astype(int) - other.numpy()[300:700, 600:1300]
        )
        results["sample"] = {"times": times, "apart": int(inside.max())}
        results["sample"] |= judge(times, {"warp_affine": 1 / 1.5}, machine)
        hand = by_hand()
        shaders = {"silk": SILK, "julia": JULIA}
        browser = in_chromium(shaders)
        for name, made in shaders.items():
            found: dict[str, Callable[[], Any]] = {
                "dala": lambda m=made: m.run([], out, {"t": 1.0})
            }
            theirs = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
            if name in hand:
                found["numba"] = lambda n=name, o=theirs: hand[n](o, np.float32(1.0))
            with Machine() as machine:
                times = race(found, 15)
            apart = np.abs(out.numpy().astype(int) - theirs) if name in hand else np.zeros(1)
            if name in browser:
                times["swiftshader"] = {"min_ms": browser[name], "median_ms": browser[name]}
            results[name] = {"times": times, "apart": float((apart > 2).mean())}
            results[name] |= judge(times, dict.fromkeys(set(times) - {"dala"}, 1.0), machine)
    for name, row in results.items():
        shown = ", ".join(f"{k} {v['min_ms']:.2f} ms" for k, v in row["times"].items())
        print(f"{name}: {shown}; {row.get('targets', row)}")
    write("shaders", results, ("numba",))


if __name__ == "__main__":
    main()
