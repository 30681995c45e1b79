"""A slide show: photographs that move slowly, with a title, one transition after another.

python examples/slide_show.py                  # out/slide_show.png and out/slide_show.mp4
python examples/slide_show.py --show window    # plays it
"""

from __future__ import annotations

import sys

from running import run

from dala import samples
from dala.gpu.compute import kernel
from dala.gpu.compute.language import Image, mix, position, rgba, smoothstep
from dala.media import Scene

WIDTH, HEIGHT = 960, 540
MOMENT = 9.0
PHOTOS = ("coffee", "chelsea", "astronaut")
INTO = (("iris", 1.2, {"softness": 0.08}), ("push", 1, {"easing": "ease-in-out"}))


@kernel
def shutters(a: Image, b: Image, *, t: float, count: int = 8):
    """Open shutters one after another, from left to right: a transition of our own."""
    x = position(1)
    place = float(x) / float(a.width) * float(count)
    inside = place - float(int(place))
    w = smoothstep(0.0, 1.0, t * 2.0 - float(int(place)) / float(count)) * 1.02
    first, second = a[0, 0], b[0, 0]
    return rgba(mix(first.rgb, second.rgb, 1.0 if inside < w else 0.0), mix(first.a, second.a, t))


def build(device: str | None = None) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(WIDTH, HEIGHT, fps=30, device=device)
    show = scene.add_timeline(id="show")
    title = show.add_group(duration=3, transition=("fade", 0.8))
    title.add_overlay(color="#10213f")
    title.add_text("Three photographs", size=64, weight="bold", anchor="center",
                   position=(WIDTH / 2, HEIGHT / 2))  # fmt: skip
    for number, name in enumerate(PHOTOS):
        way = (shutters, 1.5) if number == 0 else INTO[number - 1]
        slide = show.add_group(duration=4, transition=way)
        photo = samples.photo(name, device="cpu")
        part = (0, 0, photo.width, photo.width * HEIGHT / WIDTH) if name == "astronaut" else None
        view = slide.add_image(photo, size=(WIDTH, HEIGHT), fit="cover", anchor="center", crop=part,
                               position=(WIDTH / 2, HEIGHT / 2))  # fmt: skip
        # Times inside a clip count from its own start.
        scene.add_animation(view, "scale", 1, 1.12, 4, "sine", start=0)
        slide.add_text(name.title(), size=30, position="bottom-left", margin=28, start=0.8,
                       shadow=True)  # fmt: skip
    show.add("black", duration=1, transition=("dissolve", 0.9))
    return scene


def main(arguments: list[str] | None = None) -> int:
    """Write a picture and the video, or play it."""
    return run(build, arguments, moment=MOMENT)


if __name__ == "__main__":
    sys.exit(main())
