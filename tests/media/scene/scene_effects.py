"""Stored scenes of effects and of time."""

from __future__ import annotations

import numpy as np

from dala.gpu.compute import kernel
from dala.media import Scene, Timeline
from tests.media.scene.scene_catalogue import (
    CORAL,
    HEIGHT,
    PAPER,
    SUN,
    TEAL,
    WIDTH,
    stored,
)
from tests.media.scene.scene_material import badge, clip, clock, photo, small, waves
from tests.support.pictures import green_screen

# effects ----------------------------------------------------------------------------------------
STRIPES = kernel(
    """def scene_picture_stripes(px: Pixel, *, strength=0.5):
    y, x = position()
    dark = 1.0 - strength * float(y % 6 < 3)
    return rgba(px.rgb * dark, px.a)
"""
)


@stored()
def effects_on_nodes(scene: Scene) -> None:
    """A filter sees the node's own box: round, turned, with alpha, with border; the rest stays."""
    cat, box = photo("chelsea"), {"size": (96, 76), "fit": "cover"}
    for number, (name, params, look) in enumerate((
        ("gaussian_blur", {"sigma": 3.0}, {"radius": 16}),
        ("grayscale", {}, {"border": (4, SUN)}),
        ("edge_detect", {}, {"shadow": (0, 4, 10, "black")}),
        ("sepia", {}, {"rotation": 8}),
        ("invert", {"opacity": 0.25}, {}),
    )):  # fmt: skip
        row, column = divmod(number, 3)
        place = {"position": (9 + 103 * column, 9 + 86 * row)}
        scene.add_effect(name, scene.add_image(cat, **box, **place, **look), **params)
    star = scene.add_image(badge(), position=(222, 92), size=(84, 84))
    scene.add_effect("gaussian_blur", star, sigma=4.0)


@stored(text=True)
def effects_in_a_row(scene: Scene) -> None:
    """Lists of filters, a kernel of one's own among them, on a picture, a text and a group."""
    # Not scaled: contrast makes much of the last bit that engines may differ by.
    cup = scene.add_image(small("coffee"), crop=(80, 20, 150, 100), position=(8, 8))
    for name, params in (
        ("saturation", {"value": 0.9}), ("contrast", {"value": 0.3}), (STRIPES, {"strength": 0.35}),
        ("vignette", {"amount": 0.8}),
    ):  # fmt: skip
        scene.add_effect(name, cup, **params)
    words = scene.add_text("soft words", size=26, weight="bold", padding=6, position=(14, 118))
    scene.add_effect("gaussian_blur", words, sigma=1.5)
    scene.add_effect("brightness", words, value=-0.1)
    group = scene.add_group(canvas=(140, 160), position=(170, 10))
    group.add_overlay(color=CORAL, shape="circle", position=(10, 10), size=(80, 80))
    group.add_overlay(color=TEAL, shape="circle", position=(45, 60), size=(80, 80))
    scene.add_effect("gaussian_blur", group, sigma=2.0)
    scene.add_effect("hue", group, degrees=60.0)


@stored(text=True)
def blurred_beyond_the_box(scene: Scene) -> None:
    """Blurs of shapes, text, groups and alpha go beyond the box; pictures keep their edges."""
    scene.add_effect("blur", scene.add_overlay(color=SUN, size=(320, 30)), radius=12)
    ring = scene.add_overlay(color=CORAL, shape="circle", position=(20, 52), size=(60, 60),
                             border=(5, PAPER), shadow=(0, 6, 10, "black"))  # fmt: skip
    scene.add_effect("blur", ring, radius=4)
    bar = scene.add_overlay(color=TEAL, position=(130, 82), size=(70, 26), anchor="center",
                            rotation=-20, shape="pill", opacity=0.8)  # fmt: skip
    scene.add_effect("gaussian_blur", bar, sigma=3.0)
    neon = {"size": 34, "weight": "bold", "position": (196, 58)}
    scene.add_effect("gaussian_blur", scene.add_text("neon", color=SUN, **neon), sigma=4.0)
    scene.add_text("neon", color="white", **neon)
    group = scene.add_group(canvas=(80, 50), position=(20, 124), opacity=0.9)
    group.add_overlay(color=PAPER)
    group.add_overlay(color=CORAL, position=(50, 20), size=(40, 40))
    scene.add_effect("blur", group, radius=6)
    scene.add_effect("blur", scene.add_image(badge(), position=(120, 116), size=(56, 56)), radius=5)
    cat = scene.add_image(photo("chelsea"), position=(200, 116), size=(100, 54), fit="cover",
                          radius=12)  # fmt: skip
    scene.add_effect("blur", cat, radius=5)


