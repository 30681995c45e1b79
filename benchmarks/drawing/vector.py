"""Vector drawing on a 1920x1080 surface with alpha: shapes, strokes, glyphs, gradients, a layer.

Paths, paints and matrices of the peers are made beforehand: only drawing is timed. Pictures are
compared with ours. Blend2D's bindings for Python neither stroke nor make gradients, and draw on one
thread: ``DALA_THREADS=1 python -m benchmarks.drawing vector`` compares with one thread of ours.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.drawing.scene import BACKGROUND, HEIGHT, WIDTH
from benchmarks.harness import Machine, affordable, judge, race
from dala import gpu
from dala.gpu import LinearGradient, Path, command
from dala.gpu.compute.engines.cpu.threads import pool

Run = Callable[[], Any]
COUNT: Final = 1000
#: The largest mean difference, in steps, of a peer's picture from ours.
STEPS: Final = 2.0
#: Targets by row: peers' time over ours, with one thread and with more.
TARGETS: Final = {
    "filled stars": {"blend2d": (1.0, 1.5)},
    "circles": {"blend2d": (1.0, 1.5)},
    "stroked stars": {"skia": (5.0, 5.0)},
}


def shapes(count: int = COUNT) -> list[tuple[Any, ...]]:
    """Return centers, radii, corners of stars and colors."""
    rng, found = np.random.default_rng(7), []
    for _ in range(count):
        x, y, r = rng.uniform(0, WIDTH), rng.uniform(0, HEIGHT), rng.uniform(10, 80)
        turn = rng.uniform(0, math.tau) + np.arange(20) * math.pi / 10
        reach = np.where(np.arange(20) % 2 == 0, r, r / 2)
        points = np.stack([x + np.cos(turn) * reach, y + np.sin(turn) * reach], 1).tolist()
        color = tuple(int(v) for v in rng.integers(40, 216, 4))
        found.append((x, y, r, [tuple(p) for p in points], color))
    return found


class Board:
    """A library's picture, and the runs of each row."""

    def runs(self, row: str, things: list[Any]) -> dict[str, Run]:
        """Return the ways in which a row is drawn; none if the library has no such thing."""
        make = getattr(self, "_" + row.replace(" ", "_"), None)
        return make(things) if make else {}


class Dala(Board):
    name = "dala"

    def __init__(self) -> None:
        self.s = gpu.create_surface(WIDTH, HEIGHT)

    def blank(self) -> None:
        self.s.clear(BACKGROUND)

    def pixels(self) -> Any:
        return self.s.to_array()[..., :3]

    def _both(self, commands: list[bytes], calls: list[Run]) -> dict[str, Run]:
        data = b"".join(commands)

        def prepared() -> None:
            self.s.submit(data)
            self.s.synchronize()

        def each() -> None:
            for call in calls:
                call()
            self.s.synchronize()

        return {"dala": prepared, "dala, a call each": each}

    def _filled_stars(self, things: list[Any]) -> dict[str, Run]:
        made = [(Path.polygon(p), c) for *_, p, c in things]
        encode = command.encode_fill_shape
        return self._both(
            [encode("nonzero", 0, c, p) for p, c in made],
            [partial(self.s.fill, p, c) for p, c in made],
        )

    def _circles(self, things: list[Any]) -> dict[str, Run]:
        encode = command.encode_fill_shape
        return self._both(
            [encode("nonzero", 0, c, Path.circle(x, y, r)) for x, y, r, _, c in things],
            [partial(self.s.circle, x, y, r, c) for x, y, r, _, c in things],
        )

    def _stroked_stars(self, things: list[Any]) -> dict[str, Run]:
        made = [(Path.polygon(p), c) for *_, p, c in things]
        encode = command.encode_stroke_shape
        return self._both(
            [encode(4, "round", "round", 10, 0, 0, c, (), p) for p, c in made],
            [partial(self.s.stroke, p, c, 4, cap="round", join="round") for p, c in made],
        )

    def _gradients(self, things: list[Any]) -> dict[str, Run]:
        calls = [
            partial(self.s.rect, x - 200, y - 200, 400, 400, LinearGradient(p[0], p[10], stops(c)))
            for x, y, _, p, c in things[:200]
        ]
        return {"dala": self._both([], calls)["dala, a call each"]}

    def _layer(self, things: list[Any]) -> dict[str, Run]:
        def run() -> None:
            with self.s.layer(blur=8):
                for x, y, r, _, c in things[:50]:
                    self.s.circle(x, y, r, c)
            self.s.synchronize()

        return {"dala": run}

    def _glyphs(self, lines: list[str]) -> dict[str, Run]:
        turn = iter(range(10**9))

        def known() -> None:
            for n, text in enumerate(lines):
                self.s.text(text, 10, 10 * n, "white", size=12)
            self.s.synchronize()

        def new() -> None:
            number = f"{next(turn):06d}"
            for n, text in enumerate(lines):
                self.s.text(number + text[6:], 10, 10 * n, "white", size=12)
            self.s.synchronize()

        return {"dala": new, "dala, the same lines": known}


