"""Subtitles and scene files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from dala.media import load_scene
from dala.media.subtitles import load_subtitles
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
    "dala": 1,
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
        return [plain.encode(), small.encode(), json.dumps(SCENE, ensure_ascii=False).encode()]

    def read(self, data: bytes) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scene.json"
            path.write_bytes(data)
            with load_scene(path, "cpu") as scene:
                if scene.width * scene.height > 1 << 20:
                    return f"{scene.width}x{scene.height}, not rendered"
                frame = scene.render(0.5)
                return digest(frame.numpy().tobytes())