@stored(text=True)
def frosted_glass(scene: Scene) -> None:
    """Everything below is blurred inside a box with round corners; what is above is sharp."""
    scene.add_image(photo("chelsea"), size=(WIDTH, HEIGHT), fit="cover")
    scene.add_overlay(color=CORAL, shape="circle", position=(30, 30), size=(80, 80))
    glass = {"position": (60, 50), "size": (200, 80), "corner_radius": 16}
    scene.add_effect("gaussian_blur", sigma=6.0, border=(1.5, (255, 255, 255, 150)), **glass)
    scene.add_overlay(color=(255, 255, 255, 50), position=(60, 50), size=(200, 80), radius=16)
    scene.add_text("glass", size=32, weight="bold", anchor="center", position=(160, 90))


@stored()
def effects_below(scene: Scene) -> None:
    """On all below: a list over half of it, one faded, and one inside a group, on that alone."""
    scene.add_image(photo("coffee"), size=(WIDTH, HEIGHT), fit="cover")
    scene.add_overlay(color=SUN, shape="circle", position=(130, 60), size=(60, 60))
    half = {"position": (160, 0), "size": (160, 180)}
    scene.add_effect("grayscale", **half)
    scene.add_effect(STRIPES, **half)
    scene.add_effect("invert", position=(10, 110), size=(100, 60), opacity=0.6)
    group = scene.add_group(canvas=(120, 70), position=(110, 100))
    group.add_overlay(color=TEAL)
    group.add_overlay(color=CORAL, shape="pill", position=(10, 10), size=(100, 50))
    group.add_effect("gaussian_blur", sigma=5.0, position=(0, 0), size=(60, 70))
    scene.add_overlay(color="white", position=(150, 8), size=(20, 20))


@stored(background="transparent")
def effects_on_nothing(scene: Scene) -> None:
    """On all below where that lets light through: what was made stands instead of it."""
    scene.add_overlay(color=CORAL, shape="pill", position=(20, 20), size=(230, 50))
    scene.add_overlay(color="#1f8a8c80", position=(10, 84), size=(300, 40))
    scene.add_image(badge(), position=(20, 116), size=(60, 60))
    glass = {"position": (90, 10), "size": (100, 150), "corner_radius": 24}
    scene.add_effect("gaussian_blur", sigma=7.0, border=(1.5, "#ffffffb0"), **glass)
    scene.add_effect("invert", position=(215.5, 10), size=(80, 150), opacity=0.7)
    group = scene.add_group(canvas=(90, 50), position=(96, 126))
    group.add_overlay(color=SUN, shape="pill", position=(8, 8), size=(74, 34))
    group.add_effect("gaussian_blur", sigma=4.0, position=(45, 0), size=(45, 50))


@stored()
def keyed_out(scene: Scene) -> None:
    """A green screen taken out of a node by a filter: what is below shows, edges are soft."""
    scene.add_video(waves)
    person = scene.add_image(np.ascontiguousarray(green_screen()[..., :3]), size=(WIDTH, HEIGHT),
                             fit="cover")  # fmt: skip
    scene.add_effect("chroma_key", person, key=(0.16, 0.75, 0.24), threshold=0.1, softness=0.12)


