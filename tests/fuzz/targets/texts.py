"""Subtitles, scene files, fonts and arrays."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

import numpy as np

from dala.errors import SceneFileError
from dala.media import TextStyle, load_scene, set_text
from dala.media.files import load_array
from dala.media.scene.file.load import named_files
from dala.media.subtitles import load_subtitles
from dala.png import encode_png
from tests.fuzz.fonts import collection, composed, layered, small_font
from tests.fuzz.target import Target, digest

SRT = (
    b"1\n00:00:01,000 --> 00:00:02,000\nHello <i>there</i> &amp; &#xD800;\n\n2\n00:00:03,000 --> "
    b'00:00:04,500\n{\\an8}<font color="#ff0000">Two</font>\nlines\n'
)
VTT = (
    b"WEBVTT\n\nSTYLE\n::cue {color: red}\n\nREGION\nid:a\nwidth:40%\n\n00:01.000 --> 00:02.000 "
    b"line:10% align:start region:a\n<v Ann>Hi</v> <c.red>x</c>\n\nNOTE no cue\n\n00:03.000 --> "
    b"00:04.500\nTwo &lt;\n"
)
ASS = (
    b"[Script Info]\nScriptType: v4.00+\nPlayResX: 640\n\n[V4+ Styles]\nFormat: Name, Fontname, "
    b"Fontsize, PrimaryColour, Alignment\nStyle: Default,Arial,20,&H00FF00FF,2\n\n[Events]\n"
    b"Format: Layer, Start, End, Style, Text\n"
    b"Dialogue: 0,0:00:01.00,0:00:02.00,Default,{\\b1\\c&HFF&}Hi\\N\n"
)


class SubtitleFiles(Target):
    """SRT, WebVTT and ASS in any encoding."""

    name = "subtitles"
    words = (
        b" --> ",
        b"00:00:01,000",
        b"99:99:99,999",
        b"\n\n",
        b"<i>",
        b"</i>",
        b"{\\an",
        b"&#",
        b"&#xDFFF;",
        b"WEBVTT",
        b"[Events]\n",
        b"Format: ",
        b"Dialogue: ",
        b"\xff\xfe",
        b"\xfe\xff",
        b"\xef\xbb\xbf",
        b"\x82\xa0",
        b"\xe4\xf6\xfc",
        b"<font color=",
        b"::cue",
        b"\r",
        b"\0",
    )

    def seeds(self) -> list[bytes]:
        return [SRT, VTT, ASS, SRT.decode().encode("utf-16"), "ä ö ü ß\n".encode("cp1252") + SRT]

    def read(self, data: bytes) -> str:
        return digest(repr(load_subtitles(data)).encode("utf-8", "backslashreplace"))


SCENE = {
    "dala": 2,
    "width": 64,
    "height": 36,
    "fps": 30,
    "background": "#102030",
    "duration": 2,
    "nodes": [
        {
            "type": "overlay",
            "id": "box",
            "color": "red",
            "size": [8, 8],
            "radius": 2,
            "opacity": 0.5,
            "position": [4, 4],
            "rotation": 30,
            "blend": "multiply",
            "shadow": True,
            "z_index": 2,
        },
        {
            "type": "text",
            "id": "title",
            "text": "Héllo\nyou",
            "size": 12,
            "position": "bottom-left",
            "margin": 3,
            "color": [255, 0, 0],
            "align": "center",
        },
        {
            "type": "group",
            "id": "both",
            "nodes": [{"type": "overlay", "color": "#00ff0080", "shape": "circle", "size": [6, 6]}],
        },
        {"type": "subtitles", "source": "1\n00:00:00,000 --> 00:00:01,000\nHi\n", "size": 8},
    ],
    "animations": [
        {"node": "box", "property": "x", "from": 0, "to": 40, "duration": 1, "easing": "cubic-out"},
    ],
}


def material(folder: Path) -> None:
    """Write the files that scenes may name."""
    (folder / "a.png").write_bytes(encode_png(np.full((4, 6, 4), 90, np.uint8)))
    (folder / "table.cube").write_text("LUT_1D_SIZE 2\n0 0 0\n1 1 1\n")
    (folder / "font.ttf").write_bytes(small_font(variable=False))
    np.save(folder / "map.npy", np.zeros((36, 64, 2), np.float32))


RICH = {
    **SCENE,
    "nodes": [
        {"type": "image", "id": "a", "source": "a.png"},
        {"type": "image", "id": "b", "source": "a.png", "fit": "cover", "crop": [0, 0, 2, 2]},
        {"type": "text", "id": "t", "text": "A", "font": ["font.ttf", "sans-serif"]},
        {"type": "animation", "node": "a", "property": "opacity", "from": 0, "to": 1,
         "duration": 1},
        {"type": "effect", "filter": "lut_apply", "params": {"lut": "table.cube"}},
        {"type": "effect", "filter": "remap", "params": {"map": "map.npy"}, "input": "late"},
        {"type": "scene", "id": "late", "scene": {"width": 16, "height": 9, "nodes": [
            {"type": "overlay", "color": "blue", "size": [3, 3]}]}},
    ],
    "layouts": [
        {"type": "grid", "nodes": ["a", "b"], "columns": 2, "gap": 1},
        {"type": "side_by_side", "nodes": ["a", "b"]},
    ],
    "animations": [],
}  # fmt: skip

OVERLAID = {
    **RICH,
    "layouts": [],
    "nodes": [
        {"type": "image", "id": "a", "source": "a.png"},
        {"type": "effect", "filter": "overlay_alpha", "params": {"over": "a.png"}, "input": "a"},
    ],
}


class SceneFiles(Target):
    """Scene files: loaded, and one small frame rendered on the CPU."""

    name = "scenes"
    errors = (FileNotFoundError,)
    words = (
        b'"type": "',
        b'"overlay"',
        b'"image"',
        b'"video"',
        b'"text"',
        b'"group"',
        b'"effect"',
        b'"nodes": [',
        b'"source": "',
        b'"\\ud800"',
        b"null",
        b"true",
        b"-1",
        b"1e308",
        b"1e-308",
        b"99999999999",
        b"NaN",
        b"Infinity",
        b'"x": ',
        b'"size": [',
        b'"scale": ',
        b'"rotation": ',
        b'"filters": ',
        b'"blur"',
        b'"crop": ',
        b'"layouts": [',
        b'"animations": [',
        b'"keyframes": ',
        b'"id": "box"',
        b'"radius": ',
        b'"../../etc/passwd"',
        b'"/dev/zero"',
        b'"http://localhost:1/a"',
        b'"easing": "',
        b'"text": "',
    )

    def seeds(self) -> list[bytes]:
        plain = json.dumps(SCENE, indent=1)
        small = json.dumps({**SCENE, "nodes": SCENE["nodes"][:1], "animations": []})  # type: ignore[index]
        plain_text = json.dumps(SCENE, ensure_ascii=False)
        more = [json.dumps(each).encode() for each in (RICH, OVERLAID)]
        return [plain.encode(), small.encode(), plain_text.encode(), *more]

    def read(self, data: bytes) -> str:
        with tempfile.TemporaryDirectory() as folder:
            material(Path(folder))
            path = Path(folder) / "scene.json"
            path.write_bytes(data)
            named_files(path)
            try:
                scene = load_scene(path, "cpu")
            except SceneFileError as error:
                error.args = tuple(str(a).replace(folder, "") for a in error.args)
                error.problems = [p.replace(folder, "") for p in error.problems]
                raise
            with scene:
                if scene.width * scene.height > 1 << 20:
                    return f"{scene.width}x{scene.height}, not rendered"
                frame = scene.render(0.5)
                return digest(frame.numpy().tobytes())


class Fonts(Target):
    """Font files that a text names: their names and characters, and letters drawn with them."""

    name = "fonts"
    words = (
        b"glyf",
        b"loca",
        b"cmap",
        b"name",
        b"fvar",
        b"OS/2",
        b"ttcf",
        b"CFF ",
        b"OTTO",
        b"sbix",
        b"COLR",
        b"CPAL",
    )

    def seeds(self) -> list[bytes]:
        plain = small_font(variable=False)
        parts = [composed(3, 4), composed(3000, 1), layered(9)]
        return [plain, collection(plain), small_font(variable=True), *parts]

    def read(self, data: bytes) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "font.ttf"
            path.write_bytes(data)
            try:
                found = set_text("AB", TextStyle(font=path, size=12))
            except Exception as error:
                error.args = tuple(str(a).replace(folder, "") for a in error.args)
                raise
        return f"{found.pixels.shape} {digest(np.asarray(found.pixels).tobytes())}"


class Arrays(Target):
    """Arrays of NumPy that filters and scene files name."""

    name = "arrays"
    words = (b"\x93NUMPY", b"'descr': '<f4'", b"'|O'", b"'shape': (", b"True", b"9" * 20, b"PK\3\4")

    def seeds(self) -> list[bytes]:
        found = []
        for made in (np.zeros((2, 3, 2), "<f4"), np.arange(4, dtype=">i2"), np.ones((2, 2), "F")):
            out = io.BytesIO()
            np.save(out, made)
            found.append(out.getvalue())
        return found

    def read(self, data: bytes) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "map.npy"
            path.write_bytes(data)
            try:
                made = load_array(path)
            except Exception as error:
                error.args = tuple(str(a).replace(folder, "") for a in error.args)
                raise
        return f"{made.dtype} {made.shape} {digest(made.tobytes())}"
