"""Output of a scene: to a video file, to the screen, to a surface.

All outputs render the same times, from ``start`` on at the frame rate, so a file and a live
presentation have the same frames. Only a presentation drops frames when it is late.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from fractions import Fraction
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeAlias

from dala.errors import ParameterError
from dala.media.scene.clock import frame_rate
from dala.media.scene.follow.target import in_real_time
from dala.media.scene.nodes.group import GroupNode
from dala.media.sources.seconds import to_fraction
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.gpu.surface import Surface
    from dala.media.frame import Frame
    from dala.media.live.sending import LiveRun
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.playback import Playback
    from dala.media.scene.scene import Scene

#: A frame rate: 30, 29.97 or "30000/1001".
FrameRate: TypeAlias = "float | str | Fraction"


class SceneOutput:
    """The methods ``render_to``, ``play``, ``live``, ``to`` and ``save`` of scenes."""

    __slots__: tuple[str, ...] = ()

    def render_to(
        self,
        path: PathLike,
        seconds: float | None = None,
        *,
        fps: FrameRate | None = None,
        start: float = 0.0,
        progress: bool | Callable[[int, int], object] = True,
        codec: str | None = None,
        options: Mapping[str, str | float] | None = None,
        audio_from: Node | PathLike | None = None,
        audio: bool = True,
        audio_codec: str | None = None,
        alpha: bool = False,
        encoder: str | None = None,
        chunk: float | None = None,
    ) -> int:
        """Render the scene to a video file; return the number of frames.

        The file appears under its name once it is complete.

        Args:
            path: the file; its suffix names the container, or an animated picture (.gif, .apng,
                .webp).
            seconds: duration; by default ``duration``, or until everything in it has ended.
            fps: frames per second; by default those of the scene.
            start: the scene's time of the first frame.
            progress: True for a progress bar on the terminal, or a function of the number of
                finished frames and their total.
            codec: see ``dala.media.video.write``.
            options: options of the encoder, such as ``{"crf": 18}``.
            audio_from: a video node (or its id), or a file, whose sound is copied in sync with its
                pictures, instead of the sound of the scene.
            audio: write the sound of the scene: that of its audio nodes and videos, mixed. If one
                is heard alone and as it is, its sound is copied; ``explain()`` says which. False
                for no sound.
            audio_codec: "aac", "opus", "flac", "mp3", "pcm", ...; by default AAC in .mp4 and .mov,
                Opus in .webm, FLAC in .mkv.
            alpha: keep the alpha of a scene with a transparent background; the codec must hold it.
            encoder: "auto" for hardware that works here, or the name of one.
            chunk: encode parts of so many seconds each on their own, as ``batch.scenes`` does. The
                files are then the same.

        Raises:
            ParameterError: an argument is invalid, or the duration is unknown.
            VideoError: the file cannot be written.
        """
        return render_to(
            _scene(self), path, seconds, fps=fps, start=start, progress=progress, codec=codec,
            options=options, audio_from=audio_from, audio=audio, audio_codec=audio_codec,
            alpha=alpha, encoder=encoder, chunk=chunk,
        )  # fmt: skip

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
            _scene(self), show, seconds, start=start, title=title, on_frame=on_frame, audio=audio
        )

    def live(
        self,
        url: PathLike,
        seconds: float | None = None,
        *,
        fps: FrameRate | None = None,
        start: float = 0.0,
        bit_rate: int | str | None = None,
        key_frames: float = 2.0,
        encoder: str | None = None,
        options: Mapping[str, str | float] | None = None,
        reconnect: float = 300.0,
        on_frame: Callable[[float], object] | None = None,
        audio: bool = True,
        wait: bool | None = None,
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
            bit_rate: bits a second of the pictures, such as "4M"; by default by the size.
            key_frames: seconds between key frames, at which receivers can begin.
            encoder: "auto" for hardware that works here, or the name of one.
            options: options of the encoder.
            reconnect: seconds for which a lost receiver is tried again.
            on_frame: called after each frame with its time, on the thread that sends; it may
                change the scene.
            audio: send the sound of the scene: that of its audio nodes and videos, mixed.
            wait: whether the call returns at the end only; by default if ``seconds`` is given.

        Raises:
            ParameterError: an argument is invalid.
            VideoError: the receiver cannot be reached.
        """
        from dala.media.scene.live import live

        return live(
            _scene(self), url, seconds, fps=fps, start=start, bit_rate=bit_rate,
            key_frames=key_frames, encoder=encoder, options=options, reconnect=reconnect,
            on_frame=on_frame, audio=audio, wait=wait,
        )  # fmt: skip

    def to(self, surface: Surface, time: float | None = None) -> Frame:
        """Render a frame to the back framebuffer of a surface; ``surface.present()`` shows it.

        ``time`` is that of :meth:`render`.
        """
        return put_on(_scene(self), surface, time)

    def save(self, path: PathLike) -> None:
        """Write the scene to a scene file (JSON), which ``load_scene`` reads.

        Raises:
            SceneFileError: something in it, such as an array, cannot be named in a file.
        """
        from dala.media.scene.file.save import save_scene

        save_scene(_scene(self), path)


