"""Scenes whose pictures are stored in tests/media/scenes, one for each thing that can go wrong.

``python -m tests.media.scene.scene_pictures`` writes the pictures again, on the reference engine
(names after it: only those), and a sheet of all of them, out/scenes.png. Look at it.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np

import dala
import tests.media.scene.scene_effects  # noqa: F401
from dala.gpu import LinearGradient, Path
from dala.gpu.compute.composite import BLENDS
from dala.media import Scene
from tests.media.scene.scene_catalogue import (
    CORAL,
    FOLDER,
    HEIGHT,
    INK,
    PAPER,
    SCENES,
    SUN,
    TEAL,
    WIDTH,
    show,
    stored,
)
from tests.media.scene.scene_material import badge, chart, clock, photo, small, swatch, waves

#: A file of shapes that the project has.
ICON = pathlib.Path(__file__).parents[3] / "website" / "assets" / "favicon.svg"


# light and alpha --------------------------------------------------------------------------------
@stored(background="black")
def half_white(scene: Scene) -> None:
    """50% of white over black is 128; by opacity, by the color's alpha, by the group's opacity."""
    scene.add_overlay(color="white", size=(80, 180), opacity=0.5)
    scene.add_overlay(color=(255, 255, 255, 128), position=(80, 0), size=(80, 180))
    group = scene.add_group(opacity=0.5)
    group.add_overlay(color="white", position=(160, 0), size=(80, 180))
    for step in range(5):
        box = {"position": (240, 36 * step), "size": (80, 36)}
        scene.add_overlay(color="white", opacity=step / 4, **box)
    scene.add_overlay(color="white", position=(40, 60), size=(160, 60), opacity=0.5)


@stored(background="transparent")
def shadow_on_nothing(scene: Scene) -> None:
    """Shadows of boxes and of shapes with alpha, blurred and sharp, where nothing is below."""
    soft = (6, 8, 18, (20, 20, 60, 200))
    box = {"size": (70, 60)}
    scene.add_overlay(color=CORAL, position=(24, 20), radius=14, shadow=soft, **box)
    scene.add_overlay(color=SUN, position=(124, 20), shadow=(8, 8, 0, (20, 20, 60, 160)), **box)
    scene.add_image(badge(), position=(222, 8), size=(80, 80), shadow=soft)
    scene.add_image(chart(), position=(24, 106), rotation=-8, shadow=soft, **box)
    scene.add_overlay(color=(31, 138, 140, 120), position=(124, 106), shadow=soft, **box)
    scene.add_image(
        badge(), position=(222, 96), size=(80, 80), shadow=(6, 6, 0, (200, 30, 60, 160))
    )


@stored(background="transparent")
def nested_groups(scene: Scene) -> None:
    """Groups in groups, each with an opacity, turned and cut by their canvas; alpha is kept."""
    outer = scene.add_group(canvas=(260, 140), position=(30, 20), opacity=0.8)
    outer.add_overlay(color=TEAL, radius=20)
    inner = outer.add_group(canvas=(120, 90), position=(70, 70), anchor="center", rotation=20,
                            opacity=0.6)  # fmt: skip
    inner.add_overlay(color=SUN)
    inner.add_overlay(color=CORAL, shape="circle", position=(60, 45), size=(80, 80))
    plain = outer.add_group(canvas=(90, 90), position=(150, 25))
    plain.add_overlay(color=PAPER, shape="circle", position=(45, -20), size=(80, 80))
    plain.add_overlay(color=(27, 34, 51, 128), position=(0, 50), size=(60, 60))
    deepest = plain.add_group(canvas=(40, 40), position=(45, 45), opacity=0.5, radius=20)
    deepest.add_overlay(color="white")


@stored()
def group_opacity(scene: Scene) -> None:
    """Left: three circles of 60%. Right: the same three, opaque, in a group of 60%."""
    scene.add_image(photo("coffee"), size=(WIDTH, HEIGHT), fit="cover")
    group = scene.add_group(opacity=0.6)
    for left, home, opacity in ((0, scene, 0.6), (160, group, 1.0)):
        for color, x, y in ((CORAL, 80, 62), (SUN, 56, 106), (TEAL, 104, 106)):
            home.add_overlay(color=color, shape="circle", position=(left + x, y), size=(84, 84),
                             anchor="center", opacity=opacity)  # fmt: skip


@stored()
def no_fringes(scene: Scene) -> None:
    """A picture whose transparent pixels are black: no dark edge, larger, smaller or turned."""
    scene.add_overlay(color=PAPER, size=(160, 180))
    scene.add_overlay(color="#f6c14b", position=(80, 0), size=(160, 180))
    for x in (80, 240):
        middle = {"anchor": "center"}
        scene.add_image(badge(24), position=(x, 62), size=(110, 110), **middle)
        scene.add_image(badge(96), position=(x - 44, 144), size=(48, 48), **middle)
        scene.add_image(badge(96), position=(x, 144), size=(16, 16), **middle)
        scene.add_image(badge(96), position=(x + 44, 144), size=(48, 48), rotation=33, **middle)


@stored()
def linear_light(scene: Scene) -> None:
    """Left blended in sRGB, right in linear light: a fade, a soft edge and a shadow."""
    for x, space in ((0, "srgb"), (160, "linear")):
        inner = Scene(160, 180, background="#d03030", blend_space=space, device=scene.device)
        inner.add_image(swatch(), position=(10, 10), size=(140, 60))
        inner.add_overlay(color="#20c040", position=(10, 80), size=(80, 40), opacity=0.5)
        inner.add_overlay(color="white", shape="circle", position=(105, 80), size=(40, 40),
                          shadow=(0, 6, 14, "black"))  # fmt: skip
        for step in range(8):
            inner.add_overlay(color="white", position=(12 + 17 * step, 135), size=(17, 35),
                              opacity=step / 7)  # fmt: skip
        scene.add_scene(inner, position=(x, 0))


def _blends(scene: Scene) -> None:
    scene.add_image(photo("chelsea"), size=(WIDTH, HEIGHT), fit="cover")
    for number, blend in enumerate(BLENDS):
        row, column = divmod(number, 5)
        scene.add_image(swatch(), position=(5 + 63 * column, 5 + 58 * row), size=(58, 54),
                        blend=blend)  # fmt: skip
    scene.add_overlay(color=SUN, position=(194, 121), size=(58, 54), radius=12, border=(4, CORAL),
                      shadow=(2, 3, 6), blend="multiply", opacity=0.8)  # fmt: skip
    group = scene.add_group(canvas=(58, 54), position=(257, 121), blend="screen", opacity=0.8)
    group.add_overlay(color=CORAL, shape="circle", size=(40, 40))
    group.add_overlay(color=TEAL, shape="circle", position=(18, 14), size=(40, 40))


@stored()
def blend_modes(scene: Scene) -> None:
    """Every blend mode in order, then one of a node with border and shadow, then of a group."""
    _blends(scene)


@stored(blend_space="linear")
def blend_modes_linear(scene: Scene) -> None:
    """The same in linear light."""
    _blends(scene)


# shapes -----------------------------------------------------------------------------------------
@stored(background=PAPER)
def shapes(scene: Scene) -> None:
    """Paths that are filled and stroked, a part of a line, a gradient, and a file of shapes."""
    heart = Path.svg(
        "M40 75 C0 45 5 10 25 10 C35 10 40 20 40 25 C40 20 45 10 55 10 C75 10 80 45 40 75Z"
    )
    scene.add_shape(heart, fill=CORAL, stroke=INK, width=3, position=(10, 10))
    scene.add_shape(Path.star(40, 40, 36, points=7), fill=SUN, position=(100, 12), rotation=20)
    scene.add_shape(
        Path.circle(36, 36, 34), stroke=TEAL, width=5, trim=(0.1, 0.7), position=(200, 12)
    )
    light = LinearGradient((0, 0), (140, 0), [(0, CORAL), (0.5, SUN), (1, TEAL)])
    scene.add_shape(Path.round_rect(0, 0, 140, 50, 18), fill=light, position=(12, 110), opacity=0.8)
    scene.add_svg(ICON, width=70, position=(180, 100))


# boxes ------------------------------------------------------------------------------------------
@stored(background=PAPER)
def turned_and_scaled(scene: Scene) -> None:
    """Rotation and scale about the anchor, which a dot marks."""
    card = chart()
    dot = {"shape": "circle", "size": (6, 6), "anchor": "center", "color": CORAL, "z_index": 1}
    for anchor, x, y, turn, scale in (
        ("top-left", 44, 10, 15, 0.6), ("center", 160, 48, 45, 0.7),
        ("bottom-right", 300, 84, -10, 0.7),
        ("center", 60, 132, 90, 0.75), ("center", 160, 134, 180, 0.5), ("center", 260, 132, 0, 0.9),
    ):  # fmt: skip
        scene.add_image(card, position=(x, y), anchor=anchor, rotation=turn, scale=scale)
        scene.add_overlay(position=(x, y), **dot)
    scene.add_overlay(color=(31, 138, 140, 160), position=(260, 132), anchor="center",
                      size=(60, 30), rotation=30, scale=1.4, radius=10)  # fmt: skip


@stored(background="#cfd8dc")
def corners_borders_shadows(scene: Scene) -> None:
    """Round corners, borders inside the box and shadows, alone and together, also turned."""
    cat = photo("chelsea")
    box = {"size": (86, 72), "fit": "cover"}
    shadow = (0, 6, 16, (10, 20, 40, 170))
    scene.add_image(cat, position=(14, 12), radius=18, **box)
    scene.add_image(cat, position=(117, 12), border=(5, "white"), **box)
    scene.add_image(cat, position=(220, 12), radius=18, border=(5, "white"), shadow=shadow, **box)
    scene.add_image(cat, position=(14, 98), radius=400, border=(3, CORAL), shadow=True, **box)
    scene.add_image(cat, position=(160, 134), anchor="center", rotation=-12, radius=12,
                    border=(4, INK), shadow=shadow, **box)  # fmt: skip
    scene.add_image(cat, position=(220, 98), radius=18, border=(5, (255, 255, 255, 120)),
                    shadow=shadow, opacity=0.6, **box)  # fmt: skip


@stored(background=PAPER)
def fits_and_crops(scene: Scene) -> None:
    """Above: fill, contain, cover and none in boxes of another shape. Below: the same, cropped."""
    card = chart()
    for row, crop in enumerate((None, (60, 30, 60, 50))):
        for column, fit in enumerate(("fill", "contain", "cover", "none")):
            box = {"position": (8 + 78 * column, 8 + 86 * row), "size": (70, 78)}
            scene.add_overlay(color=(27, 34, 51, 40), **box)
            scene.add_image(card, fit=fit, crop=crop, **box)


@stored()
def fits_with_corners(scene: Scene) -> None:
    """What is shown has the corners, the border and the shadow, not the empty part of the box."""
    cup = small("coffee")
    for column, fit in enumerate(("fill", "contain", "cover", "none")):
        scene.add_image(cup, fit=fit, position=(8 + 78 * column, 30), size=(70, 120), radius=12,
                        border=(3, SUN), shadow=(0, 4, 10, "black"))  # fmt: skip


@stored(width=480, height=270)
def pip_corners(scene: Scene) -> None:
    """A picture in a picture in each corner, that of a plain pip=True among them (top right)."""
    scene.add_image(photo("coffee"), size=(480, 270), fit="cover")
    look = {"fit": "cover", "radius": 10, "border": (3, "white"), "shadow": True}
    scene.add_video(waves, pip=True, **look)
    scene.add_image(photo("chelsea"), pip_position="top-left", pip_size=(120, 80), **look)
    scene.add_image(photo("astronaut"), pip_position="bottom-left", pip_size=(70, 70),
                    margin=8, **look)  # fmt: skip
    moved = scene.add_video(clock, pip=True, pip_position="top-left", **look)
    scene.set_pip_transform(moved, size=(60, 60), position="bottom-right")


@stored()
def layouts(scene: Scene) -> None:
    """side_by_side, stack and grid in areas of their own; a last row not full is centered."""
    pictures = [small("chelsea"), small("coffee"), small("astronaut")]

    def some(count: int) -> list[Any]:
        return [scene.add_image(pictures[n % 3], radius=6) for n in range(count)]

    scene.side_by_side(some(3), 6, area=(8, 8, 196, 80), fit="cover")
    scene.stack(some(3), 6, area=(212, 8, 100, 164), fit="cover")
    scene.grid(some(5), 6, area=(8, 96, 196, 76), fit="cover")


@stored()
def wall_of_four(scene: Scene) -> None:
    """grid(4): videos and pictures in the order they were added, the whole scene."""
    scene.add_video(waves, fit="cover")
    scene.add_image(photo("chelsea"), fit="cover")
    scene.add_image(photo("astronaut"), fit="contain")
    scene.add_video(clock, fit="contain")
    scene.grid(4, 4)


@stored(background=PAPER)
def order(scene: Scene) -> None:
    """Equal z_index: as added. Then one raised, one lowered; one that is not visible."""
    for row, z in enumerate(((0, 0, 0, 0), (0, 3, 2, 1), (0.5, 0, 0.5, 0))):
        for number, color in enumerate((CORAL, SUN, TEAL, INK)):
            node = scene.add_overlay(
                color=color, position=(40 + 52 * number, 14 + 54 * row), size=(80, 46), radius=8,
                z_index=z[number], border=(2, "white"),
            )  # fmt: skip
            node.visible = (row, number) != (2, 2)


@stored(background="#26304a")
def shapes_and_overlays(scene: Scene) -> None:
    """Rectangles, pills and circles; a picture as an overlay; parts of pixels at edges."""
    scene.add_overlay(color=CORAL, position=(12, 12), size=(90, 44))
    scene.add_overlay(color=SUN, shape="pill", position=(115, 12), size=(90, 44))
    scene.add_overlay(color=TEAL, shape="circle", position=(222, 12), size=(44, 44))
    scene.add_overlay("white", shape="pill", position=(20, 80), size=(100, 22), rotation=-10,
                      border=(3, CORAL), shadow=True)  # fmt: skip
    scene.add_overlay(badge(), position=(200, 64), size=(110, 110), opacity=0.85)
    scene.add_overlay("#ffffff80", position=(140.5, 70.5), size=(40, 40))
    scene.add_overlay("#ffffff", position=(140.25, 130.75), size=(40.5, 20.5), radius=4)
    scene.add_overlay(CORAL, shape="circle", position=(-20, 140), size=(60, 60))


@stored()
def far_smaller(scene: Scene) -> None:
    """Photographs and a fine grid made much smaller: no sparkle, no moiré that shimmers."""
    y, x = np.mgrid[:300, :300]
    grid = np.where((x // 2 + y // 2) % 2, 255, 0).astype(np.uint8)
    scene.add_image(np.dstack([grid] * 3), size=(100, 100), position=(6, 6))
    scene.add_image(np.dstack([grid] * 3), size=(61, 61), position=(112, 6), rotation=10)
    scene.add_image(photo("astronaut"), size=(100, 100), position=(200, 6))
    left = 6
    for side in (64, 48, 32, 24, 16, 8):
        scene.add_image(small("astronaut"), size=(side, side), position=(left, 114))
        left += side + 6
    scene.add_image(chart()[:12, :12], size=(60, 60), position=(240, 114))


# text -------------------------------------------------------------------------------------------
@stored(0.0, 1.5, text=True)
def text_over_video(scene: Scene) -> None:
    """A title with a shadow and a caption in a box over a moving picture."""
    scene.add_video(waves)
    scene.add_text("Evening at sea", size=34, weight="bold", position=(160, 20), anchor="top",
                   shadow=(0, 2, 6, (0, 0, 0, 180)))  # fmt: skip
    scene.add_text("the wind from south-west, the water calm", size=15,
                   background=(10, 14, 30, 170), padding=(12, 6), radius=10, anchor="bottom",
                   position=(160, 168))  # fmt: skip


@stored(background=PAPER, text=True)
def text_styles(scene: Scene) -> None:
    """Sizes, weights, alignment in a box, outline, spacing; text turned, scaled and faded."""
    scene.add_text("Åre façade", size=30, weight="black", color=INK, position=(10, 4))
    scene.add_text("light italic", size=22, weight="light", italic=True, color=TEAL,
                   position=(176, 12))  # fmt: skip
    box = {
        "size": 12,
        "color": INK,
        "background": "#e2dccd",
        "padding": 6,
        "width": 96,
        "radius": 6,
    }
    for column, align in enumerate(("left", "center", "right")):
        scene.add_text("Lines are wrapped to their box.", align=align,
                       position=(10 + 102 * column, 50), **box)  # fmt: skip
    scene.add_text("OUTLINE", size=26, weight="bold", color="white", outline_width=3,
                   outline_color=CORAL, letter_spacing=2, position=(10, 104))  # fmt: skip
    scene.add_text("turned", size=24, weight="bold", color=CORAL, rotation=-14, anchor="center",
                   position=(196, 126))  # fmt: skip
    scene.add_text("scaled", size=12, scale=2.5, color=TEAL, position=(236, 104))
    scene.add_text("half", size=26, weight="bold", color=INK, opacity=0.5, position=(250, 140))
    scene.add_text("A long line that ends too soon", size=14, color=INK, width=120, height=20,
                   overflow="ellipsis", position=(10, 150))  # fmt: skip


SPOKEN = """1
00:00:00,000 --> 00:00:01,000
We left the harbour at dawn.

