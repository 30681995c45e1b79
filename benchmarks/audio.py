"""Sound: mixing with effects against the ffmpeg command line, and a scene against MoviePy.

Time is CPU time (user and system, of all threads and child processes), since mixing is meant for
one core beside other work. ffmpeg runs the same graph with one thread, from the same files, into
nothing; its time includes the start of the process. "libavfilter alone" is the effects without
anything else, on frames that are ready: what no program with these filters can be faster than.
MoviePy runs in a process of its own, from the environment that ``DALA_MOVIEPY`` names (the path of
a Python), or this one.
"""

from __future__ import annotations

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import TypeAlias

import av
import numpy as np

from benchmarks.harness import write
from dala.media import Scene, audio, video
from dala.media.audio import Mixer
from dala.media.audio.graph import BLOCK
from dala.media.notices import collected
from dala.media.video.encode import CODECS, default_threads
from dala.media.video.source import AvObject

SECONDS, TRACKS, ROUNDS = 30, 8, 5
BAND = [(1000, 3, 1)]
EFFECTS = [("eq", {"bands": BAND}), ("compressor", {})]
EQ = "equalizer=f=1000:t=q:w=1:g=3:r=f64"
COMPRESSOR = "acompressor=threshold=0.125892541:ratio=3:attack=20:release=250:knee=2.818382931"
LIMITER = "alimiter=limit=0.988553095:level=0:attack=5:release=50:latency=1"

MOVIEPY = """
import sys
from moviepy import CompositeVideoClip, VideoFileClip
*names, out = sys.argv[1:]
preset = names.pop()
places = [(0, 0), (960, 0), (0, 540), (960, 540)]
clips = [VideoFileClip(n).with_position(p) for n, p in zip(names, places)]
chosen = {"preset": preset, "ffmpeg_params": ["-crf", "23"]} if preset else {}
CompositeVideoClip(clips, size=(1920, 1080)).write_videofile(
    out, fps=25, codec="libx264", audio_codec="aac", logger=None, **chosen)
"""


#: CPU and wall seconds.
Times: TypeAlias = tuple[float, float]


def timed(work: Callable[[], None]) -> Times:
    """Return the CPU seconds of a call, its threads and its child processes, and those it took."""
    began, before = time.perf_counter(), used()
    work()
    return used() - before, time.perf_counter() - began


