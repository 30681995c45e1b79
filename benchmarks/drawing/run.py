"""Drawing on a 1920x1080 surface, against pygame-ce, Skia, Pillow, OpenCV, Blend2D and NumPy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.drawing import fresh, vector
from benchmarks.drawing.peers import Absent, Call, Peer, Pygame, Skia, play, present
from benchmarks.drawing.scene import BACKGROUND, HEIGHT, KINDS, OUTLINES, WIDTH, Primitive, scene
from benchmarks.harness import Machine, affordable, judge, race, report, write
from dala import gpu
from dala.gpu import command
from dala.gpu.compute.engines.cpu.threads import pool

Run = Callable[[], Any]
Judged = dict[str, Any]

#: The ways a scene is drawn on a surface. One call per primitive has no target: it is plain Python.
BATCH: Final = "dala"
ENCODING: Final = "dala, encoding too"
CALLS: Final = "dala, a call each"

#: The allowed ratio of a peer's pixels to ours: rules differ at the edges.
COVERED: Final = (0.75, 1.35)
#: The allowed difference in steps of 255 where many shapes are blended.
BLENDED: Final = 4

NAMES: Final = {
    "rect": "fill_rect",
    "line": "draw_line",
    "circle": "draw_circle",
    "disc": "fill_circle",
    "triangle": "fill_triangle",
    "round rect": "fill_round_rect",
    "triangle outline": "draw_triangle",
    "round outline": "draw_round_rect",
}


class Stage:
    """Our surface and the peers."""

    def __init__(self) -> None:
        self.surface = gpu.create_surface(WIDTH, HEIGHT)
        self.peers, self.left_out = present()

    def peer(self, kind: type[Peer]) -> Any:
        return next((p for p in self.peers if type(p) is kind), None)

    def blank(self) -> None:
        """Fill every framebuffer with the background."""
        self.surface.clear(BACKGROUND)
        for peer in self.peers:
            peer.blank()

    def pixels(self) -> np.ndarray[Any, Any]:
        return self.surface.to_array()[..., :3]


def _race(
    entrants: dict[str, Run],
    wanted: dict[str, dict[str, float]],
    rounds: int,
    best: float | None = None,
) -> Judged:
    """Return times, ratios to our batch, and targets."""
    rounds = affordable(entrants, rounds, 10.0)
    with Machine() as machine:
        times = race(entrants, rounds, settle=True)
    judged = judge(times, wanted.get(BATCH, {}), machine)
    met: dict[str, bool | None] = {}
    rivals = {name: t["min_ms"] for name, t in times.items() if not name.startswith(BATCH)}
    if best is not None and rivals:
        fastest = min(rivals, key=lambda name: rivals[name]).partition(",")[0]
        met |= judge(times, {fastest: best}, machine)["targets"]
    for way, targets in wanted.items():
        for target, reached in judge(times, targets, machine, ours=way)["targets"].items():
            met[f"{target} ({way})" if way != BATCH else target] = reached
    return {"times": times, **judged, "targets": met}


# primitives -----------------------------------------------------------------------------------
def _ours(stage: Stage, things: list[Primitive]) -> dict[str, Run]:
    s = stage.surface
    encoders: list[Call] = []
    calls: list[Call] = []
    for p in things:
        encoders.append((getattr(command, f"encode_{NAMES[p.kind]}"), (*p.numbers, p.color)))
        calls.append((getattr(gpu, NAMES[p.kind]), (s, *p.numbers, p.color)))
    commands = [encode(*arguments) for encode, arguments in encoders]

    def batch() -> None:
        s.batch(commands)
        s.synchronize()

    def encoding() -> None:
        s.batch([encode(*arguments) for encode, arguments in encoders])
        s.synchronize()

    def each() -> None:
        play(calls)
        s.synchronize()

    return {BATCH: batch, ENCODING: encoding, CALLS: each}


def _entrants(stage: Stage, peer: Peer, things: list[Primitive], alpha: bool) -> dict[str, Run]:
    calls = [peer.call(p, alpha) for p in things]
    name = f"{peer.name}, antialiased" if peer.antialiased else peer.name
    found: dict[str, Run] = {name: partial(play, calls)}
    if isinstance(peer, Skia):
        found[f"{peer.name}, a picture replayed"] = peer.recorded(things)
    return found


def _wrong(mine: Any, theirs: Any, exact: bool, alpha: bool) -> tuple[dict[str, float], str]:
    """Compare a peer's picture with ours; return the figures and a reason to leave it out."""
    background = np.array(BACKGROUND, np.uint8)
    ours, other = ((picture != background).any(2).sum() for picture in (mine, theirs))
    found = {"covered": float(other / max(ours, 1))}
    if not COVERED[0] <= found["covered"] <= COVERED[1]:
        return found, f"it draws {found['covered']:.2f} times the pixels that we do"
    if exact:
        found["steps"] = float(np.abs(mine.astype(np.int16) - theirs).max())
        found["within"] = BLENDED if alpha else 0
        if found["steps"] > found["within"]:
            return found, f"its picture is {found['steps']:g} steps from ours"
    return found, ""


