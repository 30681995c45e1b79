"""Compositing 1920x1080 on the CPU: a video frame, a PiP, three overlays with alpha, a caption.

The compositor by itself first (draw records made for each frame), then the same through ``Scene``.
"""

from __future__ import annotations

import sys
from itertools import cycle
from typing import Any

import numpy as np

import dala
from benchmarks.compositing.peers import PEERS
from benchmarks.compositing.scene import (
    HEIGHT,
    PERIOD,
    PIP,
    WIDTH,
    Array,
    Material,
    Places,
    places,
)
from benchmarks.harness import Machine, affordable, judge, race, report, write
from dala.gpu.compute import buffer_zeros
from dala.gpu.compute.composite import DRAW, FILL, OPAQUE, PICTURE, Compositor, Rect

TARGETS = {"opencv": 1.0, "pygame-ce": 2.0, "skia": 2.0, "moviepy": 50.0}
#: How much faster a frame is where only the PiP moves, at least.
STILL = 4.0
#: Both are so short that few rounds fall into moments in which the machine has nothing else to do.
STILL_ROUNDS = 300
#: Milliseconds for 50 nodes, 5 of them moving, at most.
FIFTY_MS = 4.0


def record(picture: Any, x: float, y: float, w: float, h: float, *, flags: int = 0) -> Array:
    """A draw of a whole picture at a place."""
    made = np.zeros(1, DRAW)
    _fill(made[0], picture, x, y, w, h, flags)
    return made


