"""Damaged files of every kind through ``dala filter``, in a process of their own.

    python -m tests.fuzz.containers mp4 --cuts 100 --flips 300

Each variant must end in a result, a clear error, or a salvaged file with a report. The process
exits with 1 at the first that does not; a crash or a hang ends it in its own way.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

from dala import cli
from dala.errors import DalaError
from dala.media.subtitles import load_subtitles

#: For each kind of video: encoder, pixel format, and the encoder of its sound.
VIDEOS = {
    "mp4": ("libx264", "yuv420p", "aac"),
    "mkv": ("libx264", "yuv420p", "aac"),
    "webm": ("libvpx-vp9", "yuv420p", "libopus"),
    "mov": ("prores_ks", "yuva444p10le", None),
    "avi": ("mpeg4", "yuv420p", "mp3"),
    "ts": ("mpeg2video", "yuv420p", "mp2"),
    "mpg": ("mpeg1video", "yuv420p", "mp2"),
    "flv": ("flv1", "yuv420p", None),
    "wmv": ("wmv2", "yuv420p", "mp3"),
    "ivf": ("libvpx", "yuv420p", None),
    "y4m": ("wrapped_avframe", "yuv420p", None),
    "h264": ("libx264", "yuv420p", None),
    "gif": ("gif", "rgb8", None),
    "apng": ("apng", "rgba", None),
    "webp": ("libwebp_anim", "bgra", None),
}
#: Kinds of pictures, by suffix.
PICTURES = ("png", "jpg", "tiff", "bmp", "tga", "ppm", "ico")
SUBTITLES = {
    "srt": "1\n00:00:01,000 --> 00:00:02,000\nHello <i>there</i>\n\n2\n00:00:03,000 --> "
    "00:00:04,500\nTwo\nlines\n",
    "vtt": "WEBVTT\n\nSTYLE\n::cue {color: red}\n\n00:01.000 --> 00:02.000 line:10% align:start\n"
    "<v Ann>Hi</v>\n\nNOTE no cue\n\n00:03.000 --> 00:04.500\nTwo\n",
    "ass": "[Script Info]\nScriptType: v4.00+\n\n[Events]\nFormat: Layer, Start, End, Style, Text\n"
    "Dialogue: 0,0:00:01.00,0:00:02.00,Default,{\\b1}Hi\\Nthere\n",
}
KINDS = (*VIDEOS, *PICTURES, *SUBTITLES)
#: Seconds after which a variant counts as hanging.
PATIENCE = 120


def make(kind: str, folder: Path) -> bytes:
    """Return a small intact file of a kind."""
    if kind in SUBTITLES:
        return SUBTITLES[kind].encode()
    picture = np.random.default_rng(1).integers(0, 256, (24, 32, 3), np.uint8)
    path = folder / f"whole.{kind}"
    if kind in PICTURES:
        Image.fromarray(picture).save(path)
        return path.read_bytes()
    _encode(path, *VIDEOS[kind], picture)
    return path.read_bytes()


def _encode(path: Path, codec: str, pixels: str, sound: str | None, picture: np.ndarray) -> None:
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = 32, 24, pixels
        heard = out.add_stream(sound, rate=48000, layout="stereo") if sound else None
        out.start_encoding()
        for n in range(8):
            frame = av.VideoFrame.from_ndarray(np.roll(picture, n, 1), format="rgb24")
            frame = frame.reformat(format=pixels)
            frame.pts, frame.time_base = n, Fraction(1, 25)
            out.mux(stream.encode(frame))
        if heard is not None:
            for n in range(8):
                block = av.AudioFrame(heard.format.name, "stereo", heard.codec_context.frame_size)
                for plane in block.planes:
                    plane.update(bytes(plane.buffer_size))
                block.sample_rate, block.time_base = 48000, Fraction(1, 48000)
                block.pts = n * block.samples
                out.mux(heard.encode(block))
            out.mux(heard.encode(None))
        out.mux(stream.encode(None))


def variants(whole: bytes, cuts: int, flips: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield damaged copies, each with a label that reproduces it."""
    for n in range(cuts):
        end = len(whole) * n // cuts
        yield f"cut at {end}", whole[:end]
    for n in range(flips):
        dice = random.Random(seed * 100_003 + n)
        data = bytearray(whole)
        for _ in range(dice.choice((1, 1, 4, 32))):
            at = dice.randrange(len(data))
            data[at] = dice.choice((data[at] ^ 1 << dice.randrange(8), 0, 255, dice.randrange(256)))
        yield f"flip {n} of seed {seed}", bytes(data)


def try_subtitles(path: Path) -> tuple[str, str]:
    """Load subtitles; return the outcome, and what is wrong with it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            load_subtitles(path)
    except DalaError as error:
        return "refused", "" if str(path) in str(error) else f"the error hides its file: {error}"
    return "read", ""


def try_filter(path: Path, out: Path) -> tuple[str, str]:
    """Filter a file; return the outcome, and what is wrong with it."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = cli.main(["filter", str(path), str(out), "--brightness", "0.1", "--device", "cpu"])
    text = said.getvalue()
    left = [p.name for p in out.parent.iterdir() if p != out]
    if "Traceback" in text or "--debug shows" in text:
        return "failed", f"not a clear error: {text[-800:]}"
    if left:
        return "failed", f"files were left behind: {left}"
    if code not in (0, 2) or (code == 2 and not text.strip()):
        return "failed", f"exit code {code}, report {text[-300:]!r}"
    if code == 0 and not out.exists():
        return "failed", f"exit code 0 without a file: {text[-300:]!r}"
    if not out.exists():
        return "refused", ""
    try:
        with av.open(str(out)) as file:
            next(file.decode(video=0))
    except (av.FFmpegError, StopIteration, IndexError) as error:
        return "failed", f"the result cannot be read: {error!r}; exit code {code}, {text[-300:]}"
    return ("read" if code == 0 else "salvaged"), ""


def run(kind: str, cuts: int, flips: int, seed: int) -> Counter[str]:
    """Try all variants of a kind; return how many ended in which way."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = make(kind, folder)
        (folder / "out").mkdir()
        out = folder / "out" / f"result.{'mp4' if kind in VIDEOS else 'png'}"
        path = folder / f"damaged.{kind}"
        for label, data in variants(whole, cuts, flips, seed):
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            path.write_bytes(data)
            outcome, wrong = try_subtitles(path) if kind in SUBTITLES else try_filter(path, out)
            if wrong:
                sys.exit(f"{kind}, {label}: {wrong}")
            outcomes[outcome] += 1
            out.unlink(missing_ok=True)
        faulthandler.cancel_dump_traceback_later()
    return outcomes


def main() -> None:
    """Run the kinds named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--flips", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for kind in args.kinds or KINDS:
        found = run(kind, args.cuts, args.flips, args.seed)
        sys.stdout.write(f"{kind} {dict(found)}\n")


if __name__ == "__main__":
    main()