def _primitives(stage: Stage, kinds: tuple[str, ...], alpha: bool, rounds: int) -> Judged:
    things = scene(kinds, alpha=alpha)
    entrants = _ours(stage, things)
    checked, left_out = {}, dict(stage.left_out)
    pictures = []
    for run in entrants.values():
        stage.blank()
        run()
        pictures.append(stage.pixels())
    if not all(np.array_equal(pictures[0], picture) for picture in pictures):
        return {"failed": "our three ways draw different pictures"}
    for peer in stage.peers:
        try:
            found = _entrants(stage, peer, things, alpha)
        except Absent as why:
            left_out[peer.name] = str(why)
            continue
        for name, run in found.items():
            peer.blank()
            run()
            exact = kinds == ("rect",)
            checked[name], why_not = _wrong(pictures[0], peer.pixels(), exact, alpha)
            if why_not:
                left_out[name] = why_not
            else:
                entrants[name] = run
    judged = _race(entrants, {}, rounds, best=5.0 if len(kinds) > 1 else 2.0)
    rate = {name: len(things) / t["min_ms"] for name, t in judged["times"].items()}
    return {**judged, "thousand_a_second": rate, "checked": checked, "left_out": left_out}


# sprites, clears, images ----------------------------------------------------------------------
def _sprites(stage: Stage, rounds: int, count: int = 1000, kinds: int = 16) -> Judged:
    rng = np.random.default_rng(3)
    ramp = np.hypot(*np.meshgrid(np.arange(32) - 15.5, np.arange(32) - 15.5))
    pictures = []
    for _ in range(kinds):
        picture = np.empty((32, 32, 4), np.uint8)
        picture[..., :3] = rng.integers(0, 256, 3)
        picture[..., 3] = np.clip((17 - ramp) * 40, 0, rng.integers(120, 256))
        pictures.append(picture)
    places = [
        (int(n), int(x), int(y))
        for n, x, y in zip(
            rng.integers(0, kinds, count),
            rng.integers(0, WIDTH - 32, count),
            rng.integers(0, HEIGHT - 32, count),
            strict=True,
        )
    ]
    s = stage.surface
    for n, picture in enumerate(pictures):
        s.load_sprite(n, picture, 32, 32)
    commands = [command.encode_blit(n, x, y) for n, x, y in places]

    def ours() -> None:
        s.batch(commands)
        s.synchronize()

    entrants: dict[str, Run] = {BATCH: ours}
    checked, left_out = {}, dict(stage.left_out)
    stage.blank()
    ours()
    mine = stage.pixels()
    peer = stage.peer(Pygame)
    if peer is not None:
        for name, run in _pygame_sprites(peer, pictures, places).items():
            peer.blank()
            run()
            checked[name], why_not = _wrong(mine, peer.pixels(), True, True)
            if why_not:
                left_out[name] = why_not
            else:
                entrants[name] = run
    judged = _race(entrants, {BATCH: {"pygame-ce": 1.5}}, rounds)
    return {**judged, "checked": checked, "left_out": left_out}


