"""A paint program: colors and brushes to click, smooth strokes, undo.

python examples/sketch.py            # in a window; also: browser, terminal
dala view examples/sketch.py         # the same, and again whenever this file is saved

Draw with the mouse, a pen or fingers. The wheel changes the width, Ctrl+Z takes back a stroke, C
clears, S saves sketch.png.
"""

import sys
from itertools import pairwise

from dala.gpu import Path, create_surface

WIDTH, HEIGHT, BAR = 640, 400, 56
PAPER = "#fbf7ef"
COLORS = ("#22223b", "#c1121f", "#f48c06", "#ffd60a", "#2a9d8f", "#1d70b8", "#7b2cbf", PAPER)


class Sketch:
    """The strokes on a surface, and the one that each pointer is drawing."""

    def __init__(self, s):
        self.s, self.color, self.width = s, COLORS[1], 8.0
        self.strokes = []  # (color, width, points)
        self.drawing = {}  # the strokes that are being drawn, by touch; the mouse is None
        self.dirty = True
        s.cursor = "crosshair"
        for kind in ("pointer_down", "pointer_move", "pointer_up", "wheel", "key_down"):
            s.on(kind, getattr(self, kind))

    # input --------------------------------------------------------------------------------------
    def pens(self, event):
        """Yield each finger of an event, or the mouse, with its position."""
        touches = event.get("touches") or {None: event}
        for name, place in touches.items():
            yield name, (place["x"], place["y"])

    def pointer_down(self, event):
        if event["x"] < BAR:
            swatch = int(event["y"] // (HEIGHT / len(COLORS)))
            self.color = COLORS[min(max(swatch, 0), len(COLORS) - 1)]
            self.dirty = True
            return
        for name, place in self.pens(event):
            if name not in self.drawing:
                self.drawing[name] = (self.color, self.width, [place])
                self.strokes.append(self.drawing[name])
                self.dirty = True

    def pointer_move(self, event):
        for name, place in self.pens(event):
            if name in self.drawing:
                self.drawing[name][2].append(place)
                self.dirty = True

    def pointer_up(self, event):
        left = set(event.get("touches") or ())
        self.drawing = {name: stroke for name, stroke in self.drawing.items() if name in left}

    def wheel(self, event):
        self.width = min(max(self.width - event["dy"] / 100, 1.0), 60.0)
        self.dirty = True

    def key_down(self, event):
        if event["key"] == "z" and "Control" in event["modifiers"] and self.strokes:
            self.strokes.pop()
        elif event["key"] in ("c", "C"):
            self.strokes.clear()
        elif event["key"] in ("s", "S"):
            self.s.save("sketch.png")
        self.dirty = True

    # drawing ------------------------------------------------------------------------------------
    def draw(self, s, dt):
        """Draw everything, if something has changed."""
        if not self.dirty:
            return
        self.dirty = False
        s.clear(PAPER)
        for color, width, points in self.strokes:
            stroke(s, color, width, points)
        s.rect(0, 0, BAR, HEIGHT, "#e8e2d6")
        for n, color in enumerate(COLORS):
            y = (n + 0.5) * HEIGHT / len(COLORS)
            if color == self.color:
                s.circle(BAR / 2, y, 20, "#22223b", width=2.5)
            s.circle(BAR / 2, y, 16, color)
        s.circle(WIDTH - 36, 36, max(self.width / 2, 1), self.color)


def stroke(s, color, width, points):
    """Draw a soft line through points: a dot, or curves from middle to middle."""
    if len(points) < 3:
        s.circle(*points[0], width / 2, color)
    path = Path().move_to(*points[0])
    for (x1, y1), (x2, y2) in pairwise(points):
        path = path.quad_to(x1, y1, (x1 + x2) / 2, (y1 + y2) / 2)
    path = path.line_to(*points[-1])
    s.stroke(path, color, width, cap="round", join="round")


if __name__ == "__main__":
    show = sys.argv[1] if len(sys.argv) > 1 else "window"
    with create_surface(WIDTH, HEIGHT, show=show, title="sketch") as surface:
        surface.run(Sketch(surface).draw)
