"""Join videos: their packets where all parameters agree, else a timeline, encoded again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from fractions import Fraction
from typing import TYPE_CHECKING

from dala.errors import ParameterError
from dala.media.scene.options import RenderOptions
from dala.media.scene.output import render_to
from dala.media.scene.scene import Scene
from dala.media.scene.timeline import Timeline
from dala.media.transitions.spec import Transition, TransitionLike
from dala.media.video.joining.cut import JoinReport, check_targets
from dala.media.video.joining.packets import (
    CopiedPart,
    PacketFile,
    PacketsRefused,
    copy_packets,
)
from dala.media.video.options import EncoderOptions

if TYPE_CHECKING:
    from dala.typing import PathLike

_CALL = "concat"


def concat_videos(
    paths: Sequence[PathLike],
    out: PathLike,
    *,
    transition: TransitionLike = None,
    audio: bool = True,
    encoding: EncoderOptions | None = None,
    device: str | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> JoinReport:
    """Write videos one after another to a file, with their sound.

    Packets are copied if nothing is in between and the coding of all files agrees. Otherwise the
    videos are fitted into the size and rate of the first, and encoded again.

    Args:
        paths: at least two videos.
        out: the result.
        transition: how each comes in after the one before; see ``Transition``.
        audio: keep the sound.
        encoding: how a result is encoded again.
        device: draws the transitions.
        progress: as of ``Scene.render_to``.
    """
    if isinstance(paths, str | os.PathLike) or len(paths) < 2:
        raise ParameterError.invalid(_CALL, "paths", "at least two videos", paths)
    check_targets(out, list(paths), _CALL)
    made = Transition.of(transition, _CALL)
    with ExitStack() as stack:
        files = [stack.enter_context(PacketFile(path, _CALL, audio)) for path in paths]
        sizes = [(f.video.codec_context.width, f.video.codec_context.height) for f in files]
        rate = 1 / files[0].step
        reason = "" if made.is_cut else f"the transition {made.name!r} mixes pictures"
        reason = reason or difference(paths, files)
        if not reason:
            try:
                parts = [CopiedPart(file, Fraction(0), None) for file in files]
                count = copy_packets(parts, out, _CALL)
                return JoinReport(True, "", count, float(count / rate))
            except PacketsRefused as error:
                reason = f"the container does not take the packets ({error})"
        fitted = _fitted(paths, sizes, [1 / file.step for file in files])
    line = Timeline()
    for number, path in enumerate(paths):
        line.add(path, transition=made if number else None)
    width, height = (side + side % 2 for side in _shown_size(paths[0], sizes[0]))
    with Scene(width, height, fps=rate, device=device) as scene:
        scene.add_timeline(line)
        scene.duration = float(line.duration)
        options = RenderOptions.of(encoding or EncoderOptions(), progress=progress, audio=audio)
        count = render_to(scene, out, None, options)
        problems = [str(error) for error in scene.errors.values()]
    if problems:
        fitted += [f"reported: {problem}" for problem in problems[:3]]
    return JoinReport(False, "; ".join([reason, *fitted]), count, float(count / rate), count)


def _shown_size(path: PathLike, stored: tuple[int, int]) -> tuple[int, int]:
    """Return the size of the pictures as they are shown: turned upright."""
    from dala.media import video

    with video.open(path) as reader:
        return (reader.width, reader.height) if reader.rotation else stored


def _fitted(
    paths: Sequence[PathLike], sizes: list[tuple[int, int]], rates: list[Fraction]
) -> list[str]:
    """Return what is done to videos that differ from the first."""
    found = []
    for path, size, rate in zip(paths[1:], sizes[1:], rates[1:], strict=True):
        if size != sizes[0]:
            (w, h), (x, y) = size, sizes[0]
            found.append(f"{os.fspath(path)} ({w}x{h}) is fitted into {x}x{y}")
        if rate != rates[0]:
            found.append(f"{os.fspath(path)} ({float(rate):g} fps) is shown at {float(rates[0]):g}")
    return found


def difference(paths: Sequence[PathLike], files: Sequence[PacketFile]) -> str:
    """Return why the packets of files cannot stand in one file; "" if they can."""
    first = files[0]
    for path, file in zip(paths[1:], files[1:], strict=True):
        name = os.fspath(path)
        for what, one, other in _coding(first, file):
            if one != other:
                return f"{name} differs from {os.fspath(paths[0])} in its {what} ({other}, {one})"
        if first.video.codec_context.extradata != file.video.codec_context.extradata:
            return f"{name} is coded with other settings than {os.fspath(paths[0])}"
        if len(first.sounds) != len(file.sounds):
            return f"{name} has another number of sound tracks than {os.fspath(paths[0])}"
        for one, other in zip(first.sounds, file.sounds, strict=True):
            a, b = one.codec_context, other.codec_context
            sound = [(c.name, c.sample_rate, c.layout.name, c.extradata) for c in (a, b)]
            if sound[0] != sound[1]:
                return f"the sound of {name} is coded otherwise than that of {os.fspath(paths[0])}"
    return ""


def _coding(a: PacketFile, b: PacketFile) -> list[tuple[str, object, object]]:
    one, other = a.video.codec_context, b.video.codec_context
    return [
        ("codec", one.name, other.name),
        ("size", f"{one.width}x{one.height}", f"{other.width}x{other.height}"),
        ("pixel format", one.pix_fmt, other.pix_fmt),
        ("frame rate", f"{float(1 / a.step):g}", f"{float(1 / b.step):g}"),
        ("time base", str(a.video.time_base), str(b.video.time_base)),
    ]
