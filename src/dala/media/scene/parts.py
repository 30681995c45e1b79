"""Scenes in parts of time: each encoded on its own, and their packets in one file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from fractions import Fraction
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from dala.errors import ParameterError
from dala.media.progress import Progress
from dala.media.scene.sound.rendered import rendered_sound
from dala.media.video.chunks.checking import Stitched
from dala.media.video.chunks.packets import PacketReader, PacketTarget
from dala.media.video.chunks.stitching import OpenPart, stitch
from dala.media.video.writer import Writer
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene

_CALL = "Scene.render_to"


def scene_parts(
    scene: Scene, total: int, rate: Fraction, chunk: Fraction | None
) -> list[tuple[int, int]]:
    """Return the first and last (excluded) frame of each part of a scene.

    Parts are so many seconds long, the last one from half of that on. A scene in which nodes follow
    others is one part: what they follow is found from frame to frame.
    """
    if chunk is None or scene.followers:
        return [(0, total)]
    size = max(1, round(chunk * rate))
    count = max(1, ceil(total / size))
    if count > 1 and total - (count - 1) * size < size / 2:
        count -= 1
    return [(n * size, total if n == count - 1 else (n + 1) * size) for n in range(count)]


def render_part(
    scene: Scene,
    suffix: str,
    span: tuple[int, int],
    rate: Fraction,
    begin: Fraction,
    target: Path,
    report: Callable[[int], object],
    *,
    codec: str | None = None,
    options: Mapping[str, str | float] | None = None,
    threads: int = 0,
    encoder: str | None = None,
) -> int:
    """Render a part of a scene to a file of packets; return the number of frames.

    Args:
        scene: the scene.
        suffix: of the container that the packets will be in.
        span: the first and last (excluded) frame.
        rate: frames per second.
        begin: the scene's time of frame 0.
        target: the file of packets.
        report: is called with the number of frames so far.
        codec: of the video.
        options: of its encoder.
        threads: of its encoder; 0 for the default.
        encoder: hardware, or None.
    """
    with Writer(
        PacketTarget(target, suffix.lstrip(".")),
        fps=rate,
        codec=codec,
        options=options,
        threads=threads,
        device=scene.device,
        width=scene.width,
        height=scene.height,
        encoder=encoder,
    ) as sink:
        for number in range(*span):
            frame = scene.render(begin + number / rate)
            made = frame.like(frame.pixels)
            made.pts, made.time_base, made.duration = number, 1 / rate, None
            sink.write(made)
            report(sink.frames)
        return sink.frames


def stitch_scene(
    scene: Scene,
    path: PathLike,
    target: Path,
    parts: int,
    open_part: OpenPart,
    total: int,
    rate: Fraction,
    begin: Fraction,
    *,
    codec: str | None = None,
    audio_from: Node | PathLike | None = None,
    audio: bool = True,
    audio_codec: str | None = None,
) -> Stitched:
    """Write the packets of all parts to a file, with the sound of the scene.

    Args:
        scene: the scene.
        path: the name of the result, by which the codec of the sound is chosen.
        target: the file to write.
        parts: their number.
        open_part: opens the packets of a part.
        total: the number of frames.
        rate: frames per second.
        begin: the scene's time of frame 0.
        codec: of the video.
        audio_from: as of ``Scene.render_to``.
        audio: as of ``Scene.render_to``.
        audio_codec: as of ``Scene.render_to``.
    """
    sound, scene.sound_report = rendered_sound(
        scene, path, audio_from, audio, audio_codec, codec, begin, total / rate, _CALL
    )
    return stitch(
        parts,
        open_part,
        None,
        target,
        tracks=sound,
        expected=(np.arange(total, dtype=np.int64), 1 / rate),
    )


def render_in_parts(
    scene: Scene,
    path: PathLike,
    total: int,
    rate: Fraction,
    begin: Fraction,
    chunk: Fraction,
    progress: bool | Callable[[int, int], object],
    *,
    codec: str | None = None,
    options: Mapping[str, str | float] | None = None,
    audio_from: Node | PathLike | None = None,
    audio: bool = True,
    audio_codec: str | None = None,
    alpha: bool = False,
    encoder: str | None = None,
    threads: int = 0,
) -> int:
    """Render a scene in parts, one after another; see ``Scene.render_to``."""
    if not isinstance(path, str | Path) or not Path(path).suffix:
        raise ParameterError.invalid(_CALL, "path", "the name of a video, with chunk", path)
    if alpha:
        raise ParameterError.invalid(_CALL, "alpha", "False with chunk", alpha)
    target = Path(path)
    with ExitStack() as held:
        folder = held.enter_context(TemporaryDirectory(prefix="dala-scene-"))
        bar = held.enter_context(Progress(total, "frames")) if progress is True else None

        def place(number: int) -> Path:
            return Path(folder, f"{number}.packets")

        spans = scene_parts(scene, total, rate, chunk)
        for number, span in enumerate(spans):

            def report(done: int, first: int = span[0]) -> None:
                if bar is not None:
                    bar.step()
                elif callable(progress):
                    progress(first + done, total)

            render_part(
                scene, target.suffix, span, rate, begin, place(number), report,
                codec=codec, options=options, threads=threads, encoder=encoder,
            )  # fmt: skip
        stitch_scene(
            scene, target, target, len(spans),
            lambda number: PacketReader(place(number).open("rb"), str(place(number))),
            total, rate, begin,
            codec=codec, audio_from=audio_from, audio=audio, audio_codec=audio_codec,
        )  # fmt: skip
    return total
