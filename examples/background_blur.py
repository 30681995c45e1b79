"""Frames from a generator, with the background blurred, to an MP4 with sound.

python examples/background_blur.py     # out/background_blur.mp4
"""

import math
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import dala
from dala.media import video
from dala.ml import Background

FPS = 25


def camera(seconds: float) -> Iterator[np.ndarray]:
    """Yield the pictures of a handheld camera in front of an astronaut."""
    photo = np.asarray(dala.samples.photo("astronaut"))[..., :3]
    for n in range(round(seconds * FPS)):
        x, y = 60 + round(30 * math.sin(n / 20)), 10 + round(8 * math.sin(n / 11))
        yield photo[y : y + 360, x : x + 360]


def write_chord(path: Path, seconds: float, rate: int = 48_000) -> None:
    """Write three quiet tones to a WAV file."""
    time = np.arange(round(seconds * rate)) / rate
    tones = sum(np.sin(2 * np.pi * pitch * time) for pitch in (220.0, 277.2, 329.6))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((tones * 3000).astype("<i2").tobytes())


def main(folder: Path = Path("out"), seconds: float = 4.0) -> Path:
    """Write the video and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    sound, path = folder / "chord.wav", folder / "background_blur.mp4"
    write_chord(sound, seconds)
    # Background(background=picture) replaces it instead; model="u2netp" has softer edges.
    # A WAV is encoded for MP4, and a notice says so.
    with Background(radius=14) as background:
        video.write(path, background.stream(camera(seconds)), fps=FPS, audio_from=sound)
    return path


if __name__ == "__main__":
    print(main())