def _pygame_sprites(peer: Any, pictures: list[Any], places: list[Any]) -> dict[str, Run]:
    pygame = peer.pygame
    pygame.display.set_mode((1, 1))  # gives sprites the fastest layout
    straight = [
        pygame.image.frombuffer(p.tobytes(), (32, 32), "RGBA").convert_alpha() for p in pictures
    ]
    ready = [sprite.premul_alpha() for sprite in straight]
    plain = [(straight[n], (x, y)) for n, x, y in places]
    premultiplied = [(ready[n], (x, y)) for n, x, y in places]
    mode = pygame.BLEND_PREMULTIPLIED
    return {
        "pygame-ce, straight": lambda: peer.frame.fblits(plain),
        "pygame-ce, premultiplied": lambda: peer.frame.fblits(premultiplied, mode),
    }


def _clears(stage: Stage, rounds: int, count: int) -> Judged:
    colors = [(30 + n, 60, 90 - n, 255) for n in range(count)]
    s = stage.surface

    def ours() -> None:
        for color in colors:
            s.clear(color)
        s.synchronize()

    words = np.zeros((HEIGHT, WIDTH), np.uint32)
    numbers = [int.from_bytes(bytes(color), "little") for color in colors]

    def filled() -> None:
        for number in numbers:
            words.fill(number)

    entrants: dict[str, Run] = {BATCH: ours, "numpy": filled}
    pygame, skia = stage.peer(Pygame), stage.peer(Skia)
    if pygame is not None:
        entrants["pygame-ce"] = lambda: [pygame.frame.fill(color) for color in colors]
    if skia is not None:
        shades = [skia.skia.Color(*color) for color in colors]
        entrants["skia"] = lambda: [skia.canvas.clear(shade) for shade in shades]
    judged = _race(entrants, {}, rounds, best=1 / 1.1)
    drawn = {BATCH: stage.pixels()}
    drawn |= {p.name: p.pixels() for p in (pygame, skia) if p is not None}
    wrong = [name for name, picture in drawn.items() if (picture != colors[-1][:3]).any()]
    if wrong:
        return {"failed": f"{', '.join(wrong)} did not clear"}
    return {**judged, "left_out": dict(stage.left_out)}


def _images(stage: Stage, rounds: int, count: int) -> Judged:
    try:
        import cv2
    except ImportError as error:
        return {"missing": f"opencv: {error}"}
    rng = np.random.default_rng(5)
    photo = np.full((200, 300, 4), 255, np.uint8)
    coarse = rng.integers(0, 256, (25, 38, 3), np.uint8)
    photo[..., :3] = np.kron(coarse, np.ones((8, 8, 1), np.uint8))[:200, :300]
    places = [(17 + 150 * n, 9 + 80 * n) for n in range(count)]
    s = stage.surface
    s.load_image(1, photo, 300, 200)
    commands = [command.encode_image_blit(1, x, y, 600, 400) for x, y in places]

    def ours() -> None:
        s.batch(commands)
        s.synchronize()

    frame = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    frame[:] = (*BACKGROUND, 255)
    targets = [frame[y : y + 400, x : x + 600] for x, y in places]

    def theirs() -> None:
        for target in targets:
            cv2.resize(photo, (600, 400), target, interpolation=cv2.INTER_LINEAR)

    stage.blank()
    ours()
    theirs()
    steps = int(np.abs(stage.pixels().astype(np.int16) - frame[..., :3]).max())
    checked = {"opencv": {"steps": steps, "within": 1}}
    if steps > 1:
        why = {"opencv": f"its picture is {steps} steps from ours"}
        return {**_race({BATCH: ours}, {}, rounds), "checked": checked, "left_out": why}
    judged = _race({BATCH: ours, "opencv": theirs}, {BATCH: {"opencv": 1 / 1.2}}, rounds)
    return {**judged, "checked": checked, "left_out": {}}


