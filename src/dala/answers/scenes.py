"""Fixed scenes for the compositor, and fixed commands for the rasterizer.

The rasterizer runs on the processor only, so its rows have one result on all devices of a machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np

from dala.answers.material import picture, second
from dala.gpu import command
from dala.gpu.compute.composite import BLENDS
from dala.gpu.raster import Canvas
from dala.media import Scene
from dala.typing import NDArray

WIDTH: Final = 97
HEIGHT: Final = 71


# scenes -------------------------------------------------------------------------------------------
def _boxes(scene: Scene) -> None:
    scene.add_overlay(color="#f2685c", position=(3, 4), size=(40, 21))
    scene.add_overlay(color=(31, 138, 140, 120), position=(20.5, 11.25), size=(33, 28), radius=6)
    scene.add_overlay(color="white", shape="circle", position=(60, 5), size=(31, 31), opacity=0.3)
    scene.add_overlay(color="#f6c14b", shape="pill", position=(50, 50), size=(60, 17), rotation=-20,
                      anchor="center", border=(3, "#1b2233"))  # fmt: skip
    scene.add_overlay(color=(200, 30, 60, 77), position=(70, 40), size=(23.5, 27.5), radius=400)


def _pictures(scene: Scene) -> None:
    photo, noise = picture("photo", 3), picture("random", 4)
    scene.add_image(photo, position=(2, 3))
    scene.add_image(noise, position=(45, 20))
    scene.add_image(noise, position=(66, 2), opacity=0.4)
    scene.add_image(picture("gradient", 1), position=(-9, 50), opacity=0.75)


def _scaled(scene: Scene) -> None:
    photo, noise = picture("photo", 3), picture("random", 4)
    scene.add_image(photo, position=(1, 2), size=(90, 60))
    scene.add_image(photo, position=(5, 5), size=(17, 11), fit="cover")
    scene.add_image(noise, position=(30, 30), size=(61, 37), fit="contain")
    scene.add_image(noise, position=(60, 2), size=(9, 5))


def _sizes(scene: Scene) -> None:
    photo, noise = picture("photo", 3), picture("random", 4)
    for n, width in enumerate((46, 38, 29, 21, 16, 13, 11)):
        place = (n * 13 + 1.0, n * 7 + 2.5 * (n % 3))
        scene.add_image(noise if n % 2 else photo, position=place, size=(width, width * 2 // 3))
    scene.add_image(picture("wide", 3), position=(2, 60), size=(90, 9))


def _halved(scene: Scene) -> None:
    opaque = second(58, 92, 4)
    opaque[..., 3] = 255
    for n, image in enumerate((second(58, 92, 3), opaque, second(58, 92, 1))):
        scene.add_image(image, position=(1 + 48 * (n % 2), 1 + 31 * (n // 2)), size=(46, 29))
    scene.add_image(second(34, 60, 3), position=(55, 40), size=(30, 17), opacity=0.6)


def _covered(scene: Scene) -> None:
    scene.add_image(picture("gradient", 3), size=(WIDTH, HEIGHT))
    scene.add_overlay(color=(31, 138, 140, 120), position=(5, 5), size=(80, 60), radius=6)
    scene.add_image(picture("photo", 3), position=(18, 14))
    scene.add_overlay(color=(200, 30, 60, 77), position=(60, 40), size=(30, 27))


def _turned(scene: Scene) -> None:
    photo, noise = picture("photo", 3), picture("random", 4)
    scene.add_image(photo, position=(35, 30), rotation=17, scale=0.8, anchor="center")
    scene.add_image(
        noise, position=(70, 45), rotation=-100, scale=1.3, opacity=0.8, anchor="center"
    )
    scene.add_image(photo, position=(20, 60), rotation=90, scale=0.5, radius=7, anchor="center")


def _blends(scene: Scene, below: int = 3) -> None:
    scene.add_image(picture("photo", below), size=(WIDTH, HEIGHT))
    for number, blend in enumerate(BLENDS):
        down, across = divmod(number, 4)
        scene.add_image(second(16, 22, 4), position=(1 + 24 * across, 1 + 17 * down), blend=blend)


def _shadows(scene: Scene) -> None:
    soft = (2, 3, 7, (20, 20, 60, 200))
    scene.add_overlay(color="#f2685c", position=(8, 8), size=(30, 20), radius=5, shadow=soft)
    scene.add_image(picture("random", 4), position=(50, 8), shadow=(4, 4, 0, (20, 90, 60, 160)))
    scene.add_image(picture("constant", 4), position=(20, 45), rotation=-12, shadow=soft)


def _groups(scene: Scene) -> None:
    scene.add_image(picture("gradient", 3), size=(WIDTH, HEIGHT), fit="cover")
    outer = scene.add_group(canvas=(80, 50), position=(9, 7), opacity=0.8)
    outer.add_overlay(color="#1f8a8c", radius=9)
    inner = outer.add_group(
        canvas=(40, 30), position=(40, 25), anchor="center", rotation=20, opacity=0.6
    )
    inner.add_image(picture("photo", 4))
    inner.add_overlay(color="white", shape="circle", position=(20, 8), size=(20, 20), opacity=0.5)
    plain = scene.add_group(opacity=0.5)
    plain.add_overlay(color="white", position=(60, 40), size=(30, 25))
    plain.add_overlay(color="black", position=(70, 45), size=(30, 9))


def _smaller(scene: Scene) -> None:
    photo, noise = picture("photo", 3), picture("random", 4)
    for n, scale in enumerate((0.45, 0.3, 0.2, 0.13, 0.07)):
        for image, y, turn in ((photo, 12.5, 13), (noise, 35.5, -29)):
            scene.add_image(image, position=(9 + 18.25 * n, y), rotation=turn * n, scale=scale,
                            radius=3.0 * n, anchor="center")  # fmt: skip
    scene.add_image(picture("wide", 4), position=(48, 58), rotation=175, size=(70, 5),
                    anchor="center", border=(1, "#f6c14b"))  # fmt: skip


def _fractions(scene: Scene) -> None:
    photo, noise = picture("photo", 3), picture("random", 4)
    scene.add_image(photo, position=(1.3, 2.7))
    scene.add_image(noise, position=(41.55, 3.2), opacity=0.7)
    scene.add_image(noise, position=(3, 35), size=(50, 31), crop=(3, 2, 20.5, 11), blend="screen")
    scene.add_image(photo, position=(70, 50), size=(44, 30), rotation=8, crop=(5.5, 0, 22, 19),
                    anchor="center", radius=9, shadow=(3, 2, 3, "#203040"))  # fmt: skip


_Build = Callable[[Scene], None]
_SCENES: Final[Mapping[str, tuple[_Build, Mapping[str, str]]]] = {
    "boxes": (_boxes, {"background": "#f3efe6"}),
    "boxes-clear": (_boxes, {"background": "transparent"}),
    "boxes-linear": (_boxes, {"background": "#f3efe6", "blend_space": "linear"}),
    "pictures": (_pictures, {"background": "#26304a"}),
    "pictures-clear": (_pictures, {"background": "transparent"}),
    "scaled": (_scaled, {"background": "#26304a"}),
    "sizes": (_sizes, {"background": "#26304a"}),
    "sizes-linear": (_sizes, {"background": "#26304a", "blend_space": "linear"}),
    "halved": (_halved, {"background": "#26304a"}),
    "covered": (_covered, {"background": "white"}),
    "turned": (_turned, {"background": "#26304a"}),
    "turned-clear": (_turned, {"background": "transparent"}),
    "blends": (_blends, {"background": "black"}),
    "blends-clear": (partial(_blends, below=4), {"background": "transparent"}),
    "blends-linear": (_blends, {"background": "black", "blend_space": "linear"}),
    "shadows": (_shadows, {"background": "#cfd8dc"}),
    "shadows-clear": (_shadows, {"background": "transparent"}),
    "smaller": (_smaller, {"background": "#26304a"}),
    "smaller-clear": (_smaller, {"background": "transparent"}),
    "fractions": (_fractions, {"background": "#cfd8dc"}),
    "fractions-linear": (_fractions, {"background": "#cfd8dc", "blend_space": "linear"}),
    "groups": (_groups, {"background": "black"}),
}


# commands -----------------------------------------------------------------------------------------
def _shapes(alpha: int, ground: int = 200) -> bytes:
    red, sun, leaf = (220, 40, 50, alpha), (250, 180, 30, alpha), (60, 180, 75, alpha)
    lines = (
        command.encode_draw_line(48, 35, 4 + 9 * k, 70 * (k % 2), (20 * k, 90, 200, alpha))
        for k in range(11)
    )
    return b"".join([
        command.encode_clear((245, 245, 240, ground)),
        command.encode_fill_rect(3, 4, 30, 20, red),
        command.encode_fill_circle(40, 20, 14, sun),
        command.encode_draw_circle(50, 30, 21, leaf),
        command.encode_fill_triangle(60, 8, 93, 21, 71, 44, red),
        command.encode_draw_triangle(5, 60, 40, 33, 22, 69, leaf),
        command.encode_fill_round_rect(50, 45, 40, 21, 6, sun),
        command.encode_draw_round_rect(44, 40, 50, 28, 9, red),
        *lines,
    ])  # fmt: skip


def _images(alpha: int) -> bytes:
    return b"".join([
        command.encode_clear((30, 60, 90, alpha)),
        command.encode_image_blit(1, 2, 3, 80, 50),
        command.encode_image_blit(2, 20, 11, 60, 37),
        command.encode_image_blit(2, 70, 50, 19, 13),
        command.encode_set_clip(30, 30, 50, 31),
        *(command.encode_blit(1, 25 + 9 * k, 31 + 5 * k) for k in range(5)),
        command.encode_reset_clip(),
    ])  # fmt: skip


_COMMANDS: Final[Mapping[str, tuple[Callable[[int], bytes], int]]] = {
    "shapes": (_shapes, 255),
    "shapes-blended": (_shapes, 110),
    "shapes-over-opaque": (partial(_shapes, ground=255), 110),
    "images": (_images, 255),
    "images-blended": (_images, 90),
}

#: The groups, each with the names of its rows.
GROUPS: Final = {"compositor": tuple(_SCENES), "rasterizer": tuple(_COMMANDS)}


def draw(group: str, name: str, device: str) -> NDArray:
    """Return the pixels of a scene or of commands, (height, width, 4) u8."""
    if group == "compositor":
        build, options = _SCENES[name]
        with Scene(WIDTH, HEIGHT, device=device, **options) as scene:
            build(scene)
            return np.array(scene.render(0.0))
    encode, alpha = _COMMANDS[name]
    canvas = Canvas(WIDTH, HEIGHT)
    photo, noise = picture("photo", 4), picture("random", 4)
    canvas.load_image(1, photo, photo.shape[1], photo.shape[0])
    canvas.load_image(2, noise, noise.shape[1], noise.shape[0])
    canvas.load_sprite(1, noise, noise.shape[1], noise.shape[0])
    data = encode(alpha)
    canvas.check(data)
    canvas.run(data)
    return np.array(canvas.pixels)
