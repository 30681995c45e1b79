"""A music video that moves with the beat: synthesized music, and a circle that follows its levels.

python examples/music_video.py                 # out/music_video.png and out/music_video.mp4
python examples/music_video.py --show window   # plays it, with sound if there is a device
"""

from __future__ import annotations

import sys

import numpy as np
from running import run

from dala.media import Scene, audio
from dala.media.audio import Audio

WIDTH, HEIGHT = 960, 540
BEAT, BARS = 0.5, 4
SECONDS, MOMENT = BEAT * 4 * BARS, 4.03
CHORDS = (
    (220.0, 261.6, 329.6),
    (174.6, 220.0, 261.6),
    (130.8, 164.8, 196.0),
    (196.0, 246.9, 293.7),
)


def kick() -> Audio:
    """Return a drum: a sine that falls from 150 to 45 Hz."""
    at = np.arange(round(0.3 * 48000)) / 48000
    phase = 2 * np.pi * (45 * at + 105 * 0.04 * (1 - np.exp(-at / 0.04)))
    return Audio(0.8 * np.sin(phase) * np.exp(-at / 0.09), 48000)


def hat(seed: int) -> Audio:
    """Return a short hiss."""
    hiss = audio.noise(0.06, amplitude=0.25, seed=seed).eq(highpass=6000)
    return hiss.gain(factor=np.exp(-np.arange(len(hiss)) / 700))


def music() -> dict[str, Audio]:
    """Return drums, hats and chords, each as one sound."""
    beats = [kick().at(n * BEAT) for n in range(4 * BARS)]
    hats = [hat(n).at((n + 0.5) * BEAT / 2) for n in range(8 * BARS)]
    chords = []
    for bar, notes in enumerate(CHORDS):
        tones = [
            audio.tone(f, BEAT * 4, amplitude=0.07, shape="triangle").pan(p)
            for f, p in zip(notes, (-0.6, 0.0, 0.6), strict=True)
        ]
        chords.append(audio.mix(*tones).fade_in(0.05).fade_out(0.4).at(bar * BEAT * 4))
    return {
        "drums": audio.mix(*beats, audio.silence(SECONDS, layout="mono")),
        "hats": audio.mix(*hats, audio.silence(SECONDS, layout="mono")).pan(0.3),
        "chords": audio.mix(*chords).eq(lowpass=2500),
    }


def build(device: str | None = None) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(WIDTH, HEIGHT, background="#0b1020", fps=30, device=device)
    scene.duration = SECONDS
    nodes = {name: scene.add_audio(sound, id=name) for name, sound in music().items()}
    nodes["chords"].fade_out = 1.0
    beat = scene.level(nodes["drums"], band=(20, 200), release=0.12)
    tick = scene.level(nodes["hats"], band=(5000, 16000), release=0.05)
    harmony = scene.level(nodes["chords"], release=0.3)
    middle = WIDTH / 2, HEIGHT / 2
    glow = scene.add_overlay(
        color="#ff4f79", shape="circle", size=(200, 200), anchor="center", position=middle
    )
    scene.add_animation(glow, "scale", 1.0, 2.2, by=beat)
    scene.add_animation(glow, "opacity", 0.15, 0.5, by=beat)
    disk = scene.add_overlay(
        color="#ff4f79", shape="circle", size=(190, 190), anchor="center", position=middle
    )
    scene.add_animation(disk, "scale", 0.85, 1.25, by=beat)
    scene.add_animation(disk, "color", "#7a2fb8", "#ffd166", by=beat)
    for side in (-1, 1):
        for number in range(6):
            bar = scene.add_overlay(
                color="#56cfe1", size=(14, 120), anchor="center", radius=7,
                position=(middle[0] + side * (190 + 38 * number), middle[1]),
            )  # fmt: skip
            level = tick if number % 2 else harmony
            scene.add_animation(bar, "height", 20, 220 - 26 * number, by=level)
    scene.add_text("moves with the beat", size=30, color="white", anchor="bottom",
                   position=(middle[0], HEIGHT - 36))  # fmt: skip
    return scene


def main(arguments: list[str] | None = None) -> int:
    """Write a picture and the video, or play it."""
    return run(build, arguments, moment=MOMENT)


if __name__ == "__main__":
    sys.exit(main())
