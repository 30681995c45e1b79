"""Writing animated GIFs, against Pillow and the ffmpeg command line: time, size and likeness.

Two clips of 320x180: a photograph under a moving camera, and a drawing with flat colors. ffmpeg
runs its own recipe, ``palettegen`` and ``paletteuse``, on raw frames from a pipe; its time includes
the start of the process. Likeness is the mean SSIM of luma between the frames and what a reader
gets back. For the comparison at equal size ffmpeg gets fewer colors, until its file is as small as
ours.
"""

from __future__ import annotations

import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Machine, affordable, judge, race, report, verdict, write
from dala.media import video

WIDTH, HEIGHT, COUNT, FPS = 320, 180, 30, 25
PHOTO = pathlib.Path(__file__).parents[1] / "tests" / "photos" / "coffee.png"
LUMA = np.array([0.299, 0.587, 0.114])
RECIPE = "split[a][b];[a]palettegen=max_colors={colors}[p];[b][p]paletteuse"

Frames = list[np.ndarray[Any, np.dtype[np.uint8]]]


def photograph() -> Frames:
    """Return a camera that moves over a photograph and comes closer, with a red box."""
    from PIL import Image

    made = []
    with Image.open(PHOTO) as opened:
        image = opened.convert("RGB")
    for i in range(COUNT):
        width = int(image.width * 0.8 / (1 + i * 0.006))
        height = width * HEIGHT // WIDTH
        left, top = int((image.width - width) * i / COUNT / 2), int((image.height - height) * 0.3)
        part = image.crop((left, top, left + width, top + height))
        frame = np.array(part.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS))
        frame[60:100, 20 + i * 6 : 60 + i * 6] = (220, 30, 60)
        made.append(frame)
    return made


def drawing() -> Frames:
    """Return flat colors and a soft gradient, on which a disk moves."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    made = []
    for i in range(COUNT):
        frame = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        frame[:] = (246, 247, 249)
        frame[:, :80] = (33, 41, 54)
        frame[120:, 80:] = np.stack([90 + x // 3, 140 + 0 * x, 220 - y // 2], -1)[120:, 80:]
        frame[(x - 100 - i * 6) ** 2 + (y - 70) ** 2 < 24**2] = (240, 120, 40)
        made.append(frame)
    return made


# contestants --------------------------------------------------------------------------------------
def contestants(frames: Frames, folder: pathlib.Path) -> dict[str, Callable[[], Any]]:
    """Return what writes the clip, by name; each writes NAME.gif."""

    def dala() -> None:
        video.write(folder / "dala.gif", frames, fps=FPS)

    def pillow() -> None:
        from PIL import Image

        first, *rest = (Image.fromarray(frame) for frame in frames)
        first.save(
            folder / "pillow.gif", save_all=True, append_images=rest, duration=1000 // FPS, loop=0
        )

    def ffmpeg() -> None:
        run_ffmpeg(frames, folder / "ffmpeg.gif", 256)

    found: dict[str, Callable[[], Any]] = {"dala": dala, "pillow": pillow}
    return found | ({"ffmpeg": ffmpeg} if shutil.which("ffmpeg") else {})


def run_ffmpeg(frames: Frames, path: pathlib.Path, colors: int) -> None:
    """Write a GIF with the ffmpeg command line and its own recipe."""
    command = ["ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{WIDTH}x{HEIGHT}", "-r", str(FPS), "-i", "-"]
    command += ["-filter_complex", RECIPE.format(colors=colors), str(path)]
    subprocess.run(command, input=np.stack(frames).tobytes(), check=True)


# likeness -----------------------------------------------------------------------------------------
def likeness(frames: Frames, path: pathlib.Path) -> float:
    """Return the mean SSIM of a GIF and the frames it was made from, in blocks of 8x8."""
    from PIL import Image

    values = []
    with Image.open(io.BytesIO(path.read_bytes())) as image:
        for number, frame in enumerate(frames):
            image.seek(number)
            values.append(ssim(frame @ LUMA, np.asarray(image.convert("RGB")) @ LUMA))
    return float(np.mean(values))


def ssim(a: Any, b: Any) -> float:
    """Return the mean structural similarity of two planes of 0 to 255."""
    one, other = _blocks(a), _blocks(b)
    mean, mean_other = one.mean(1), other.mean(1)
    both = ((one - mean[:, None]) * (other - mean_other[:, None])).mean(1)
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    top = (2 * mean * mean_other + c1) * (2 * both + c2)
    below = (mean**2 + mean_other**2 + c1) * (one.var(1) + other.var(1) + c2)
    return float((top / below).mean())


def _blocks(plane: Any) -> Any:
    height, width = (n // 8 * 8 for n in plane.shape)
    cut = plane[:height, :width].reshape(height // 8, 8, width // 8, 8)
    return cut.transpose(0, 2, 1, 3).reshape(-1, 64)


def run_clip(title: str, frames: Frames) -> dict[str, Any]:
    """Race the contestants on one clip and compare their files."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ways = contestants(frames, folder)
        rounds = affordable(ways, 12)
        with Machine() as machine:
            times = race(ways, rounds)
        files = {
            way: {
                "bytes": (folder / f"{way}.gif").stat().st_size,
                "ssim": round(likeness(frames, folder / f"{way}.gif"), 5),
            }
            for way in ways
        }
        if "ffmpeg" in ways:
            files["ffmpeg, equal size"] = _at_size(frames, folder, files["dala"]["bytes"])
    missing = {} if "ffmpeg" in ways else {"ffmpeg": "not installed"}
    found = {"times": times, "left_out": missing, "files": files, "rounds": rounds}
    found |= judge(times, {"pillow": 1.0}, machine)
    report(title, found)
    for way, file in files.items():
        print(f"  {way:18s} {file['bytes']:9,d} bytes  SSIM {file['ssim']:.5f}")
    if "ffmpeg" in files:
        met = files["dala"]["ssim"] >= files["ffmpeg, equal size"]["ssim"]
        found["targets"]["as alike as ffmpeg at equal size"] = met
        print(f"  target as alike as ffmpeg at equal size: {verdict(met, None)}")
    return found


def _at_size(frames: Frames, folder: pathlib.Path, most: int) -> dict[str, Any]:
    """Return ffmpeg's file with as many colors as fit into ``most`` bytes."""
    path = folder / "equal.gif"
    for colors in range(256, 7, -8):
        run_ffmpeg(frames, path, colors)
        if path.stat().st_size <= most:
            break
    alike = round(likeness(frames, path), 5)
    return {"bytes": path.stat().st_size, "ssim": alike, "colors": colors}


def main() -> None:
    """Run all clips, or those named on the command line (printed, not written)."""
    clips = {"photograph": photograph, "drawing": drawing}
    wanted = [name for name in sys.argv[1:] if name in clips] or list(clips)
    size = f"{WIDTH}x{HEIGHT}, {COUNT} frames"
    results = {name: run_clip(f"GIF of a {name}, {size}", clips[name]()) for name in wanted}
    if len(wanted) == len(clips):
        write("gif", results, ("av", "Pillow"))


if __name__ == "__main__":
    main()