def _fill(d: Any, picture: Any, x: float, y: float, w: float, h: float, flags: int) -> None:
    d["kind"], d["flags"], d["picture"] = PICTURE, flags, picture.number
    d["cos"], d["opacity"], d["color"] = 1, 1, 255
    d["hw"], d["hh"] = w / 2, h / 2
    d["sx"], d["sy"] = picture.width / w, picture.height / h
    d["u1"], d["v1"] = picture.width, picture.height
    d["taps_x"] = max(1, -(-picture.width // (2 * w)))
    d["taps_y"] = max(1, -(-picture.height // (2 * h)))
    move(d, x, y)


def move(d: Any, x: float, y: float) -> None:
    """Puts a draw's corner elsewhere."""
    hw, hh = float(d["hw"]), float(d["hh"])
    d["cx"], d["cy"] = x + hw, y + hh
    d["x0"], d["y0"] = np.floor(x), np.floor(y)
    d["x1"], d["y1"] = np.ceil(x + 2 * hw), np.ceil(y + 2 * hh)


class Composed:
    """The scene as draw records: background, PiP, overlays, caption."""

    def __init__(self, m: Material) -> None:
        self.compositor = Compositor("cpu")
        self.target = buffer_zeros((HEIGHT, WIDTH, 4), "u8", device="cpu")
        self.frames = [self.compositor.picture(f) for f in m.background]
        self.pips = [self.compositor.picture(f) for f in m.pip]
        self.laid = [self.compositor.picture(p) for p in (*m.overlays, m.caption)]
        parts = [
            record(self.frames[0], 0, 0, WIDTH, HEIGHT, flags=OPAQUE),
            record(self.pips[0], 0, 0, *PIP, flags=OPAQUE),
            *(record(p, 0, 0, p.width, p.height) for p in self.laid),
        ]
        self.draws = np.concatenate(parts)
        self.made: dict[tuple[Places, int], Array] = {}
        self.last: Places | None = None

    def draw(self, at: Places) -> None:
        """A frame, all of it."""
        self.compositor.compose(self.target, self._records(at, at.frame))

    def draw_pip(self, at: Places) -> None:
        """A frame in which the PiP alone moved since the last one."""
        before, self.last = self.last or at, at
        (ax, ay), (bx, by) = before.pip, at.pip
        rect = (min(ax, bx), min(ay, by), max(ax, bx) + PIP[0], max(ay, by) + PIP[1])
        self.compositor.compose(self.target, self._records(at, 0), [rect])

    def pixels(self) -> Array:
        """The last frame."""
        return np.asarray(self.target.numpy())

    def _records(self, at: Places, frame: int) -> Array:
        """The draws of a frame; made once, since here they are given."""
        found = self.made.get((at, frame))
        if found is None:
            draws = self.made[at, frame] = self.draws.copy()
            draws["picture"][0] = self.frames[frame].number
            draws["picture"][1] = self.pips[at.frame].number
            move(draws[1], *at.pip)
            for i, corner in enumerate((*at.overlays, at.caption)):
                move(draws[2 + i], *corner)
            found = draws
        return found


class Fifty:
    """Fifty nodes over a background, five of them moving."""

    def __init__(self, m: Material) -> None:
        rng = np.random.default_rng(50)
        self.compositor = Compositor("cpu")
        self.target = buffer_zeros((HEIGHT, WIDTH, 4), "u8", device="cpu")
        self.held = [self.compositor.picture(p) for p in (m.background[0], *m.overlays)]
        parts = [record(self.held[0], 0, 0, WIDTH, HEIGHT, flags=OPAQUE)]
        for i in range(49):
            picture = self.held[1 + i % 3]
            scale = rng.uniform(0.6, 1.4)
            x, y = rng.uniform(0, WIDTH - 300), rng.uniform(0, HEIGHT - 200)
            w, h = round(picture.width * scale), round(picture.height * scale)
            parts.append(record(picture, round(x), round(y), w, h))
        self.draws = np.concatenate(parts)
        self.draws[-1]["kind"] = FILL
        self.corners = [(int(d["x0"]), int(d["y0"])) for d in self.draws]
        self.moving = (5, 15, 25, 35, 45)
        self.step = 0
        self.draw_all()

    def draw_all(self) -> None:
        """Everything again."""
        self.compositor.compose(self.target, self.draws)

    def draw_some(self) -> None:
        """What the five that move have left and reached."""
        self.step += 1
        rects: list[Rect] = []
        for i in self.moving:
            d, (x, y) = self.draws[i], self.corners[i]
            old = int(d["x0"]), int(d["y0"]), int(d["x1"]), int(d["y1"])
            move(d, x + self.step % 20, y + self.step % 10)
            new = int(d["x0"]), int(d["y0"]), int(d["x1"]), int(d["y1"])
            rects.append((
                min(old[0], new[0]), min(old[1], new[1]), max(old[2], new[2]), max(old[3], new[3]),
            ))  # fmt: skip
        self.compositor.compose(self.target, self.draws, apart(rects))


def apart(rects: list[Rect]) -> list[Rect]:
    """Rectangles that cover the same without overlapping: those that do become one."""
    found: list[Rect] = []
    for rect in rects:
        x0, y0, x1, y1 = rect
        again = True
        while again:
            again = False
            for other in found:
                if x0 < other[2] and other[0] < x1 and y0 < other[3] and other[1] < y1:
                    found.remove(other)
                    x0, y0 = min(x0, other[0]), min(y0, other[1])
                    x1, y1 = max(x1, other[2]), max(y1, other[3])
                    again = True
                    break
        found.append((x0, y0, x1, y1))
    return found


class Staged:
    """The same as a Scene: videos are functions of the time, places are set for each frame."""

    def __init__(self, m: Material) -> None:
        # Video frames have three bytes a pixel here, as they come from a decoder.
        self.frames = [np.ascontiguousarray(f[..., :3]) for f in m.background]
        self.pips = [np.ascontiguousarray(f[..., :3]) for f in m.pip]
        self.at = places(0)
        self.moving = self._scene(m, still=False)
        self.resting = self._scene(m, still=True)
        self.shown: Any = None

    def _scene(self, m: Material, *, still: bool) -> Any:
        from dala.media.scene.scene import Scene

        scene = Scene(WIDTH, HEIGHT, device="cpu")
        whole = {"position": (0, 0), "size": (WIDTH, HEIGHT)}
        if still:
            scene.add_image(self.frames[0], **whole)
        else:
            scene.add_video(lambda t: self.frames[self.at.frame], **whole)
        pip = scene.add_video(lambda t: self.pips[self.at.frame], position=(0, 0), size=PIP)
        at = places(0, only_pip=True)
        corners = (*at.overlays, at.caption)
        pictures = (*m.overlays, m.caption)
        laid = [
            scene.add_overlay(picture, position=corner)
            for picture, corner in zip(pictures, corners, strict=True)
        ]
        return scene, pip, laid

    def draw(self, at: Places) -> None:
        """A frame in which everything moved."""
        scene, pip, laid = self.moving
        self.at = at
        pip.position = at.pip
        for node, corner in zip(laid, (*at.overlays, at.caption), strict=True):
            node.position = corner
        self.shown = scene.render()

    def draw_pip(self, at: Places) -> None:
        """A frame in which the PiP alone moved."""
        scene, pip, _ = self.resting
        self.at = at
        pip.position = at.pip
        self.shown = scene.render()

    def pixels(self) -> Array:
        """The last frame."""
        return np.asarray(self.shown)


class StagedFifty:
    """Fifty nodes of a Scene, five of them moving."""

    def __init__(self, m: Material) -> None:
        from dala.media.scene.scene import Scene

        rng = np.random.default_rng(50)
        self.scene = Scene(WIDTH, HEIGHT, device="cpu")
        self.scene.add_image(np.ascontiguousarray(m.background[0][..., :3]), position=(0, 0))
        self.nodes = []
        for i in range(49):
            picture = m.overlays[i % 3]
            scale = rng.uniform(0.6, 1.4)
            x, y = rng.uniform(0, WIDTH - 300), rng.uniform(0, HEIGHT - 200)
            size = round(picture.shape[1] * scale), round(picture.shape[0] * scale)
            node = self.scene.add_image(picture, position=(round(x), round(y)), size=size)
            self.nodes.append((node, round(x), round(y)))
        self.step = 0
        self.scene.render()

    def draw_some(self) -> None:
        """A frame in which five moved."""
        self.step += 1
        for i in (4, 14, 24, 34, 44):
            node, x, y = self.nodes[i]
            node.position = (x + self.step % 20, y + self.step % 10)
        self.shown = self.scene.render()


class Turns:
    """Calls with the next frame's places each time."""

    def __init__(self, draw: Any, only_pip: bool = False) -> None:
        self.draw = draw
        self.places = cycle([places(n, only_pip=only_pip) for n in range(1, PERIOD + 1)])

    def __call__(self) -> None:
        self.draw(next(self.places))


def _moving(m: Material, ours: Any, mine: Any, rounds: int) -> dict[str, Any]:
    """Everything moving, beside the peers."""
    entrants, left_out, checked = {"dala": Turns(ours)}, {}, {}
    held = []  # what peers draw on, some of which do not hold it themselves
    at = places(7)
    ours(at)
    want = mine().astype(np.int16)
    for name, (make, within) in PEERS.items():
        try:
            draw, picture = make(m)
            held.append(picture)
            draw(at)
            far = float(np.abs(picture().astype(np.int16) - want).mean())
        except Exception as error:
            left_out[name] = f"{type(error).__name__}: {str(error)[:120]}"
            continue
        checked[name] = {"mean_steps": far, "within": within}
        if far > within:
            left_out[name] = f"its picture is {far:.2f} steps from ours on average"
        else:
            entrants[name] = Turns(draw)
    rounds = affordable(entrants, rounds)
    with Machine() as machine:
        times = race(entrants, rounds, settle=True)
    judged = judge(times, TARGETS, machine)
    return {"times": times, **judged, "checked": checked, "left_out": left_out}


def _alone(entrants: dict[str, Any], rounds: int, base: str, against: str, least: float) -> Any:
    """Ours against ours."""
    with Machine() as machine:
        times = race(entrants, rounds, settle=True)
    times = {("dala" if name == base else name): t for name, t in times.items()}
    judged = judge(times, {against: least} if least else {}, machine)
    return {"times": times, **judged, "left_out": {}}


def _level(name: str, m: Material, ours: Any, rounds: int) -> dict[str, Any]:
    results = {}
    title = f"{name}: everything moving"
    results[title] = _moving(m, ours.draw, lambda: ours.pixels()[..., :3], rounds)
    report(title, results[title])
    title = f"{name}: only the PiP moving"
    pair = {"dala": Turns(ours.draw_pip, True), "everything moving": Turns(ours.draw)}
    results[title] = _alone(pair, STILL_ROUNDS, "dala", "everything moving", STILL)
    report(title, results[title])
    return results


def _fifty(name: str, entrants: dict[str, Any], rounds: int) -> dict[str, Any]:
    title = f"{name}: 50 nodes, 5 of them moving"
    with Machine() as machine:
        times = race(entrants, rounds, settle=True)
    found = {"times": times, **judge(times, {}, machine, FIFTY_MS), "left_out": {}}
    report(title, found)
    return {title: found}


def main(rounds: int = 60, *, write_down: bool = True) -> None:
    """Races both levels."""
    dala.use("cpu")
    material = Material()
    results = _level("compositor", material, Composed(material), rounds)
    fifty = Fifty(material)
    entrants = {"dala": fifty.draw_some, "all drawn again": fifty.draw_all}
    results.update(_fifty("compositor", entrants, rounds))
    results.update(_level("scene", material, Staged(material), rounds))
    results.update(_fifty("scene", {"dala": StagedFifty(material).draw_some}, rounds))
    if write_down:
        packages = ("opencv-python-headless", "pygame-ce", "skia-python", "pillow", "moviepy")
        write("compositing", results, packages)


if __name__ == "__main__":
    main(write_down="--dry" not in sys.argv)
