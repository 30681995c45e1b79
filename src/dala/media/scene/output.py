"""Where a scene's frames go: into a video file, onto a screen, onto a surface.

All of them ask for the same times, ``start`` and one frame of the rate after another, so a file and
a show have the same frames; only a show may leave some out when it is late.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from fractions import Fraction
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from dala.errors import ParameterError, ShapeError
from dala.media.scene.clock import frame_rate
from dala.media.scene.nodes.text import SubtitlesNode
from dala.media.scene.nodes.video import VideoNode
from dala.media.sources.feed import exact

if TYPE_CHECKING:
    from dala.gpu.surface import Surface
    from dala.media.frame import Frame
    from dala.media.scene.scene import Scene


class Output:
    """``render_to``, ``play``, ``to``, ``save``."""

    __slots__ = ()

    def render_to(
        self,
        path: str | os.PathLike[str],
        seconds: float | None = None,
        *,
        fps: Any = None,
        start: float = 0.0,
        progress: bool | Callable[[int, int], object] = True,
        codec: str | None = None,
        options: Mapping[str, Any] | None = None,
        audio_from: Any = None,
    ) -> int:
        """Renders the scene into a video file, whole or not at all; gives the number of frames.

        Args:
            path: the file; its suffix names the container.
            seconds: how long; left out, ``duration``, or until everything in it has ended.
            fps: frames a second; the scene's where left out.
            start: the scene's time of the first frame.
            progress: True draws a line on the terminal; or a function of frames done and total.
            codec: see ``dala.media.video.writer``.
            options: for the encoder, such as ``{"crf": 18}``.
            audio_from: a video node (or its id), or a file, whose sound is carried through, moved
                as its pictures are.

        Raises:
            ParameterError: an argument is not one it takes, or nothing says how long it is.
            VideoError: the file cannot be made.
        """
        return render_to(
            _scene(self), path, seconds, fps=fps, start=start, progress=progress, codec=codec,
            options=options, audio_from=audio_from,
        )  # fmt: skip

    def play(
        self,
        show: Any = "window",
        seconds: float | None = None,
        *,
        start: float = 0.0,
        title: str = "dala",
        on_frame: Callable[[float], object] | None = None,
    ) -> dict[str, Any]:
        """Shows the scene at its clock until the window is closed; gives ``stats``.

        Frames that are late are left out and counted: ``frames_dropped``.

        Args:
            show: "window", "browser", "notebook", "terminal", a Surface, or None for nowhere.
            seconds: how long; left out, until it is closed.
            start: the scene's time of the first frame.
            title: of the window.
            on_frame: called after each frame with its time; it may change the scene.
        """
        return play(_scene(self), show, seconds, start=start, title=title, on_frame=on_frame)

    def to(self, surface: Surface, time: float | None = None) -> Frame:
        """Renders a frame onto a surface, into its back framebuffer; ``present`` shows it.

        ``time`` is as of :meth:`render`.
        """
        return put_on(_scene(self), surface, time)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the scene to a scene file (JSON); ``load_scene`` reads it.

        Raises:
            SceneFileError: something in it cannot be named in a file, such as an array.
        """
        from dala.media.scene.file.save import save_scene

        save_scene(_scene(self), path)


def _scene(home: Any) -> Scene:
    return home  # type: ignore[no-any-return]


def render_to(
    scene: Scene,
    path: str | os.PathLike[str],
    seconds: float | None = None,
    *,
    fps: Any = None,
    start: float = 0.0,
    progress: bool | Callable[[int, int], object] = True,
    codec: str | None = None,
    options: Mapping[str, Any] | None = None,
    audio_from: Any = None,
    length_of: Scene | None = None,
) -> int:
    """See :meth:`Output.render_to`. ``length_of`` is the scene that says how long it is."""
    from dala.media import video
    from dala.media.progress import Progress
    from dala.media.scene.sound import sound_of

    call = "Scene.render_to"
    scene._check_open(call)
    if not callable(progress) and not isinstance(progress, bool):
        raise ParameterError(
            f"{call}: progress is True, False or a function of (done, total), {progress!r} came."
        )
    width, height = scene.width, scene.height
    if width % 2 or height % 2:
        raise ShapeError(
            f"{call}: video has chroma for each 2 by 2 pixels, so width and height must be even; "
            f"the scene is {width} x {height}. Make it {width + width % 2} x {height + height % 2}."
        )
    rate = scene._clock.rate if fps is None else frame_rate(fps)
    begin = _seconds(call, start)
    if seconds is not None:
        length = _above_0(call, "seconds", seconds)
    else:
        length = _length(length_of or scene, begin)
    total = max(1, round(length * rate))
    with ExitStack() as stack:
        sound: Any = sound_of(scene, audio_from, begin, total / rate, call)
        try:
            sink = video.write(
                path, fps=rate, retime=True, codec=codec, options=options, device=scene.device,
                width=width, height=height, audio_from=sound,
            )  # fmt: skip
        except BaseException:
            if sound is not None:
                sound.close()
            raise
        stack.enter_context(sink)
        bar = stack.enter_context(Progress(total, "frames")) if progress is True else None
        for number in range(total):
            sink.write(scene.render(begin + number / rate))
            if bar is not None:
                bar.step()
            elif callable(progress):
                progress(number + 1, total)
    return total


def put_on(scene: Scene, surface: Surface, time: float | None = None) -> Frame:
    """See :meth:`Output.to`."""
    from dala.gpu.shaders.transfer import put

    scene._check_open("Scene.to")
    _check_surface(scene, surface, "Scene.to")
    frame = scene.render(time)
    put(frame.pixels, surface)
    return frame


