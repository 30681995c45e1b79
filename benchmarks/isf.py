"""A folder of ISF files: which load and run, and how near they are to Chromium's WebGL2.

``python -m benchmarks.isf FOLDER [--device cpu] [--browser]`` runs four frames of each file of
160x120 pixels, with photographs as its pictures. A file agrees with the browser if 99% of the
pixels of each frame are within 2/255 of it. ``--heaviest N`` instead lists the N files that take
the longest for a frame of 1920x1080, in milliseconds.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from PIL import Image

import dala
from dala.errors import DalaError
from dala.gpu.compute.engines import auto
from dala.gpu.compute.passes.sizes import size_of
from dala.shaders.glsl.entry import parameter
from dala.shaders.interactive import IsfHeader, read_header

SIZE = (160, 120)
TIMES = (0.0, 0.5, 1.0, 1.5)
FIXED = {"DATE": (2026.0, 1.0, 2.0, 3600.0), "progress": 0.4}
CHANCE = re.compile("43758|rand|noise|hash", re.I)
TYPES = {
    "float": "float", "bool": "bool", "event": "bool", "long": "int", "color": "vec4",
    "point2D": "vec2",
}  # fmt: skip
COMMON = """#version 300 es
precision highp float; precision highp int; precision highp sampler2D;
#define IMG_NORM_PIXEL(s, c) texture(s, c)
#define IMG_PIXEL(s, c) texture(s, (c) / vec2(textureSize(s, 0)))
#define IMG_THIS_PIXEL(s) texture(s, isf_FragNormCoord)
#define IMG_THIS_NORM_PIXEL(s) texture(s, isf_FragNormCoord)
#define IMG_SIZE(s) vec2(textureSize(s, 0))
#define texture2D texture
#define vv_FragNormCoord isf_FragNormCoord
uniform int PASSINDEX, FRAMEINDEX; uniform vec2 RENDERSIZE; uniform float TIME, TIMEDELTA;
uniform vec4 DATE;
"""
VERTEX = """in vec2 isf_position; out vec2 isf_FragNormCoord;
#define varying out
void isf_vertShaderInit() {
    gl_Position = vec4(isf_position, 0.0, 1.0); isf_FragNormCoord = isf_position * 0.5 + 0.5;
}
"""


def pictures(header: IsfHeader, program: Any) -> list[np.ndarray]:
    """Photographs; a disc for masks, a wave and a falling spectrum for sound."""
    photos = [
        np.array(Image.fromarray(np.asarray(dala.samples.photo(n))[..., :3]).resize(SIZE))
        for n in ("chelsea", "coffee", "astronaut")
    ]
    photos = [np.dstack([p, np.full(p.shape[:2], 255, np.uint8)]) for p in photos]
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    disc = np.where((x - 80) ** 2 + (y - 60) ** 2 < 1600, 255, 0).astype(np.uint8)
    for i in header.inputs:
        if i.type.startswith("audio"):
            t = np.arange(256)
            wave = 128 + 100 * np.sin(t / 7)
            row = wave if i.type == "audio" else 255 * np.exp(-t / 60)
            program.images[parameter(i.name)] = np.dstack([row[None].astype(np.uint8)] * 4)
    return [
        np.dstack([disc] * 4) if "mask" in name.lower() else photos[number % 3]
        for number, name in enumerate(program.inputs)
    ]


def frames(program: Any, given: list[np.ndarray], device: str) -> np.ndarray:
    known = {p.name for p in program.params}
    values = {n: v for n, v in FIXED.items() if n in known}
    with program.start(*SIZE, device=device) as state:
        return np.stack([np.asarray(state.render(*given, time=t, **values)) for t in TIMES])


def job(header: IsfHeader, program: Any, given: list[np.ndarray], file: Path) -> dict[str, Any]:
    """What the page runs: shaders, values, images and passes."""
    text, vertex = file.read_text("utf-8", "replace"), file.with_suffix(".vs")
    images = [
        *header.images,
        *header.sounds,
        *header.imported,
        *(p.target for p in header.passes if p.target),
    ]
    common = COMMON + "".join(f"uniform sampler2D {n};\n" for n in dict.fromkeys(images))
    values = {p.name: p.default for p in program.params} | FIXED
    inputs = {}
    for i in header.inputs:
        if i.type in TYPES:
            common += f"uniform {TYPES[i.type]} {i.name};\n"
            kind, value = TYPES[i.type].replace("bool", "int"), values[parameter(i.name)]
            inputs[i.name] = [kind, list(value) if isinstance(value, tuple) else float(value)]
    for n in set(re.findall(r"\b_(\w+)_img(?:Size|Rect)\b", text)):
        common += (
            f"#define _{n}_imgSize IMG_SIZE({n})\n#define _{n}_imgRect vec4(0, 0, IMG_SIZE({n}))\n"
        )
    head = common + "in vec2 isf_FragNormCoord; out vec4 isf_out;\n#define varying in\n"
    head += "#define gl_FragColor isf_out\n"
    shader = vertex.read_text("utf-8", "replace") if vertex.is_file() else ""
    named = zip((*program.inputs, *program.images), (*given, *program.images.values()), strict=True)
    passes = []
    for p in program.passes:
        w, h = size_of(p.size, *SIZE, values, "isf") if p.target else SIZE
        passes.append({"target": p.target, "w": w, "h": h, "float": p.dtype == "f32"})
    return {
        "W": SIZE[0], "H": SIZE[1], "fs": head + text, "inputs": inputs, "frames": TIMES,
        "vs": common + VERTEX + (shader or "void main() { isf_vertShaderInit(); }"),
        "passes": passes,
        "images": {
            n: {"w": a.shape[1], "h": a.shape[0],
                "data": base64.b64encode(np.ascontiguousarray(a[::-1])).decode()}
            for n, a in named
        },
    }  # fmt: skip


def browser(held: ExitStack) -> Any:
    from playwright.sync_api import sync_playwright

    started = held.enter_context(sync_playwright())
    made = started.chromium.launch(
        executable_path=shutil.which("chromium"),
        args=["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader",
              "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"],
    )  # fmt: skip
    held.callback(made.close)
    page = made.new_page()
    page.goto("about:blank")
    return page


def compared(page: Any, work: dict[str, Any], mine: np.ndarray) -> str:
    script = (Path(__file__).parent / "isf_page.js").read_text().split("\n", 1)[1]
    answer = page.evaluate(script, work)
    if "error" in answer:
        return "not compiled by the browser"
    shape = (SIZE[1], SIZE[0], 4)
    theirs = [
        np.frombuffer(base64.b64decode(f), np.uint8).reshape(shape)[::-1] for f in answer["out"]
    ]
    near = (np.abs(mine.astype(int) - np.stack(theirs)).max(-1) <= 2).mean((1, 2)).min()
    return "agrees" if near >= 0.99 else "differs"


def heaviest(folder: Path, device: str, count: int) -> None:
    """Print the files with the slowest frames; the least of three after the first."""
    times = {}
    for file in sorted(folder.glob("*.fs")):
        program = dala.shaders.load(file)
        small = pictures(read_header(file.read_text("utf-8", "replace")), program)
        given = [np.array(Image.fromarray(p).resize((1920, 1080))) for p in small]
        buffers = [dala.gpu.compute.from_array(p, device=device) for p in given]
        with program.start(1920, 1080, device=device) as state:
            taken = []
            for number in range(4):
                begin = perf_counter()
                state.render(*buffers, time=number / 60)
                auto.get(state.device).synchronize()
                taken.append(perf_counter() - begin)
        times[file.stem] = round(min(taken[1:]) * 1000, 2)
    slow = sorted(times.items(), key=lambda item: -item[1])[:count]
    print(json.dumps({"device": state.device, "ms": dict(slow)}, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--browser", action="store_true", help="compare with Chromium's WebGL2")
    parser.add_argument("--heaviest", type=int, metavar="N", help="list the slowest files")
    args = parser.parse_args()
    if args.heaviest:
        heaviest(args.folder, args.device, args.heaviest)
        return
    counts: Counter[str] = Counter()
    notes: dict[str, str] = {}
    with ExitStack() as held:
        page = browser(held) if args.browser else None
        for file in sorted(args.folder.glob("*.fs")):
            text = file.read_text("utf-8", "replace")
            try:
                header, program = read_header(text), dala.shaders.load(file)
                counts["loaded"] += 1
                given = pictures(header, program)
                made = frames(program, given, args.device)
            except DalaError as error:
                notes[file.stem] = str(error)
                continue
            counts["ran"] += 1
            if all(f.reshape(-1, 4).std(0).max() < 0.5 for f in made):
                notes[file.stem] = "one color"
            if page is not None:
                found = compared(page, job(header, program, given, file), made)
                counts[found] += 1
                counts[f"{found}, without chance"] += not CHANCE.search(text)
                if found != "agrees":
                    notes[file.stem] = found
    print(json.dumps({"counts": dict(counts), "notes": notes}, indent=1))


if __name__ == "__main__":
    main()
