"""A music visualizer: a ring of light whose rays are the frequencies of the music.

python examples/visualizer.py                 # out/visualizer.png and .mp4, with sound
python examples/visualizer.py --show window   # plays it
"""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
from music_video import SECONDS, music
from running import run

from dala.gpu.compute import buffer
from dala.gpu.compute.language import (
    Array,
    Image,
    atan2,
    cos,
    exp,
    floor,
    kernel,
    length,
    mix,
    position,
    rgba,
    shape,
    smoothstep,
    vec2,
    vec3,
)  # fmt: skip
from dala.media import Frame, Scene, audio

SIZE, BANDS = (960, 540), 48


@kernel
def ring(canvas: Image, levels: Array, *, beat: float, time: float):
    """Rays around a ring, as long as the levels are high; red in the bass, blue in the treble."""
    row, column = position()
    size = float(shape(canvas)[0])
    x = (float(column) + 0.5 - 0.5 * float(shape(canvas)[1])) / size
    y = (float(row) + 0.5 - 0.5 * size) / size
    far = length(vec2(x, y))
    turn = abs(atan2(x, y)) / 3.14159265  # 0 below, 1 above: both sides alike
    place = turn * (float(shape(levels)[0]) - 0.001)
    band = int(floor(place))
    inside = abs(place - float(band) - 0.5) * 2.0
    level = levels[band]
    core = 0.165 + 0.028 * beat
    reach = core + 0.012 + 0.26 * level
    ray = smoothstep(0.82, 0.55, inside) * smoothstep(core, core + 0.006, far)
    ray *= smoothstep(reach + 0.004, reach - 0.004, far)
    halo = (
        exp(-abs(far - core) * 22.0) * (0.28 + 0.75 * beat)
        + exp(-abs(far - reach) * 30.0) * level * 0.35
    )
    edge = exp(-abs(far - core) * 260.0)
    hue = turn * 0.62 + 0.04 * time
    color = vec3(
        0.55 + 0.45 * cos(6.2832 * (hue + 0.02)),
        0.45 + 0.40 * cos(6.2832 * (hue - 0.30)),
        0.62 + 0.38 * cos(6.2832 * (hue - 0.62)),
    )
    night = mix((0.035, 0.02, 0.075), (0.004, 0.004, 0.016), smoothstep(0.0, 0.8, far))
    light = night + color * (ray * (0.55 + 0.6 * level) + halo * 0.55) + edge * (0.5 + 0.5 * beat)
    heart = smoothstep(core, core - 0.05, far) * exp(-far * 16.0) * beat
    return rgba(light + (1.0, 0.55, 0.4) * heart * 0.8, 1.0)


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(*size, fps=30, device=device)
    scene.duration = SECONDS
    song = scene.add_audio(audio.mix(*music().values(), rate=48000, layout="stereo"), fade_out=1.0)
    edges = np.geomspace(40, 12000, BANDS + 1)
    bands = [scene.level(song, band=band, release=0.16) for band in pairwise(edges.tolist())]
    bass = scene.level(song, band=(30, 120), release=0.2)
    canvas = buffer(np.zeros((size[1], size[0], 3), np.float32), device=device)

    def picture(seconds: float) -> Frame:
        heights = np.array([band.at(seconds) for band in bands], np.float32)
        levels = buffer(heights, device=device)
        return Frame(ring(canvas, levels, beat=bass.at(seconds), time=seconds))

    scene.add_video(picture, fps=30)
    return scene


if __name__ == "__main__":
    sys.exit(run(build, moment=4.05))