# time -------------------------------------------------------------------------------------------
@stored(0.0, 0.5, 1.0, 2.0, height=100)
def animation(scene: Scene) -> None:
    """Position by easings, color by keyframes, rotation, opacity and a filter's parameter."""
    for row, curve in enumerate(("linear", "cubic-in-out", "bounce-out", "steps(4)")):
        ball = scene.add_overlay(color=SUN, shape="circle", position=(6, 6 + 23 * row),
                                 size=(18, 18))  # fmt: skip
        scene.add_animation(ball, "x", 6, 176, 2.0, curve)
    square = scene.add_overlay(color="red", anchor="center", position=(228, 50), size=(44, 44))
    scene.add_animation(square, "rotation", 0, 90, 2.0)
    scene.add_animation(square, "color", keyframes=[(0, "red"), (1, "lime"), (2, "blue")])
    scene.add_animation(square, "radius", 0, 22, 1.0, yoyo=True, repeat=1)
    cat = scene.add_image(small("chelsea"), position=(262, 6), size=(52, 40), fit="cover")
    scene.add_animation(cat, "opacity", 0.1, 1.0, 1.0, delay=0.5)
    cup = scene.add_image(small("coffee"), position=(262, 54), size=(52, 40), fit="cover")
    blur = scene.add_effect("gaussian_blur", cup, sigma=0.5)
    scene.add_animation(blur, "sigma", 0.5, 6.0, 2.0)


@stored(0.0, 0.75, 1.5, 2.5, height=100)
def video_times(scene: Scene) -> None:
    """One clip: plain and frozen at its end, hidden there, looped, twice as fast, begun later."""
    frames = clip(2.0)
    box = {"size": (56, 56), "fps": 10}
    for column, options in enumerate((
        {}, {"end": "hide"}, {"loop": True}, {"speed": 2.0}, {"offset": 0.5},
    )):  # fmt: skip
        scene.add_video(frames, position=(6 + 62 * column, 22), **box, **options)


@stored(0.0, 0.5, 1.0, height=120, background=PAPER)
def scene_in_a_scene(scene: Scene) -> None:
    """A scene with its own animation and alpha, shown twice as a node: turned, and cut round."""
    inner = Scene(120, 90, background="transparent", device=scene.device)
    inner.add_overlay(color=TEAL, radius=12, size=(120, 90))
    ball = inner.add_overlay(color=SUN, shape="circle", position=(10, 30), size=(30, 30))
    inner.add_animation(ball, "x", 10, 80, 1.0, "sine-in-out")
    scene.add_scene(inner, position=(90, 60), anchor="center", rotation=-10, shadow=True)
    scene.add_scene(inner, position=(230, 60), anchor="center", size=(100, 100), fit="cover",
                    radius=50, border=(4, CORAL))  # fmt: skip


@stored(0.0, 0.4, 0.8, 1.2)
def much_at_once(scene: Scene) -> None:
    """Two hundred nodes, some moving, in groups and under glass: dirty rectangles at work."""
    scene.add_image(photo("coffee"), size=(WIDTH, HEIGHT), fit="cover")
    dice = np.random.default_rng(3)
    groups = [scene.add_group(opacity=opacity) for opacity in (1.0, 0.7)]
    for number in range(200):
        x, y, side = dice.random() * 300, dice.random() * 160, 6 + dice.random() * 14
        color = tuple(int(n) for n in dice.integers(60, 256, 3))
        node = groups[number % 2].add_overlay(
            color=color, shape=("rect", "circle", "pill")[number % 3], position=(x, y),
            size=(side, side * 0.8), rotation=float(number * 7 % 90), opacity=0.8,
        )  # fmt: skip
        if number % 10 == 0:
            scene.add_animation(node, "x", x, 310 - x, 1.2, "sine-in-out")
    glass = scene.add_effect("gaussian_blur", sigma=4.0, size=(90, 90), corner_radius=45)
    scene.add_animation(glass, "position", (0, 10), (230, 80), 1.2)
    scene.add_video(clock, pip_position="bottom-left", pip_size=(40, 40), margin=6, radius=20)


@stored(0.25, 0.75, 1.5)
def timeline(scene: Scene) -> None:
    """Clips with a wipe and a dissolve between them, half over, and the last alone."""
    clips = Timeline(duration=1)
    clips.add(photo("coffee")).add(TEAL, transition=("wipe", 0.5, {"angle": 30, "softness": 0.2}))
    clips.add(badge(), transition=("dissolve", 0.5))
    scene.add_timeline(clips, size=(WIDTH, HEIGHT))
