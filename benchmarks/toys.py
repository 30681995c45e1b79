"""A hundred texts in the manner of Shadertoy (``toys.glsl``) against Chromium's WebGL2.

``python -m benchmarks.toys [--device cpu]`` runs four frames of each at 160x120 pixels, with a
photograph as ``iChannel0``, and counts as ``benchmarks.isf`` does.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import dala
from benchmarks.isf import SIZE, TIMES, VERTEX, browser, compared
from dala.errors import DalaError
from dala.shaders import shadertoy

HEAD = """#version 300 es
precision highp float; precision highp int; precision highp sampler2D;
uniform int PASSINDEX, FRAMEINDEX; uniform vec2 RENDERSIZE; uniform float TIME, TIMEDELTA;
uniform vec4 DATE; uniform sampler2D iChannel0;
"""
GIVEN = """#define iResolution vec3(RENDERSIZE, 1.0)
#define iTime TIME
#define iFrame FRAMEINDEX
out vec4 toy_out;
"""
MAIN = "\nvoid main() { vec4 c; mainImage(c, gl_FragCoord.xy); toy_out = vec4(c.rgb, 1.0); }"


def texts() -> dict[str, str]:
    """Return the texts by name."""
    found = re.split(r"^//# (.+)\n", (Path(__file__).parent / "toys.glsl").read_text(), flags=re.M)
    return dict(zip(found[1::2], found[2::2], strict=True))


def job(text: str, photo: np.ndarray) -> dict[str, Any]:
    pixels = base64.b64encode(np.ascontiguousarray(photo[::-1])).decode()
    return {
        "W": SIZE[0], "H": SIZE[1], "inputs": {}, "frames": TIMES,
        "fs": HEAD + GIVEN + text + MAIN,
        "vs": HEAD + VERTEX + "void main() { isf_vertShaderInit(); }",
        "passes": [{"target": "", "w": SIZE[0], "h": SIZE[1], "float": False}],
        "images": {"iChannel0": {"w": photo.shape[1], "h": photo.shape[0], "data": pixels}},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    notes: dict[str, str] = {}
    picture = Image.fromarray(np.asarray(dala.samples.photo("chelsea"))[..., :3]).resize(SIZE)
    photo = np.dstack([np.array(picture), np.full(SIZE[::-1], 255, np.uint8)])
    with ExitStack() as held:
        page = browser(held)
        for name, text in texts().items():
            try:
                program = shadertoy(text, channels=[photo])
                with program.start(*SIZE, device=args.device) as state:
                    made = np.stack([np.asarray(state.render(time=t)) for t in TIMES])
            except DalaError as error:
                notes[name] = str(error)
                continue
            counts["ran"] += 1
            found = compared(page, job(text, photo), made)
            counts[found] += 1
            if found != "agrees":
                notes[name] = found
            if made.reshape(-1, 4).std(0).max() < 0.5:
                notes[name] = "one color"
    print(json.dumps({"texts": len(texts()), "counts": dict(counts), "notes": notes}, indent=1))


if __name__ == "__main__":
    main()
