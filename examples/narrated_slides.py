"""A slide show with a voice: photographs dissolve, and music ducks under the words.

python examples/narrated_slides.py                 # out/narrated_slides.png and .mp4
python examples/narrated_slides.py --show window   # plays it, with sound if there is a device
"""

from __future__ import annotations

import sys

import numpy as np
from running import run

from dala import samples
from dala.media import Scene, audio
from dala.media.audio import Audio

WIDTH, HEIGHT = 960, 540
SLIDES = (("astronaut", "An astronaut"), ("chelsea", "A cat"), ("coffee", "A cup of coffee"))
EACH, CROSS = 4.0, 1.0
SECONDS, MOMENT = EACH * len(SLIDES) - CROSS * (len(SLIDES) - 1), 2.0


def music() -> Audio:
    """Return soft chords, four seconds long, to be repeated."""
    chords = []
    for number, notes in enumerate(((220, 277.2, 329.6), (196, 246.9, 293.7))):
        tones = [audio.tone(f, 2, amplitude=0.12, shape="triangle", layout="stereo") for f in notes]
        chords.append(audio.mix(*tones).fade_in(0.2).fade_out(0.3).at(2 * number))
    return audio.mix(*chords).eq(lowpass=1800)


def voice(seconds: float, seed: int) -> Audio:
    """Return something with the rhythm and the formants of speech. Put your recording here."""
    count = round(seconds * 48000)
    at = np.arange(count) / 48000
    generator = np.random.default_rng(seed)
    pitch = 110 + 15 * np.sin(2 * np.pi * 0.7 * at + seed)
    buzz = np.sign(np.sin(2 * np.pi * np.cumsum(pitch) / 48000))
    syllables = np.clip(np.sin(2 * np.pi * 2.2 * at) + 0.4, 0, 1)
    words = Audio(0.25 * buzz * syllables, 48000)
    formant = float(generator.uniform(500, 800))
    words = words.eq([(formant, 9, 3), (formant * 2.4, 6, 4)], highpass=90, lowpass=3500)
    return words.fade_in(0.1).fade_out(0.1)


def build(device: str | None = None) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(WIDTH, HEIGHT, background="black", fps=30, device=device)
    scene.duration = SECONDS
    backing = scene.add_audio(
        music(), id="music", loop=True, end=SECONDS, fade_in=0.5, fade_out=1.5, volume=0.8
    )
    voices = []
    for number, (name, title) in enumerate(SLIDES):
        start = number * (EACH - CROSS)
        slide = scene.add_image(
            samples.photo(name, device="cpu"), size=(WIDTH, HEIGHT), fit="cover", start=start,
            end=start + EACH,
        )  # fmt: skip
        if number:
            scene.add_animation(slide, "opacity", 0, 1, CROSS, "sine", start=start)
        words = scene.add_text(
            title, size=34, weight="bold", color="white", outline_width=2, anchor="bottom-left",
            position=(40, HEIGHT - 36), start=start + 0.5, end=start + EACH - 0.5,
        )  # fmt: skip
        scene.add_animation(words, "opacity", 0, 1, 0.4, start=start + 0.5)
        voices.append(scene.add_audio(voice(1.6, number), start=start + 1, id=f"voice-{number}"))
    scene.duck(backing, under=voices, amount=14)
    return scene


def main(arguments: list[str] | None = None) -> int:
    """Write a picture and the video, or play it."""
    return run(build, arguments, moment=MOMENT)


if __name__ == "__main__":
    sys.exit(main())