def _scene(output: SceneOutput) -> Scene:
    return output  # type: ignore[return-value]


def render_to(
    scene: Scene,
    path: PathLike,
    seconds: float | None = None,
    *,
    fps: FrameRate | None = None,
    start: float = 0.0,
    progress: bool | Callable[[int, int], object] = True,
    codec: str | None = None,
    options: Mapping[str, str | float] | None = None,
    audio_from: Node | PathLike | None = None,
    audio: bool = True,
    audio_codec: str | None = None,
    alpha: bool = False,
    encoder: str | None = None,
    chunk: float | None = None,
    length_of: Scene | None = None,
) -> int:
    """See :meth:`SceneOutput.render_to`. ``length_of`` is a scene that decides the duration."""
    from dala.media import video
    from dala.media.progress import Progress
    from dala.media.scene.sound.rendered import rendered_sound

    call = "Scene.render_to"
    scene._check_open(call)
    if not callable(progress) and not isinstance(progress, bool):
        expected = "True, False or a function of (done, total)"
        raise ParameterError.invalid(call, "progress", expected, progress)
    if not isinstance(audio, bool):
        raise ParameterError.invalid(call, "audio", "True or False", audio)
    rate = scene.frame_rate if fps is None else frame_rate(fps)
    begin = start_time(call, start)
    total = frame_total(length_of or scene, seconds, rate, begin)
    if chunk is not None:
        from dala.media.scene.parts import render_in_parts

        return render_in_parts(
            scene, path, total, rate, begin, positive(call, "chunk", chunk), progress,
            codec=codec, options=options, audio_from=audio_from, audio=audio,
            audio_codec=audio_codec, alpha=alpha, encoder=encoder,
        )  # fmt: skip
    with ExitStack() as stack:
        sound, scene.sound_report = rendered_sound(
            scene, path, audio_from, audio, audio_codec, codec, begin, total / rate, call
        )
        try:
            sink = video.write(
                path, fps=rate, retime=True, codec=codec, options=options, device=scene.device,
                width=scene.width, height=scene.height, audio_from=sound, alpha=alpha,
                encoder=encoder,
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


def frame_total(scene: Scene, seconds: float | None, rate: Fraction, begin: Fraction) -> int:
    """Return how many frames a scene has, of so many seconds or until everything has ended."""
    if seconds is not None:
        length = positive("Scene.render_to", "seconds", seconds)
    else:
        length = _length(scene, begin)
    return max(1, round(length * rate))


def put_on(scene: Scene, surface: Surface, time: float | None = None) -> Frame:
    """See :meth:`SceneOutput.to`."""
    from dala.gpu.shaders.transfer import put

    scene._check_open("Scene.to")
    check_surface(scene, surface, "Scene.to")
    frame = scene.render(time)
    put(frame.pixels, surface)
    return frame


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
        self._start = start_time("Scene.play", start)
        self._clock = clock
        self._pause = pause
        self._began: float | None = None
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
            self._pause(wait)
        self.present()
        return True

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
        time = self._start + self.next / self._rate
        self._show(time if self._loop is None else time % self._loop)
        self.next += 1

    def _show(self, time: Fraction) -> None:
        from dala.gpu.shaders.transfer import put

        skipped = self.scene.frames_skipped
        with in_real_time():
            frame = self.scene.render(time)
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


def start_time(call: str, value: float) -> Fraction:
    """Return the time of the first frame, exact; raise ParameterError if it is not a time."""
    number = not isinstance(value, bool | str) and hasattr(value, "__float__")
    if not number or not abs(float(value)) < 1e9:
        raise ParameterError.invalid(call, "start", "a number of seconds", value)
    return to_fraction("start", value)


def positive(call: str, name: str, value: float) -> Fraction:
    """Return a number above 0, exact; raise ParameterError if it is not."""
    number = not isinstance(value, bool | str) and hasattr(value, "__float__")
    if not number or not 0 < float(value) < 1e9:
        raise ParameterError.invalid(call, name, "a number above 0", value)
    return to_fraction(name, value)


def _length(scene: Scene, start: Fraction) -> Fraction:
    """Return the duration of a scene: its own, or until the last animation, cue or video ends."""
    if scene.duration is not None:
        return positive("Scene", "duration", scene.duration)
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