def stops(color: Any) -> list[tuple[float, Any]]:
    return [(0, color), (1, (255 - color[0], color[1], color[2], color[3]))]


class Blend2D(Board):
    name = "blend2d"

    def __init__(self) -> None:
        import blend2d

        self.blend2d = blend2d
        self.frame = blend2d.Image(WIDTH, HEIGHT)
        self.context = blend2d.Context(self.frame)

    def blank(self) -> None:
        self.context.set_fill_style_rgba(*BACKGROUND, 255)
        self.context.fill_all()

    def pixels(self) -> Any:
        return np.array(self.frame.asarray())[..., 2::-1]

    def _run(self, calls: list[Any]) -> dict[str, Run]:
        def run() -> None:
            for color, fill, arguments in calls:
                self.context.set_fill_style_rgba(*color)
                fill(*arguments)

        return {self.name: run}

    def _filled_stars(self, things: list[Any]) -> dict[str, Run]:
        calls = []
        for *_, points, color in things:
            path = self.blend2d.Path()
            path.move_to(*points[0])
            for point in points[1:]:
                path.line_to(*point)
            path.close()
            calls.append((color, self.context.fill_path, (path,)))
        return self._run(calls)

    def _circles(self, things: list[Any]) -> dict[str, Run]:
        return self._run([(c, self.context.fill_circle, (x, y, r)) for x, y, r, _, c in things])


class Skia(Board):
    name = "skia"

    def __init__(self) -> None:
        import skia

        self.skia = skia
        self.frame = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
        self.surface = skia.Surface(self.frame)
        self.canvas = self.surface.getCanvas()

    def blank(self) -> None:
        self.frame[:] = (*BACKGROUND, 255)

    def pixels(self) -> Any:
        return self.frame[..., :3].copy()

    def _run(self, calls: list[Any]) -> dict[str, Run]:
        return {self.name: lambda: [draw(*arguments) for draw, *arguments in calls]}

    def _paint(self, color: Any, **style: Any) -> Any:
        return self.skia.Paint(Color=self.skia.Color(*color), AntiAlias=True, **style)

    def _path(self, points: Any) -> Any:
        return self.skia.Path.Polygon([self.skia.Point(*p) for p in points], True)

    def _filled_stars(self, things: list[Any]) -> dict[str, Run]:
        draw = self.canvas.drawPath
        return self._run([(draw, self._path(p), self._paint(c)) for *_, p, c in things])

    def _circles(self, things: list[Any]) -> dict[str, Run]:
        draw = self.canvas.drawCircle
        return self._run([(draw, x, y, r, self._paint(c)) for x, y, r, _, c in things])

    def _stroked_stars(self, things: list[Any]) -> dict[str, Run]:
        paint = self.skia.Paint
        style = {
            "Style": paint.kStroke_Style, "StrokeWidth": 4, "StrokeCap": paint.kRound_Cap,
            "StrokeJoin": paint.kRound_Join,
        }  # fmt: skip
        draw = self.canvas.drawPath
        return self._run([(draw, self._path(p), self._paint(c, **style)) for *_, p, c in things])

    def _gradients(self, things: list[Any]) -> dict[str, Run]:
        skia, calls = self.skia, []
        for x, y, _, p, c in things[:200]:
            shader = skia.GradientShader.MakeLinear(
                [skia.Point(*p[0]), skia.Point(*p[10])],
                [skia.Color(*color) for _, color in stops(c)],
            )
            box = skia.Rect.MakeXYWH(x - 200, y - 200, 400, 400)
            calls.append((self.canvas.drawRect, box, skia.Paint(Shader=shader, AntiAlias=True)))
        return self._run(calls)

    def _layer(self, things: list[Any]) -> dict[str, Run]:
        blur = self.skia.Paint(ImageFilter=self.skia.ImageFilters.Blur(8, 8))
        inside = self._circles(things[:50])[self.name]

        def run() -> None:
            self.canvas.saveLayer(None, blur)
            inside()
            self.canvas.restore()

        return {self.name: run}

    def _glyphs(self, lines: list[str]) -> dict[str, Run]:
        font, paint = self.skia.Font(self.skia.Typeface(), 12), self._paint((255,) * 4)
        draw = self.canvas.drawString
        return self._run(
            [(draw, text, 10, 10 * n + 10, font, paint) for n, text in enumerate(lines)]
        )


