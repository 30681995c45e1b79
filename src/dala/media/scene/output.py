"""Output of a scene: to a video file, to the screen, to a surface.

All outputs render the same times, from ``start`` on at the frame rate, so a file and a live
presentation have the same frames. Only a presentation drops frames when it is late.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeAlias, Unpack

from dala.arguments import Fitting, Flag
from dala.errors import ParameterError
from dala.media.live.output import StreamOptions
from dala.media.scene.builder import NodeBuilder
from dala.media.scene.follow.follower import in_real_time
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.options import POSITIVE, START, RenderOptions, frame_rate
from dala.media.sources.seconds import to_fraction
from dala.media.video.options import EncodeOptions
from dala.options import takes
from dala.trace.recorder import OFF, tracer
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.gpu.surface import Surface
    from dala.media.frame import Frame
    from dala.media.live.keywords import StreamKeywords
    from dala.media.live.sending import LiveRun
    from dala.media.scene.keywords import RenderKeywords
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.playback import Playback
    from dala.media.scene.scene import Scene

#: A frame rate: 30, 29.97 or "30000/1001".
FrameRate: TypeAlias = "float | str | Fraction"


class SceneOutput(NodeBuilder):
    """The methods ``render_to``, ``play``, ``live``, ``to`` and ``save`` of scenes."""

    @takes(RenderOptions)
    def render_to(
        self,
        path: PathLike,
        seconds: float | None = None,
        **given: Unpack[RenderKeywords],
    ) -> int:
        """Render the scene to a video file; return the number of frames.

        The file appears under its name once it is complete.

        Args:
            path: the file; its suffix names the container, or an animated picture (.gif, .apng,
                .webp).
            seconds: duration; by default ``duration``, or until everything in it has ended.

        Raises:
            ParameterError: an argument is invalid, or the duration is unknown.
            VideoError: the file cannot be written.
        """
        options = RenderOptions.checked("Scene.render_to", given)
        return render_to(self.scene_of(), path, seconds, options)

    def play(
        self,
        show: str | Surface | None = "window",
        seconds: float | None = None,
        *,
        start: float = 0.0,
        title: str = "dala",
        on_frame: Callable[[float], object] | None = None,
        audio: bool = True,
    ) -> Playback:
        """Present the scene in real time until the window is closed; return ``stats``.

        Late frames are dropped and counted in ``frames_dropped``.

        In a running event loop, await the result: ``await scene.play(...)``. A thread then renders
        the frames, and ``on_frame`` is called by the loop, between frames; it may be a coroutine
        function. Change the scene there only. Cancelling ends the presentation.

        Args:
            show: "window", "browser", "notebook", "terminal", a Surface, or None for no display.
            seconds: duration; by default until the window is closed.
            start: the scene's time of the first frame.
            title: title of the window.
            on_frame: called after each frame with its time; it may change the scene.
            audio: play the sound too, if the machine has a sound device and the package
                ``sounddevice`` (``pip install "dala-gpu[live]"``); a notice says if not. The
                pictures then follow the clock of the device.
        """
        from dala.media.scene.playback import play

        return play(
            self.scene_of(), show, seconds, start=start, title=title, on_frame=on_frame, audio=audio
        )

    @takes(StreamOptions)
    def live(
        self,
        url: PathLike,
        seconds: float | None = None,
        *,
        fps: FrameRate | None = None,
        start: float = 0.0,
        on_frame: Callable[[float], object] | None = None,
        audio: bool = True,
        wait: bool | None = None,
        **given: Unpack[StreamKeywords],
    ) -> LiveRun:
        """Send the scene in real time, as a stream that others watch.

        With ``seconds`` the call returns when they have passed; without, it returns at once, and
        the stream runs on a thread until it is closed::

            with scene.live("rtmp://127.0.0.1/live/test") as run:
                ...                     # change the scene
                print(run.stats)

        If the machine is too slow, frames are dropped and counted in ``stats``.

        Args:
            url: "rtmp://...", "rtsp://...", "udp://host:port", "srt://..." where PyAV has it,
                "whip+https://...", a folder for HLS, or "camera:" for a virtual camera.
            seconds: how long to send.
            fps: frames per second; by default those of the scene.
            start: the scene's time of the first frame.
            on_frame: called after each frame with its time, on the thread that sends; it may
                change the scene.
            audio: send the sound of the scene: that of its audio nodes and videos, mixed.
            wait: whether the call returns at the end only; by default if ``seconds`` is given.

        Raises:
            ParameterError: an argument is invalid.
            VideoError: the receiver cannot be reached.
        """
        from dala.media.live.functions import open as open_live
        from dala.media.live.functions import seconds_of, started
        from dala.media.live.muxing import SOUND_RATE, Samples
        from dala.media.live.sending import PacedRun
        from dala.media.scene.sound.voices import SceneSound, is_heard

        call = "Scene.live"
        scene = self.scene_of()._check_open(call)
        Fitting("a function of the time", callable).check_optional(call, "on_frame", on_frame)
        length, begin = seconds_of(call, seconds), START.check(call, "start", start)
        rate = scene.frame_rate if fps is None else frame_rate(fps)
        Flag().check(call, "audio", audio)
        heard = audio and is_heard(scene.container(), live=True)
        size = scene.width, scene.height
        output = open_live(url, size, fps=rate, sound=heard, call=call, **given)

        def zero() -> float | None:
            return None if run.begin is None else run.begin - float(begin)

        mixed = SceneSound(scene, SOUND_RATE, begin=zero) if heard else None
        shift = round(begin * SOUND_RATE)

        def picture(slot: int) -> Frame | None:
            skipped = scene.frames_skipped
            frame = scene.render(begin + slot / rate)
            if on_frame is not None:
                on_frame(scene.time)
            return None if slot and scene.frames_skipped > skipped else frame

        def sound(first: int, count: int) -> Samples:
            assert mixed is not None
            return mixed.arrived(first + shift, count)

        run = PacedRun(
            output, picture, length, sound=sound if mixed else None, until=lambda: scene._closed
        )
        if mixed is not None:
            run.held.callback(mixed.close)
        return started(run, seconds is not None if wait is None else wait)

    def to(self, surface: Surface, time: float | None = None) -> Frame:
        """Render a frame to the back framebuffer of a surface; ``surface.present()`` shows it.

        ``time`` is that of :meth:`render`.
        """
        from dala.gpu.shaders.transfer import put

        scene = self.scene_of()._check_open("Scene.to")
        check_surface(scene, surface, "Scene.to")
        frame = scene.render(time)
        put(frame.pixels, surface)
        return frame

    def save(self, path: PathLike) -> None:
        """Write the scene to a scene file (JSON), which ``load_scene`` reads.

        Raises:
            SceneFileError: something in it, such as an array, cannot be named in a file.
        """
        from dala.media.scene.file.save import save_scene

        save_scene(self.scene_of(), path)


def render_to(
    scene: Scene,
    path: PathLike,
    seconds: float | None,
    options: RenderOptions,
    length_of: Scene | None = None,
) -> int:
    """See :meth:`SceneOutput.render_to`. ``length_of`` is a scene that decides the duration."""
    from dala.media.scene.parts import SceneRun
    from dala.media.video.files import open_writer

    scene._check_open("Scene.render_to")
    run = SceneRun.of(scene, options)
    total = frame_total(length_of or scene, seconds, run.rate, run.begin)
    if options.chunk is not None:
        if options.on_frame is not None:
            raise ParameterError("Scene.render_to: chunk takes no on_frame. Leave one out.")
        return run.in_parts(path, total)
    sound = run.sound(path, total)
    try:
        encoding = EncodeOptions.of(
            options, fps=run.rate, retime=True, device=scene.device, width=scene.width,
            height=scene.height, audio_from=sound,
        )  # fmt: skip
        sink = open_writer(path, encoding)
    except BaseException:
        if sound is not None:
            sound.close()
        raise
    with sink, run.reported(total) as report:
        for number in range(total):
            time = run.begin + number / run.rate
            if options.on_frame is not None:
                options.on_frame(float(time))
            sink.write(scene.render(time))
            report(number + 1)
    return total


def frame_total(scene: Scene, seconds: float | None, rate: Fraction, begin: Fraction) -> int:
    """Return how many frames a scene has, of so many seconds or until everything has ended."""
    if seconds is not None:
        length = POSITIVE.check("Scene.render_to", "seconds", seconds)
    else:
        length = _length(scene, begin)
    return max(1, round(length * rate))


class ScenePlayer:
    """Presents frames of a scene on a surface, each at its time.

    ``clock`` and ``pause`` default to the system's. ``loop`` is the scene's time at which it
    starts over.
    """

    def __init__(
        self,
        scene: Scene,
        surface: Surface,
        *,
        start: float = 0.0,
        fps: FrameRate | None = None,
        loop: float | None = None,
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], object] = sleep,
    ) -> None:
        self.scene = scene
        self.surface = surface
        self._rate = scene.frame_rate if fps is None else frame_rate(fps)
        self._loop = None if loop is None else to_fraction("loop", loop)
        self._presented = 0
        self._start = START.check("Scene.play", "start", start)
        self._clock = clock
        self._pause = pause
        self._began: float | None = None
        #: What is closed with the player.
        self.held = ExitStack()
        #: Number of the next frame.
        self.next = 0

    def step(self, last: int | None = None) -> bool:
        """Wait for the next frame's time and present it; if late, present the newest due frame.

        Return False if there is no frame before number ``last``.
        """
        wait = self.until_next(last)
        if wait is None:
            return False
        if wait > 0:
            with tracer.wait("idle") if tracer.on else OFF:
                self._pause(wait)
        self.present()
        return True

    def close(self) -> None:
        """Close the surface and the sound that the player has opened."""
        self.held.close()

    def until_next(self, last: int | None = None) -> float | None:
        """Return the seconds until the next frame is due, skipping late ones; None at the end."""
        if last is not None and self.next >= last:
            return None
        now = self._clock()
        if self._began is None:
            self._began = now
        wait = float(self.next / self._rate) - (now - self._began)
        if wait <= 0:
            due = math.floor((now - self._began) * self._rate + 1e-6)
            if last is not None:
                due = min(due, last - 1)
            self.scene.frames_dropped += max(due - self.next, 0)
            self.next = max(due, self.next)
        return max(wait, 0.0)

    def present(self) -> None:
        """Present the next frame now."""
        from dala.gpu.shaders.transfer import put

        time = self._start + self.next / self._rate
        self.next += 1
        skipped = self.scene.frames_skipped
        with in_real_time():
            frame = self.scene.render(time if self._loop is None else time % self._loop)
        if self.scene.frames_skipped == skipped or not self._presented:
            put(frame.pixels, self.surface)
            self.surface.present()
            self._presented += 1


def check_surface(scene: Scene, surface: Surface, call: str) -> None:
    """Raise ParameterError unless the surface has the size of the scene."""
    from dala.gpu.surface import Surface

    if not isinstance(surface, Surface):
        raise ParameterError.invalid(
            call,
            "surface",
            "a Surface",
            surface,
            f"dala.gpu.create_surface({scene.width}, {scene.height}) creates one.",
        )
    if surface.size != (scene.width, scene.height):
        width, height = surface.size
        raise ParameterError(
            f"{call}: the surface must be {scene.width}x{scene.height} like the scene, got "
            f"{width}x{height}. Call surface.resize({scene.width}, {scene.height})."
        )


def _length(scene: Scene, start: Fraction) -> Fraction:
    """Return the duration of a scene: its own, or until the last animation, cue or video ends."""
    if scene.duration is not None:
        return POSITIVE.check("Scene", "duration", scene.duration)
    ends = [to_fraction("end", a.end) for a in scene.animator if math.isfinite(a.end)]
    ends += [end for node in scene.container().children if (end := _end_of(node)) is not None]
    length = max(ends, default=Fraction(0)) - start
    if length <= 0:
        raise ParameterError(
            "Scene.render_to: nothing in the scene ends, so a duration is required: seconds=10, or "
            "scene.duration = 10."
        )
    return length


def _end_of(node: Node) -> Fraction | None:
    """Return the time at which a node ends, in that of its scene or group; None for never."""
    length = node.length()
    if isinstance(node, GroupNode) and length is None:
        found = [end for child in node.children if (end := _end_of(child)) is not None]
        length = max(found, default=None)
    return node.clip.natural_end(length)