def used() -> float:
    """Return the CPU seconds of this process and of those that it waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(found.ru_utime + found.ru_stime for found in both)


def fastest(rows: dict[str, Callable[[], None]], rounds: int = ROUNDS) -> dict[str, Times]:
    """Return the least CPU and wall seconds of each over interleaved rounds."""
    found: dict[str, list[Times]] = {name: [] for name in rows}
    for _ in range(rounds):
        for name, work in rows.items():
            found[name].append(timed(work))
    return {name: (min(t[0] for t in got), min(t[1] for t in got)) for name, got in found.items()}


def mixing(folder: pathlib.Path) -> dict[str, dict[str, Times]]:
    """Mix eight stereo tracks, with effects on each, and with effects on their sum."""
    names = [str(folder / f"{n}.wav") for n in range(TRACKS)]
    for seed, name in enumerate(names):
        made = audio.noise(SECONDS, seed=seed, amplitude=0.3, layout="stereo")
        made.save(name, codec="pcm_float")

    def ours(each: bool) -> None:
        with Mixer(effects=() if each else EFFECTS) as mixer:
            for name in names:
                mixer.add(name, effects=EFFECTS if each else ())
            for at in range(0, SECONDS * 48000, 4096):
                mixer.render(at, 4096)

    def ffmpeg(each: bool) -> None:
        chain = f"{EQ},{COMPRESSOR}"
        heads = [f"[{n}:a]{chain if each else 'anull'}[a{n}]" for n in range(TRACKS)]
        inputs = "".join(f"[a{n}]" for n in range(TRACKS))
        tail = f"{inputs}amix=inputs={TRACKS}:normalize=0" + ("" if each else f",{chain}")
        graph = ";".join([*heads, f"{tail},{LIMITER}[out]"])
        command = ["ffmpeg", "-v", "error", "-filter_complex_threads", "1"]
        for name in names:
            command += ["-threads", "1", "-i", name]
        command += ["-filter_complex", graph, "-map", "[out]", "-c:a", "pcm_f32le", "-f", "null"]
        subprocess.run([*command, "-"], check=True)

    frames = ready_frames(names[0])
    rows: dict[str, dict[str, Times]] = {}
    for title, each in (("effects on each track", True), ("effects on the mix", False)):
        racers: dict[str, Callable[[], None]] = {"dala": lambda e=each: ours(e)}  # type: ignore[misc]
        if shutil.which("ffmpeg"):
            racers["ffmpeg"] = lambda e=each: ffmpeg(e)  # type: ignore[misc]
        count = TRACKS if each else 1
        racers["libavfilter alone"] = lambda n=count: filters_alone(frames, n)  # type: ignore[misc]
        rows[f"eight stereo tracks, {title}"] = fastest(racers)
    return rows


def ready_frames(name: str) -> list[AvObject]:
    """Return the sound of a file as large frames for a filter graph."""
    samples = audio.open(name).read().samples
    frames = []
    for at in range(0, len(samples), BLOCK):
        flat = np.ascontiguousarray(samples[at : at + BLOCK]).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(flat, format="flt", layout="stereo")
        frame.sample_rate, frame.pts, frame.time_base = 48000, at, Fraction(1, 48000)
        frames.append(frame)
    return frames


def filters_alone(frames: list[AvObject], count: int) -> None:
    """Run EQ and compressor on frames, so many times, and nothing else."""
    for _ in range(count):
        graph = av.filter.Graph()
        graph.threads = 1
        source = last = graph.add_abuffer(
            format="flt", sample_rate=48000, layout="stereo", time_base=Fraction(1, 48000)
        )
        for step in (EQ, COMPRESSOR, "aformat=sample_fmts=flt"):
            node = graph.add(*step.split("=", 1))
            last.link_to(node)
            last = node
        sink = graph.add("abuffersink")
        last.link_to(sink)
        graph.configure()
        for frame in frames:
            source.push(frame)
            with suppress(av.BlockingIOError):
                while True:
                    sink.pull()


def scene(folder: pathlib.Path) -> dict[str, dict[str, Times]]:
    """Render four videos with sound, in a grid, to an MP4."""
    names = []
    for number in range(4):
        sound = folder / f"{number}.m4a"
        audio.tone(300 * (number + 1), 4, amplitude=0.2, layout="stereo").save(sound)
        name = folder / f"{number}.mp4"
        with video.write(name, fps=25, audio_from=sound) as sink:
            for frame in range(100):
                picture = np.zeros((540, 960, 3), np.uint8)
                picture[:, :, number % 3] = np.linspace(0, 255, 960).astype(np.uint8)
                picture[160:360, frame * 5 : frame * 5 + 200] = 255
                sink.write(picture)
        names.append(str(name))

    def ours(preset: str) -> None:
        with Scene(1920, 1080, fps=25, device="cpu") as made, collected():
            for number, name in enumerate(names):
                made.add_video(name, position=(number % 2 * 960, number // 2 * 540))
            options = {"crf": 23, "preset": preset} if preset else None
            made.render_to(folder / "ours.mp4", 4, progress=False, options=options)

    def x264(preset: str) -> None:
        """Encode the pictures of our file again, with its settings, and nothing else."""
        if preset not in pictures:
            with av.open(str(folder / "ours.mp4")) as made:
                pictures[preset] = list(made.decode(video=0))
        _, options = CODECS["h264"]
        options = options | ({"crf": "23", "preset": preset} if preset else {})
        with av.open(str(folder / "x264.mp4"), "w") as out:
            stream = out.add_stream("libx264", rate=25, options=options)
            stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
            stream.codec_context.thread_count = default_threads("libx264")
            for picture in pictures[preset]:
                picture.pict_type = 0
                out.mux(stream.encode(picture))
            out.mux(stream.encode(None))

    def moviepy(preset: str) -> None:
        python = os.environ.get("DALA_MOVIEPY", sys.executable)
        out = str(folder / "moviepy.mp4")
        # It leaves files where it runs.
        subprocess.run([python, "-c", MOVIEPY, *names, preset, out], check=True, cwd=folder)

    rows: dict[str, dict[str, Times]] = {}
    pictures: dict[str, list[AvObject]] = {}
    for preset in ("", "ultrafast", "medium"):
        racers: dict[str, Callable[[], None]] = {
            "dala": lambda p=preset: ours(p),  # type: ignore[misc]
            "x264 alone": lambda p=preset: x264(p),  # type: ignore[misc]
            "moviepy": lambda p=preset: moviepy(p),  # type: ignore[misc]
        }
        title = f"x264 {preset}" if preset else "defaults of both"
        rows[f"four videos with sound to an MP4 of 1080p, {title}"] = fastest(racers, 2)
        pictures.clear()
    return rows


def main() -> None:
    """Measure, print and write the results."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rows = mixing(folder) | scene(folder)
    for title, found in rows.items():
        ours = found["dala"]
        others = ", ".join(
            f"{peer} {cpu:.2f} and {wall:.2f} s ({cpu / ours[0]:.2f}x and {wall / ours[1]:.2f}x)"
            for peer, (cpu, wall) in found.items()
            if peer != "dala"
        )
        speed = f", {SECONDS / ours[0]:.0f} times real time" if "tracks" in title else ""
        print(f"{title}: dala {ours[0]:.2f} CPU s, {ours[1]:.2f} s{speed}; {others}")
    both = {
        unit: {title: {peer: t[at] for peer, t in found.items()} for title, found in rows.items()}
        for at, unit in enumerate(("cpu_seconds", "wall_seconds"))
    }
    write("audio", {"seconds": SECONDS, **both}, ("av",))


if __name__ == "__main__":
    main()