class Player:
    """Frames of a scene onto a surface, each when its time has come.

    ``clock`` and ``pause`` are those of the system; a test has others. ``loop`` is the scene's time
    at which it begins again.
    """

    def __init__(
        self,
        scene: Scene,
        surface: Surface,
        *,
        start: float = 0.0,
        fps: Any = None,
        loop: float | None = None,
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], object] = sleep,
    ) -> None:
        self.scene = scene
        self.surface = surface
        self._rate = scene._clock.rate if fps is None else frame_rate(fps)
        self._loop = None if loop is None else exact("loop", loop)
        self._shown = 0
        self._start = _seconds("Scene.play", start)
        self._clock = clock
        self._pause = pause
        self._began: float | None = None
        #: Number of the next frame.
        self.next = 0

    def step(self, last: int | None = None) -> bool:
        """Waits for the next frame's time and shows it; late, it shows the newest that is due.

        False where there is none before ``last``.
        """
        if last is not None and self.next >= last:
            return False
        now = self._clock()
        if self._began is None:
            self._began = now
        wait = float(self.next / self._rate) - (now - self._began)
        if wait > 0:
            self._pause(wait)
        else:
            due = math.floor((now - self._began) * self._rate + 1e-6)
            if last is not None:
                due = min(due, last - 1)
            self.scene.frames_dropped += max(due - self.next, 0)
            self.next = max(due, self.next)
        time = self._start + self.next / self._rate
        self._show(time if self._loop is None else time % self._loop)
        self.next += 1
        return True

    def _show(self, time: Any) -> None:
        from dala.gpu.shaders.transfer import put

        skipped = self.scene.frames_skipped
        frame = self.scene.render(time)
        if self.scene.frames_skipped == skipped or not self._shown:
            put(frame.pixels, self.surface)
            self.surface.present()
            self._shown += 1


def play(
    scene: Scene,
    show: Any = "window",
    seconds: float | None = None,
    *,
    start: float = 0.0,
    title: str = "dala",
    on_frame: Callable[[float], object] | None = None,
    clock: Callable[[], float] = monotonic,
    pause: Callable[[float], object] = sleep,
) -> dict[str, Any]:
    """See :meth:`Output.play`."""
    from dala import gpu
    from dala.gpu.surface import Surface

    call = "Scene.play"
    scene._check_open(call)
    if show is None and seconds is None:
        raise ParameterError(f"{call}: without a window to close, seconds must be given.")
    last = None
    if seconds is not None:
        last = max(1, round(_above_0(call, "seconds", seconds) * scene._clock.rate))
    if isinstance(show, Surface):
        _check_surface(scene, show, call)
        surface = show
    else:
        surface = gpu.create_surface(scene.width, scene.height, show=show, title=title)
    try:
        player = Player(scene, surface, start=start, clock=clock, pause=pause)
        while player.step(last):
            if on_frame is not None:
                on_frame(scene.time)
            if surface.presenter is not None and surface.wait_closed(0):
                break
        surface.synchronize()
    finally:
        if surface is not show:
            surface.close()
    return scene.stats


def _check_surface(scene: Scene, surface: Any, call: str) -> None:
    from dala.gpu.surface import Surface

    if not isinstance(surface, Surface):
        raise ParameterError(
            f"{call}: a Surface is expected, {type(surface).__name__} came. "
            f"dala.gpu.create_surface({scene.width}, {scene.height}) makes one."
        )
    if surface.size != (scene.width, scene.height):
        width, height = surface.size
        raise ParameterError(
            f"{call}: the scene is {scene.width}x{scene.height}, the surface {width}x{height}. "
            f"Make it so: surface.resize({scene.width}, {scene.height})."
        )


def _seconds(call: str, value: Any) -> Fraction:
    number = not isinstance(value, bool | str) and hasattr(value, "__float__")
    if not number or not abs(float(value)) < 1e9:
        raise ParameterError(f"{call}: start is a number of seconds, {value!r} came.")
    return exact("start", value)


def _above_0(call: str, name: str, value: Any) -> Fraction:
    number = not isinstance(value, bool | str) and hasattr(value, "__float__")
    if not number or not 0 < float(value) < 1e9:
        raise ParameterError(f"{call}: {name} is a number above 0, {value!r} came.")
    return exact(name, value)


def _length(scene: Scene, start: Fraction) -> Fraction:
    """How long a scene is where nobody says: to the end of what ends last, if anything does."""
    from dala.media.video.reader import Reader

    if scene.duration is not None:
        return _above_0("Scene", "duration", scene.duration)
    ends = [a.end for a in scene.animator if math.isfinite(a.end)]
    for node in scene.nodes.values():
        if isinstance(node, SubtitlesNode):
            ends += [cue.end + node.offset for cue in node.cues]
        if isinstance(node, VideoNode) and not node.options.get("loop"):
            source = node.source
            if isinstance(node.stream, Reader):
                found = node.stream.duration
            else:
                found = _duration(node.stream)
            ends += [found / float(source.speed) + float(source.offset)] if found else []
    length = exact("seconds", max(ends, default=0.0)) - start
    if length <= 0:
        raise ParameterError(
            "Scene.render_to: nothing in the scene ends, so say how long it is: seconds=10, or "
            "scene.duration = 10."
        )
    return length


def _duration(stream: Any) -> float | None:
    """Seconds of a video file; None for what has no end or is no file."""
    from dala.media import video

    if not isinstance(stream, str | os.PathLike) or "://" in os.fspath(stream):
        return None
    with video.open(stream) as reader:
        return reader.duration