class Cairo(Board):
    name = "cairo"

    def __init__(self) -> None:
        import cairocffi

        self.cairo = cairocffi
        self.frame = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
        surface = cairocffi.ImageSurface.create_for_data(
            memoryview(self.frame).cast("B"), cairocffi.FORMAT_ARGB32, WIDTH, HEIGHT
        )
        self.context = cairocffi.Context(surface)
        self.context.set_line_width(4)
        self.context.set_line_cap(cairocffi.LINE_CAP_ROUND)
        self.context.set_line_join(cairocffi.LINE_JOIN_ROUND)

    def blank(self) -> None:
        self.frame[:] = (*BACKGROUND[::-1], 255)

    def pixels(self) -> Any:
        return self.frame[..., 2::-1].copy()

    def _run(self, calls: list[Any], draw: Run) -> dict[str, Run]:
        def run() -> None:
            for color, path in calls:
                self.context.set_source_rgba(*color)
                self.context.append_path(path)
                draw()

        return {self.name: run}

    def _paths(self, things: list[Any], circles: bool = False) -> list[Any]:
        found = []
        for x, y, r, points, color in things:
            self.context.new_path()
            if circles:
                self.context.arc(x, y, r, 0, math.tau)
            for point in () if circles else points:
                self.context.line_to(*point)
            self.context.close_path()
            found.append(([v / 255 for v in color], self.context.copy_path()))
        self.context.new_path()
        return found

    def _filled_stars(self, things: list[Any]) -> dict[str, Run]:
        return self._run(self._paths(things), self.context.fill)

    def _circles(self, things: list[Any]) -> dict[str, Run]:
        return self._run(self._paths(things, True), self.context.fill)

    def _stroked_stars(self, things: list[Any]) -> dict[str, Run]:
        return self._run(self._paths(things), self.context.stroke)


