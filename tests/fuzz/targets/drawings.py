"""Drawings and input: SVG documents, path data, and the events of a page."""

from __future__ import annotations

import io
from collections import deque

from dala.gpu import Path, command
from dala.gpu.input.inbox import Inbox
from dala.gpu.presenters.browser import page_events
from dala.gpu.raster import Canvas
from dala.media.pictures.svg import SvgDocument
from tests.fuzz.target import Target, digest

DRAWING = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 width="20mm" height="50%" viewBox="0 0 40 20">
<defs><linearGradient id="g"><stop stop-color="#0f0"/></linearGradient></defs>
<style>#r { fill: url(#g) }</style><!-- a comment -->
<a xlink:href="http://example.com/"><use href="#r"/></a>
<rect id="r" width="40" style="fill:url( '#g' )" filter="url(#f)"/>
<image href="data:image/png;base64,AAAA"/><text x="1">A&amp;B</text></svg>"""


class SvgFiles(Target):
    """SVG documents: checked, and written again for the process that draws them."""

    name = "svg"
    words = (
        b"<svg", b"</svg>", b"<!DOCTYPE svg [", b"<!ENTITY a 'b'>", b"&a;", b"<![CDATA[", b"url(",
        b"url(#g)", b"@import 'x'", b"\\", b"href='#r'", b"href='x.png'", b"data:image/png;,",
        b"xlink:", b"xmlns:xlink='", b"viewBox='", b"1e400", b"1e-400", b"100%", b"<style>",
        b"encoding='UTF-16'", b"\xff\xfe", b"\x1f\x8b", b"<g>" * 40, b"</g>" * 40, b" " * 200,
        b"<use href='#r'/>", b"<?xml version='1.1'?>", b"&#0;", b"&#x110000;",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        small = DRAWING.replace('width="20mm" height="50%"', 'height="4"')
        return [DRAWING.encode(), small.encode("utf-16")]

    def read(self, data: bytes) -> str:
        found = SvgDocument(io.BytesIO(data), "a drawing", "example")
        return f"{found.size} {digest(found._text)}"


class PathTexts(Target):
    """Path data: read, written, cut, measured, and drawn as an area and as a line."""

    name = "paths"
    words = (
        b"M", b"m", b"L", b"h", b"V", b"C", b"s", b"Q", b"t", b"A", b"a", b"Z", b"z", b"1e9",
        b"-1e9", b"1e-300", b"1e400", b"0 0 1 0 1", b"11", b".5.5", b"-.5-.5", b",", b"\x0c",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        texts = (
            "M1 2L3 4 5 6H7V8Zm9 9l1-1", "M0 0C1 2 3 4 5 6S7 8 9 10Q1 2 3 4T5 6",
            "M0,0a5 3 30 0120 10A.5.5 0 1 0 9-9z",
        )  # fmt: skip
        return [text.encode() for text in texts]

    def read(self, data: bytes) -> str:
        made = Path.svg(data.decode("utf-8", "surrogateescape"))
        assert Path.svg(made.to_svg()) == made
        half = made.trim(0.25, 0.75)
        canvas = Canvas(16, 16)
        for shape in (made, half, made.transform(matrix=(0.5, 0.5, -0.5, 0.5, 8.0, 0.0))):
            canvas.run(command.encode_fill_shape("evenodd", 0, (255, 0, 0, 100), shape))
            canvas.run(
                command.encode_stroke_shape(
                    2.0, "round", "miter", 4.0, 1.0, 0, (0, 255, 0, 100), [3.0, 1.0], shape
                )
            )
        for fault in canvas.take_faults():
            raise fault.error
        return f"{made.bounds} {digest(canvas.pixels.tobytes())}"


EVENTS = """[{"event_type": "pointer_down", "x": 1, "y": 2.5, "button": 1, "buttons": [1],
 "modifiers": ["Shift"], "ntouches": 1, "touches": {"3": {"x": 1, "y": 2, "pressure": 0.5}}},
 {"event_type": "pointer_move", "x": 3, "y": 4}, {"event_type": "wheel", "dx": 0, "dy": 100},
 {"event_type": "key_down", "key": "a", "code": "KeyA"}, {"event_type": "char", "data": "a"},
 {"event_type": "resize", "width": 40, "height": 30, "pixel_ratio": 2}, {"event_type": "blur"},
 {"event_type": "drop", "x": 1, "y": 1, "files": ["a.png"], "text": "b"},
 {"event_type": "clipboard", "text": "c"}]"""


class PageEvents(Target):
    """Messages of a surface's page: checked, and put into an inbox."""

    name = "events"
    words = (
        b'"event_type": "key_up"', b'"close"', b"null", b"NaN", b"1e999", b"-1", b"{}", b"[[[[",
        b'"--3"', b'"\\ud800"', b'"touches": {', b'"buttons": [', b"99999999999999999999", b"true",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [EVENTS.encode(), b"[]"]

    def read(self, data: bytes) -> str:
        events = page_events(data.decode("utf-8", "surrogateescape"))
        inbox = Inbox(deque())
        for event in events:
            if not isinstance(event, str):
                event.pop("time_stamp", None)
                inbox.put({**event, "time_stamp": 0.0})
        return f"{inbox.take()} {inbox.keys} {inbox.pointer(40, 30)}"