2
00:00:01,000 --> 00:00:02,000
Nobody spoke until the light
came over the islands.
"""


@stored(0.5, 1.5, 2.5, text=True)
def subtitles(scene: Scene) -> None:
    """A cue of one line, one of two, and nothing after the last."""
    scene.add_video(waves)
    scene.add_subtitles(SPOKEN, size=16)


@stored(2.0, text=True)
def lower_third(scene: Scene) -> None:
    """A bar with two lines that has moved in, as on television."""
    scene.add_image(photo("astronaut"), size=(WIDTH, HEIGHT), crop=(0, 0, 512, 288))
    group = scene.add_group(canvas=(200, 52), position=(-200, 118), radius=8)
    group.add_overlay(color=(16, 22, 38, 220))
    group.add_overlay(color=SUN, size=(6, 52))
    group.add_text("Eileen Collins", size=20, weight="bold", position=(18, 4))
    group.add_text("commander, STS-93", size=14, color="#b8c4dc", position=(18, 28))
    scene.add_animation(group, "x", -200, 16, 0.6, "cubic-out", delay=0.2)


# writing ----------------------------------------------------------------------------------------
def on_checks(picture: np.ndarray) -> np.ndarray:
    """The picture on gray squares, which show its alpha, (height, width, 3) u8."""
    y, x = np.indices(picture.shape[:2])
    board = np.where((x // 8 + y // 8) % 2, 205, 160)[..., None]
    alpha = picture[..., 3:] / 255.0
    shown: np.ndarray = np.floor(picture[..., :3] * alpha + board * (1 - alpha) + 0.5)
    return shown.astype(np.uint8)


def sheet(pictures: list[np.ndarray]) -> np.ndarray:
    """Pictures on one page, three columns, for looking at."""
    columns: list[list[np.ndarray]] = [[], [], []]
    for picture in pictures:
        shown = on_checks(picture)
        wide = np.full((shown.shape[0] + 8, 488, 3), 255, np.uint8)
        wide[: shown.shape[0], : shown.shape[1]] = shown
        min(columns, key=lambda parts: sum(len(p) for p in parts)).append(wide)
    joined = [np.concatenate(parts) for parts in columns if parts]
    page = np.full((max(map(len, joined)), 488 * len(joined), 3), 255, np.uint8)
    for number, column in enumerate(joined):
        page[: len(column), 488 * number : 488 * (number + 1)] = column
    return page


def main(names: list[str]) -> None:
    from PIL import Image

    FOLDER.mkdir(exist_ok=True)
    with dala.device("reference"):
        drawn = {name: show(name) for name in names or SCENES}
    for name, picture in drawn.items():
        Image.fromarray(picture).save(FOLDER / f"{name}.png", optimize=True)
    out = pathlib.Path("out")
    out.mkdir(exist_ok=True)
    Image.fromarray(sheet(list(drawn.values()))).save(out / "scenes.png")


if __name__ == "__main__":
    main(sys.argv[1:])
