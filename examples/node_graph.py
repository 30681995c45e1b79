"""A graph of nodes: drag them, and draw wires from port to port.

python examples/node_graph.py        # in a window; also: browser, terminal

A double click on an input removes its wires. Drag the background to move the view, turn the wheel
to zoom.
"""

import math
import sys
from dataclasses import dataclass

from dala.gpu import LinearGradient, Path, create_surface

WIDTH, HEIGHT = 640, 400
NODE_W, NODE_H, PORT = 120, 76, 7
NAMES = "noise", "camera", "mix", "blur", "output"
COLORS = ("#e76f51", "#f4a261", "#2a9d8f", "#457b9d", "#9d4edd")


@dataclass
class Node:
    """A box with one input at its left, and one output at its right."""

    x: float
    y: float
    color: str
    name: str

    @property
    def input(self):
        return self.x, self.y + NODE_H / 2

    @property
    def output(self):
        return self.x + NODE_W, self.y + NODE_H / 2

    def contains(self, x, y):
        return 0 <= x - self.x < NODE_W and 0 <= y - self.y < NODE_H


class Graph:
    """Nodes, wires from output to input, and what the pointer holds."""

    def __init__(self, s):
        self.s = s
        places = ((40, 60), (40, 240), (260, 140), (470, 50), (470, 250))
        self.nodes = [Node(*at, *of) for at, *of in zip(places, COLORS, NAMES, strict=True)]
        self.wires = [(0, 2), (1, 2), (2, 3)]
        self.origin, self.zoom, self.time = (0.0, 0.0), 1.0, 0.0
        self.held = None  # ("node", number, dx, dy), ("wire", number) or ("view", x, y)
        self.at = (0.0, 0.0)
        for kind in ("pointer_down", "pointer_move", "pointer_up", "double_click", "wheel"):
            s.on(kind, getattr(self, kind))

    # input --------------------------------------------------------------------------------------
    def place(self, event):
        """Return where an event is in the graph."""
        return tuple((event[k] - o) / self.zoom for k, o in zip("xy", self.origin, strict=True))

    def port(self, x, y, side):
        """Return the number of the node with a port here, or None."""
        for n, node in enumerate(self.nodes):
            if math.dist((x, y), getattr(node, side)) < PORT * 2:
                return n
        return None

    def node(self, x, y):
        """Return the number of the uppermost node here, or None."""
        found = [n for n, node in enumerate(self.nodes) if node.contains(x, y)]
        return found[-1] if found else None

    def pointer_down(self, event):
        x, y = self.at = self.place(event)
        start, node = self.port(x, y, "output"), self.node(x, y)
        if start is not None:
            self.held = ("wire", start)
        elif node is not None:
            self.held = ("node", node, x - self.nodes[node].x, y - self.nodes[node].y)
        else:
            self.held = ("view", event["x"] - self.origin[0], event["y"] - self.origin[1])

    def pointer_move(self, event):
        x, y = self.at = self.place(event)
        match self.held:
            case ("node", n, dx, dy):
                self.nodes[n].x, self.nodes[n].y = x - dx, y - dy
            case ("view", dx, dy):
                self.origin = event["x"] - dx, event["y"] - dy
        over = self.port(x, y, "output") is not None or self.port(x, y, "input") is not None
        self.s.cursor = (
            "crosshair" if over else "pointer" if self.node(x, y) is not None else "default"
        )

    def pointer_up(self, event):
        if self.held and self.held[0] == "wire":
            end = self.port(*self.place(event), "input")
            wire = (self.held[1], end)
            if end is not None and end != wire[0] and wire not in self.wires:
                self.wires.append(wire)
        self.held = None

    def double_click(self, event):
        end = self.port(*self.place(event), "input")
        self.wires = [wire for wire in self.wires if wire[1] != end]

    def wheel(self, event):
        before, zoom = self.place(event), self.zoom
        self.zoom = min(max(zoom * 1.1 ** (-event["dy"] / 100), 0.3), 4.0)
        x, y = before
        self.origin = event["x"] - x * self.zoom, event["y"] - y * self.zoom

    # drawing ------------------------------------------------------------------------------------
    def draw(self, s, dt):
        self.time += dt
        s.clear("#1d1e2c")
        with s.transformed(translate=self.origin, scale=self.zoom):
            for start, end in self.wires:
                a, b = self.nodes[start], self.nodes[end]
                wire(s, a.output, b.input, self.time, a.color, b.color)
            if self.held and self.held[0] == "wire":
                start = self.nodes[self.held[1]]
                wire(s, start.output, self.at, self.time, start.color, "white")
            for n, node in enumerate(self.nodes):
                self.box(s, node, self.held is not None and self.held[:2] == ("node", n))

    def box(self, s, node, held):
        for n in range(6):  # a soft shadow
            x, y, grow = node.x - 2 * n, node.y - 2 * n + (10 if held else 4), 4 * n
            s.rect(x, y, NODE_W + grow, NODE_H + grow, (0, 0, 0, 22), radius=12 + 2 * n)
        s.rect(node.x, node.y, NODE_W, NODE_H, "#2b2d42", radius=12)
        s.rect(node.x, node.y, NODE_W, 24, node.color, radius=12)
        s.rect(node.x, node.y + 12, NODE_W, 12, node.color)
        s.text(node.name, node.x + 12, node.y + 4, "white", size=13, weight="bold")
        for n in range(3):  # its settings
            y, value = node.y + 36 + 12 * n, 0.5 + 0.5 * math.sin(self.time + 8 * n)
            left, right = node.x + 20, node.x + NODE_W - 20
            s.line(left, y, right, y, "#4a4e69", 3, cap="round")
            s.line(left, y, left + (right - left) * value, y, node.color, 3, cap="round")
        s.rect(node.x, node.y, NODE_W, NODE_H, "white" if held else "#4a4e69", width=1.5, radius=12)
        for x, y in (node.input, node.output):
            s.circle(x, y, PORT, "#1d1e2c")
            s.circle(x, y, PORT - 2.5, "#edf2f4")


def wire(s, start, end, time, first, last):
    """Draw a curve from an output to an input, from a color to another; dashes run along it."""
    reach = max(abs(end[0] - start[0]) / 2, 40)
    path = Path().move_to(*start)
    path = path.cubic_to(start[0] + reach, start[1], end[0] - reach, end[1], *end)
    s.stroke(path, LinearGradient(start, end, [(0, first), (1, last)]), 4)
    s.stroke(path, "#fffa", 2, cap="round", dash=(2, 14), offset=-time * 40 % 16)


if __name__ == "__main__":
    show = sys.argv[1] if len(sys.argv) > 1 else "window"
    with create_surface(WIDTH, HEIGHT, show=show, title="node graph") as surface:
        surface.run(Graph(surface).draw)