def _presents(stage: Stage, rounds: int, count: int = 16) -> Judged:
    """Measure a present after a tenth of the frame changed: time with it minus time without."""
    s, found = stage.surface, {}
    shapes = {
        "a band": (0, 300, WIDTH, 108),
        "a column": (900, 0, 192, HEIGHT),
        "a block": (640, 320, 607, 342),
    }
    with Machine() as machine:
        for name, shape in shapes.items():
            runs: dict[str, Run] = {
                "with": partial(_shown, s, shape, count, True),
                "without": partial(_shown, s, shape, count, False),
            }
            times = race(runs, rounds, settle=True)
            found[name] = (times["with"]["min_ms"] - times["without"]["min_ms"]) / count
    worst = max(found.values())
    met = {"< 0.3 ms": worst < 0.3 if machine.quiet else None}
    times = {BATCH: {"min_ms": worst, "median_ms": worst}}
    for name, cost in found.items():
        print(f"  present, {name} of a tenth changed: {cost:.3f} ms")
    return {
        "times": times,
        "each_ms": found,
        "ratios": {},
        "targets": met,
        "others": machine.others,
        "left_out": {},
    }


def _shown(s: gpu.Surface, shape: tuple[int, int, int, int], count: int, shown: bool) -> None:
    for n in range(count):
        s.fill_rect(*shape, (n, 80, 120))
        if shown:
            s.present()
    s.synchronize()


def _rows(stage: Stage, rounds: int) -> Iterator[tuple[str, Callable[[], Judged]]]:
    for alpha in (False, True):
        how = "with alpha" if alpha else "opaque"
        yield f"10,000 of six kinds, {how}", partial(_primitives, stage, KINDS, alpha, rounds)
        for kind in (*KINDS, *OUTLINES):
            measure = partial(_primitives, stage, (kind,), alpha, rounds)
            yield f"10,000 of {kind}, {how}", measure
    yield "1,000 sprites 32x32 with alpha", partial(_sprites, stage, rounds)
    yield "clear, 8 in a row", partial(_clears, stage, rounds, 8)
    yield "clear, one and waited for", partial(_clears, stage, rounds, 1)
    yield "image 300x200 to 600x400, 8 in a row", partial(_images, stage, rounds, 8)
    yield "image 300x200 to 600x400, one and waited for", partial(_images, stage, rounds, 1)
    yield from vector.rows(rounds)
    yield "present, a tenth of the frame changed", partial(_presents, stage, rounds)
    yield "memory of a surface", fresh.memory
    yield "first command of a fresh process", fresh.first


PACKAGES: Final = (
    "pygame-ce",
    "skia-python",
    "pillow",
    "opencv-python-headless",
    "blend2d-py",
    "cairocffi",
    "thorvg-python",
)


def main(rounds: int = 30, only: tuple[str, ...] = ()) -> None:
    """Measure every row, or print only those whose titles contain a word of ``only``.

    ``vector`` alone is a topic of its own, and written: ``DALA_THREADS=1`` compares with one thread
    of ours.
    """
    if only == ("vector",):
        threads, rows = pool().threads, vector.rows(rounds)
        topic = "drawing_vector" if threads > 1 else "drawing_vector_one_thread"
    else:
        topic, rows = "" if only else "drawing", _rows(Stage(), rounds)
    results = {}
    for title, measure in rows:
        if topic or any(word in title for word in only):
            results[title] = measure()
            report(title, results[title])
    if topic:
        write(topic, results, PACKAGES)


if __name__ == "__main__":
    main(only=tuple(sys.argv[1:]))