class ThorVG(Board):
    """ThorVG keeps a scene: shapes are made and added in each run, as it is used."""

    name = "thorvg"

    def __init__(self) -> None:
        import thorvg_python

        self.tvg = thorvg_python
        self.engine = thorvg_python.Engine(threads=pool().threads - 1)
        self.canvas = thorvg_python.SwCanvas(self.engine)
        self.canvas.set_target(WIDTH, HEIGHT)

    def blank(self) -> None:
        """Its runs draw their own background."""

    def pixels(self) -> Any:
        return np.asarray(self.canvas.get_pillow().convert("RGB"))

    def _run(self, things: list[Any], draw: Callable[..., None]) -> dict[str, Run]:
        def run() -> None:
            self.canvas.remove(None)
            back = self.tvg.Shape(self.engine)
            back.append_rect(0, 0, WIDTH, HEIGHT, 0, 0, True)
            back.set_fill_color(*BACKGROUND, 255)
            self.canvas.add(back)
            for thing in things:
                shape = self.tvg.Shape(self.engine)
                draw(shape, *thing)
                self.canvas.add(shape)
            self.canvas.update()
            self.canvas.draw(True)
            self.canvas.sync()

        return {self.name: run}

    @staticmethod
    def _outline(shape: Any, points: Any) -> None:
        shape.move_to(*points[0])
        for point in points[1:]:
            shape.line_to(*point)
        shape.close()

    def _filled_stars(self, things: list[Any]) -> dict[str, Run]:
        def draw(shape: Any, x: float, y: float, r: float, points: Any, color: Any) -> None:
            self._outline(shape, points)
            shape.set_fill_color(*color)

        return self._run(things, draw)

    def _circles(self, things: list[Any]) -> dict[str, Run]:
        def draw(shape: Any, x: float, y: float, r: float, points: Any, color: Any) -> None:
            shape.append_circle(x, y, r, r, True)
            shape.set_fill_color(*color)

        return self._run(things, draw)


class PygameGfx(Board):
    """Not antialiased inside, and with edges of their own."""

    name = "pygame-ce, jagged"

    def __init__(self) -> None:
        import pygame
        import pygame.gfxdraw

        self.draw, self.pygame = pygame.gfxdraw, pygame
        self.frame = pygame.Surface((WIDTH, HEIGHT), 0, 32)

    def blank(self) -> None:
        self.frame.fill(BACKGROUND)

    def pixels(self) -> Any:
        return np.array(self.pygame.surfarray.pixels3d(self.frame)).transpose(1, 0, 2)

    def _filled_stars(self, things: list[Any]) -> dict[str, Run]:
        fill = self.draw.filled_polygon
        return {self.name: lambda: [fill(self.frame, p, c) for *_, p, c in things]}


def boards() -> tuple[list[Any], dict[str, str]]:
    """Return our surface and the installed peers, and why others are missing."""
    found: list[Any] = []
    left_out = {}
    for kind in (Dala, Blend2D, Skia, Cairo, ThorVG, PygameGfx):
        try:
            found.append(kind())
        except (ImportError, OSError) as error:
            left_out[kind.name] = f"not installed: {error}"
    return found, left_out


def measure(row: str, things: list[Any], rounds: int) -> dict[str, Any]:
    """Time a row in turn, and compare the pictures."""
    found, left_out = boards()
    runs: dict[str, Run] = {}
    checked: dict[str, dict[str, float]] = {}
    mine: Any = None
    for board in found:
        for name, run in board.runs(row, things).items():
            with contextlib.suppress(Exception):
                board.blank()
                run()
                board.blank()
                run()
                picture = board.pixels().astype(int)
                mine = picture if mine is None else mine
                apart = np.abs(picture - mine)
                checked[name] = {"mean": float(apart.mean()), "most": float(apart.max())}
                if row != "glyphs" and apart.mean() > STEPS:  # fonts differ
                    left_out[name] = f"its picture is {apart.mean():.1f} steps from ours"
                    continue
                runs[name] = run
    threads = pool().threads
    with Machine() as machine:
        times = race(runs, affordable(runs, rounds), settle=True)
    wanted = {peer: both[threads > 1] for peer, both in TARGETS.get(row, {}).items()}
    cpu = {name: t["cpu_ms"] / times["dala"]["cpu_ms"] for name, t in times.items()}
    return {
        "times": times, **judge(times, wanted, machine), "cpu_ratios": cpu, "checked": checked,
        "left_out": left_out, "threads": threads,
    }  # fmt: skip


def rows(rounds: int) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Return the titles of the rows, and how to measure them."""
    things = shapes()
    for row in ("filled stars", "circles", "stroked stars", "gradients", "layer"):
        yield f"vector, {row}", partial(measure, row, things, rounds)
    rng = np.random.default_rng(2)
    lines = ["".join(map(chr, rng.choice([*range(97, 123), 32], 100))) for _ in range(100)]
    yield "vector, glyphs", partial(measure, "glyphs", lines, rounds)
