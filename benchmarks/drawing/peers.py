"""The peers of ``drawing``: each primitive as the call that draws it fastest there.

Arguments are made beforehand, also where a peer wants objects of its own (Skia's rectangles, paints
and paths): only the calls are timed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from benchmarks.drawing.scene import BACKGROUND, HEIGHT, WIDTH, Primitive

#: Something to call, and its arguments.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


def play(calls: list[Call]) -> None:
    """Make all calls in a plain Python loop."""
    for call, arguments in calls:
        call(*arguments)


class Absent(Exception):
    """The peer has no such primitive, or cannot blend it."""


class Peer:
    """A library with its own framebuffer."""

    name = ""
    antialiased = False

    def call(self, p: Primitive, alpha: bool) -> Call:
        """Return the call that draws a primitive."""
        make = getattr(self, "_" + p.kind.replace(" ", "_"), None)
        if make is None:
            raise Absent(f"has no {p.kind}")
        found: Call = make(p.numbers, p.color, alpha)
        return found

    def blank(self) -> None:
        """Fill the framebuffer with the background."""
        raise NotImplementedError

    def pixels(self) -> np.ndarray[Any, Any]:
        """Return a copy of the framebuffer as RGB, (height, width, 3)."""
        raise NotImplementedError


class Pygame(Peer):
    """``pygame.draw``, and ``pygame.gfxdraw`` where alpha is needed."""

    name = "pygame-ce"

    def __init__(self) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        import pygame
        import pygame.gfxdraw

        self.pygame, self.draw, self.blend = pygame, pygame.draw, pygame.gfxdraw
        self.frame = pygame.Surface((WIDTH, HEIGHT), 0, 32)  # without alpha, which is faster
        self.scratch = pygame.Surface((30, 20), pygame.SRCALPHA, 32)

    def blank(self) -> None:
        self.frame.fill(BACKGROUND)

    def pixels(self) -> np.ndarray[Any, Any]:
        return np.array(self.pygame.surfarray.pixels3d(self.frame)).transpose(1, 0, 2)

    def _rect(self, n: Any, color: Any, alpha: bool) -> Call:
        return (self.blend.box, (self.frame, n, color)) if alpha else (self.frame.fill, (color, n))

    def _line(self, n: Any, color: Any, alpha: bool) -> Call:
        if alpha:
            return self.blend.line, (self.frame, *n, color)
        return self.draw.line, (self.frame, color, n[:2], n[2:])

    def _circle(self, n: Any, color: Any, alpha: bool) -> Call:
        if alpha:
            return self.blend.circle, (self.frame, *n, color)
        return self.draw.circle, (self.frame, color, n[:2], n[2], 1)

    def _disc(self, n: Any, color: Any, alpha: bool) -> Call:
        if alpha:
            return self.blend.filled_circle, (self.frame, *n, color)
        return self.draw.circle, (self.frame, color, n[:2], n[2])

    def _triangle(self, n: Any, color: Any, alpha: bool) -> Call:
        if alpha:
            return self.blend.filled_trigon, (self.frame, *n, color)
        return self.draw.polygon, (self.frame, color, (n[:2], n[2:4], n[4:]))

    def _triangle_outline(self, n: Any, color: Any, alpha: bool) -> Call:
        if alpha:
            return self.blend.trigon, (self.frame, *n, color)
        return self.draw.polygon, (self.frame, color, (n[:2], n[2:4], n[4:]), 1)

    def _round_rect(self, n: Any, color: Any, alpha: bool, width: int = 0) -> Call:
        if not alpha:
            return self.draw.rect, (self.frame, color, n[:4], width, n[4])
        return self._scratched, (color, n[:2], (0, 0, *n[2:4]), width, n[4])

    def _round_outline(self, n: Any, color: Any, alpha: bool) -> Call:
        return self._round_rect(n, color, alpha, 1)

    def _scratched(self, color: Any, at: Any, rect: Any, width: int, radius: int) -> None:
        """Draw to a temporary surface and blit it: pygame cannot blend round rectangles."""
        self.scratch.fill((0, 0, 0, 0))
        self.draw.rect(self.scratch, color, rect, width, radius)
        self.frame.blit(self.scratch, at)


class PygameGfx(Pygame):
    """Opaque primitives with ``pygame.gfxdraw``, too, which is faster for most kinds."""

    name = "pygame-ce, gfxdraw"
    slower: Final = ("triangle", "round rect", "round outline")

    def call(self, p: Primitive, alpha: bool) -> Call:
        if alpha:
            raise Absent("is pygame-ce already")
        return super().call(p, p.kind not in self.slower)


class Pillow(Peer):
    name = "pillow"

    def __init__(self) -> None:
        from PIL import Image, ImageDraw

        self.frame = Image.new("RGB", (WIDTH, HEIGHT))
        self.opaque = ImageDraw.Draw(self.frame)
        self.blending = ImageDraw.Draw(self.frame, "RGBA")

    def blank(self) -> None:
        self.frame.paste(BACKGROUND, (0, 0, WIDTH, HEIGHT))

    def pixels(self) -> np.ndarray[Any, Any]:
        return np.array(self.frame)

    def call(self, p: Primitive, alpha: bool) -> Call:
        pen = self.blending if alpha else self.opaque
        n, color = p.numbers, p.color if alpha else p.color[:3]
        if p.kind == "rect":
            return pen.rectangle, ((n[0], n[1], n[0] + n[2] - 1, n[1] + n[3] - 1), color)
        if p.kind == "line":
            return pen.line, (n, color)
        if p.kind in ("circle", "disc"):
            box = (n[0] - n[2], n[1] - n[2], n[0] + n[2], n[1] + n[2])
            return pen.ellipse, ((box, color) if p.kind == "disc" else (box, None, color))
        if p.kind.startswith("triangle"):
            return pen.polygon, ((n, color) if p.kind == "triangle" else (n, None, color))
        box = (n[0], n[1], n[0] + n[2] - 1, n[1] + n[3] - 1)
        paint = (color,) if p.kind == "round rect" else (None, color)
        return pen.rounded_rectangle, (box, n[4], *paint)


class OpenCV(Peer):
    name = "opencv"

    def __init__(self) -> None:
        import cv2

        self.cv2 = cv2
        self.frame = np.zeros((HEIGHT, WIDTH, 4), np.uint8)

    def blank(self) -> None:
        self.frame[:] = (*BACKGROUND, 255)

    def pixels(self) -> np.ndarray[Any, Any]:
        return self.frame[..., :3].copy()

    def call(self, p: Primitive, alpha: bool) -> Call:
        if alpha:
            raise Absent("does not blend")
        cv2, n, frame = self.cv2, p.numbers, self.frame
        if p.kind == "rect":
            corner = (n[0] + n[2] - 1, n[1] + n[3] - 1)
            return cv2.rectangle, (frame, n[:2], corner, p.color, -1)
        if p.kind == "line":
            return cv2.line, (frame, n[:2], n[2:], p.color)
        if p.kind in ("circle", "disc"):
            width = -1 if p.kind == "disc" else 1
            return cv2.circle, (frame, n[:2], n[2], p.color, width)
        if p.kind.startswith("round"):
            raise Absent(f"has no {p.kind}")
        corners = np.array(n, np.int32).reshape(3, 2)
        if p.kind == "triangle":
            return cv2.fillConvexPoly, (frame, corners, p.color)
        return cv2.polylines, (frame, [corners], True, p.color)


class NumPy(Peer):
    name = "numpy"

    def __init__(self) -> None:
        self.frame = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
        self.words = self.frame.view(np.uint32)[..., 0]

    def blank(self) -> None:
        self.frame[:] = (*BACKGROUND, 255)

    def pixels(self) -> np.ndarray[Any, Any]:
        return self.frame[..., :3].copy()

    def _rect(self, n: Any, color: Any, alpha: bool) -> Call:
        if alpha:
            raise Absent("does not blend")
        place = slice(n[1], n[1] + n[3]), slice(n[0], n[0] + n[2])
        return self.words.__setitem__, (place, np.frombuffer(bytes(color), np.uint32)[0])


class Skia(Peer):
    name = "skia"

    def __init__(self) -> None:
        import skia

        self.skia = skia
        self.frame = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
        self.surface = skia.Surface(self.frame)
        self.canvas = self.surface.getCanvas()
        self.paints: dict[Any, Any] = {}

    def blank(self) -> None:
        self.frame[:] = (*BACKGROUND, 255)

    def pixels(self) -> np.ndarray[Any, Any]:
        return self.frame[..., :3].copy()

    def call(self, p: Primitive, alpha: bool, canvas: Any = None) -> Call:
        skia, n, canvas = self.skia, p.numbers, canvas or self.canvas
        solid = p.kind in ("rect", "disc", "triangle", "round rect")
        paint = self._paint(p.color, solid)
        if p.kind == "rect":
            return canvas.drawRect, (skia.Rect.MakeXYWH(*n), paint)
        if p.kind == "line":
            return canvas.drawLine, (*n, paint)
        if p.kind in ("circle", "disc"):
            return canvas.drawCircle, (n[0] + 0.5, n[1] + 0.5, n[2] + 0.5 * solid, paint)
        if p.kind.startswith("round"):
            inset = 0 if solid else 0.5
            box = skia.Rect.MakeLTRB(
                n[0] + inset, n[1] + inset, n[0] + n[2] - inset, n[1] + n[3] - inset
            )
            return canvas.drawRoundRect, (box, n[4], n[4], paint)
        path = skia.Path.Polygon([skia.Point(*n[k : k + 2]) for k in (0, 2, 4)], True)
        return canvas.drawPath, (path, paint)

    def _paint(self, color: Any, solid: bool) -> Any:
        key = color, solid
        if key not in self.paints:
            style = self.skia.Paint.kFill_Style if solid else self.skia.Paint.kStroke_Style
            shade = self.skia.Color(*color)
            self.paints[key] = self.skia.Paint(Color=shade, AntiAlias=False, Style=style)
        return self.paints[key]

    def recorded(self, scene: list[Primitive]) -> Callable[[], Any]:
        """Return a call that replays a recorded picture of the scene."""
        recorder = self.skia.PictureRecorder()
        canvas = recorder.beginRecording(self.skia.Rect.MakeWH(WIDTH, HEIGHT))
        play([self.call(p, True, canvas) for p in scene])
        picture = recorder.finishRecordingAsPicture()
        return lambda: self.canvas.drawPicture(picture)


class Blend2D(Peer):
    name = "blend2d"
    antialiased = True

    def __init__(self) -> None:
        import blend2d

        self.blend2d = blend2d
        self.frame = blend2d.Image(WIDTH, HEIGHT)
        self.context = blend2d.Context(self.frame)

    def blank(self) -> None:
        self.context.set_fill_style_rgba(*BACKGROUND, 255)
        self.context.fill_all()

    def pixels(self) -> np.ndarray[Any, Any]:
        return np.array(self.frame.asarray())[..., 2::-1]  # BGR

    def _filled(self, color: Any, fill: Any, numbers: Any) -> None:
        self.context.set_fill_style_rgba(*color)
        fill(*numbers)

    def _rect(self, n: Any, color: Any, alpha: bool) -> Call:
        return self._filled, (color, self.context.fill_rect, n)

    def _disc(self, n: Any, color: Any, alpha: bool) -> Call:
        circle = (n[0] + 0.5, n[1] + 0.5, n[2] + 0.5)
        return self._filled, (color, self.context.fill_circle, circle)

    def _triangle(self, n: Any, color: Any, alpha: bool) -> Call:
        path = self.blend2d.Path()
        path.move_to(*n[:2])
        path.line_to(*n[2:4])
        path.line_to(*n[4:])
        path.close()
        return self._filled, (color, self.context.fill_path, (path,))


def present() -> tuple[list[Peer], dict[str, str]]:
    """Return the installed peers, and why the others are missing."""
    found: list[Peer] = []
    left_out = {}
    for kind in (Pygame, PygameGfx, Pillow, OpenCV, NumPy, Skia, Blend2D):
        try:
            found.append(kind())
        except (ImportError, OSError) as error:
            left_out[kind.name] = f"not installed: {error}"
    return found, left_out
