"""Encoders: hardware that works, and opening one without the real-time priority that some take.

SVT-AV1, where it runs as root, gives itself and the thread that opens it the highest real-time
priority. Such a thread keeps all others of the machine waiting, and so do the processes that are
started from it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Final, TypeAlias

from dala.errors import DeviceUnavailable, ParameterError
from dala.media.video.decoding.nvdec import engine_of, options_for
from dala.media.video.options import EncoderOptions
from dala.media.video.source import AvObject, av, ffmpeg_message
from dala.notices import notify

#: Code points of range (FFmpeg's), matrix, primaries and transfer (H.273).
Tags: TypeAlias = tuple[int, int, int, int]
#: The threads of this process; on Linux only.
_THREADS: Final = Path("/proc/self/task")


def open_encoder(context: AvObject, *, strict: bool = False) -> None:
    """Open an encoder; its threads, and the calling one, keep their usual priority."""
    with _usual_priority():
        context.open(strict=strict)


def set_tags(target: AvObject, tags: Tags) -> None:
    """Set range, matrix, primaries and transfer of a frame or an encoder."""
    target.color_range, target.colorspace, target.color_primaries, target.color_trc = tags


# nodeco
@dataclass(frozen=True)
class PictureEncoding:
    """An encoder of pictures, as it is added to a container; JSON can hold it."""

    codec: str
    options: dict[str, str]
    #: Frames per second, and the unit of their times, as texts of fractions.
    rate: str
    time_base: str
    width: int
    height: int
    pixel_format: str
    #: A pixel's width / height; "" for square ones.
    aspect: str
    threads: int
    tags: Tags
    codec_tag: str = ""

    @property
    def label(self) -> str:
        """The encoder, for traces: codec, preset and threads."""
        preset = self.options.get("preset", "")
        threads = f", {self.threads} threads" if self.threads else ""
        return f"{self.codec} {preset}".rstrip() + threads

    def add_to(self, output: AvObject, device: str | None = None) -> AvObject:
        """Add the stream to a container of PyAV; its encoder is to be opened with ``open_encoder``.

        Args:
            output: the container.
            device: the kind of hardware device that frames are uploaded to.
        """
        stream = output.add_stream(
            self.codec, rate=Fraction(self.rate), options=dict(self.options),
            hwaccel=hardware_device(device),
        )  # fmt: skip
        context = stream.codec_context
        context.width, context.height = self.width, self.height
        context.pix_fmt = self.pixel_format
        context.time_base = Fraction(self.time_base)
        context.thread_type = "AUTO"
        context.thread_count = self.threads
        set_tags(context, self.tags)
        if self.codec_tag:
            context.codec_tag = self.codec_tag
        if self.aspect:
            context.sample_aspect_ratio = Fraction(self.aspect)
        return stream


def hardware_device(kind: str | None) -> AvObject:
    """Return the device that FFmpeg uploads frames to; None for none."""
    if not kind:
        return None
    from av.codec.hwaccel import HWAccel

    if (engine := engine_of(kind)) is not None:
        return HWAccel(device_type="cuda", **options_for(engine, False))
    return HWAccel(device_type=kind, allow_software_fallback=False)


@contextlib.contextmanager
def _usual_priority() -> Iterator[None]:
    """Take real-time priority back from the threads that got it, unless the caller has it."""
    if not hasattr(os, "sched_setscheduler") or not _THREADS.is_dir() or _is_realtime(0):
        yield
        return
    before = set(filter(_is_realtime, _threads()))
    try:
        yield
    finally:
        for thread in filter(_is_realtime, _threads() - before):
            with contextlib.suppress(OSError):
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def _threads() -> set[int]:
    return {int(name) for name in os.listdir(_THREADS)}


def _is_realtime(thread: int) -> bool:
    try:
        return os.sched_getscheduler(thread) in (os.SCHED_FIFO, os.SCHED_RR)
    except OSError:  # it has ended
        return False


_CALL: Final = "video.write"
#: Kinds of hardware in the order that "auto" tries them, and the pixel format of each.
HARDWARE: Final[Mapping[str, str]] = {
    "nvenc": "yuv420p",
    "videotoolbox": "nv12",
    "qsv": "nv12",
    "amf": "nv12",
    "vaapi": "nv12",
}
#: Codecs that have hardware encoders, by the names that ``codec=`` takes.
_CODECS: Final[Mapping[str, str]] = {
    "h264": "h264", "hevc": "hevc", "h265": "hevc", "av1": "av1", "vp9": "vp9",
}  # fmt: skip
#: The quality of hardware encoders if no ``crf`` is given.
_QUALITY: Final = 23


@dataclass(frozen=True)
class EncoderChoice:
    """An encoder of FFmpeg, with its options and the pixel format that it takes."""

    name: str
    options: dict[str, str]
    pixel_format: str
    #: The kind of hardware device that frames are uploaded to by FFmpeg, or the device of CUDA that
    #: has them already; None for none.
    device: str | None = None

    @property
    def gpu(self) -> str:
        """The device of CUDA that has the frames, or ""."""
        return self.device if self.device and self.device.startswith("cuda") else ""


#: Tries an encoder at a size; returns why it does not open, or None if it does.
Probe: TypeAlias = Callable[[EncoderChoice, tuple[int, int]], str | None]


def check_encoder(encoder: str | None, codec: str, plain: bool) -> None:
    """Check that an encoder can be asked for with a codec.

    Args:
        encoder: a value of ``encoder=``, or None.
        codec: the name of the codec.
        plain: whether frames are encoded as 8-bit 4:2:0, which is all that hardware gets.

    Raises:
        ParameterError: they do not fit.
    """
    EncoderOptions.specs()["encoder"].check(_CALL, encoder)
    if encoder == "x264" and codec != "h264":
        raise ParameterError.invalid(
            _CALL, "codec", "'h264' with encoder 'x264'", codec, "Leave encoder out for software."
        )
    if encoder in HARDWARE and codec not in _CODECS:
        listed = ", ".join(map(repr, _CODECS))
        raise ParameterError.invalid(
            _CALL, "codec", f"one of {listed} with encoder {encoder!r}", codec
        )
    if encoder in HARDWARE and not plain:
        raise ParameterError(
            f"{_CALL}: encoder {encoder!r} takes 8-bit 4:2:0 without alpha only. Leave encoder out."
        )


def choose_encoder(
    encoder: str | None,
    codec: str,
    size: tuple[int, int],
    software: EncoderChoice,
    given: Mapping[str, str],
    *,
    plain: bool = True,
    probe: Probe | None = None,
) -> EncoderChoice:
    """Return the encoder to use; for "auto" the first hardware that opens, else software.

    Args:
        encoder: a value of ``encoder=``; None for software.
        codec: the name of the codec.
        size: width and height to encode.
        software: the choice without hardware.
        given: the user's options; ``crf`` becomes the option that the hardware has for quality.
        plain: whether frames are encoded as 8-bit 4:2:0.
        probe: opens an encoder; for tests.

    Raises:
        DeviceUnavailable: the hardware asked for does not open.
    """
    if encoder is None or encoder == "x264":
        return software
    probe = probe or refusal
    size = size[0] + size[0] % 2, size[1] + size[1] % 2  # as it is stored
    auto, chosen = encoder == "auto", software
    tried: list[str] = []
    if auto and not (codec in _CODECS and plain):
        tried.append(f"no hardware (it does not encode {'these pixels' if not plain else codec})")
    else:
        for kind in HARDWARE if auto else (encoder,):
            choice = hardware_choice(kind, codec, given)
            why = probe(choice, size)
            if why is None:
                chosen = choice
                break
            if not auto:
                raise DeviceUnavailable(
                    f"{_CALL}: encoder {encoder!r} cannot encode {codec} at {size[0]}x{size[1]} "
                    f"here: {why}. Leave encoder out, or use 'auto'."
                )
            tried.append(f"{kind} ({why})")
    if auto:
        before = f" Tried before it: {'; '.join(tried)}." if tried else ""
        notify(f"{_CALL}: encoder 'auto' uses {chosen.name}.{before}", stacklevel=4)
    return chosen


def on_gpu(choice: EncoderChoice, device: str, size: tuple[int, int]) -> EncoderChoice:
    """Return how NVENC takes frames from a GPU's memory, if they are there; else the choice."""
    layouts = ("yuv420p", "nv12")
    nvenc = choice.name.endswith("_nvenc") and choice.pixel_format in layouts
    if not (nvenc and device.startswith("cuda")):
        return choice
    made = replace(choice, pixel_format="nv12", device=device)
    why = refusal(made, size)
    if why is None:
        return made
    notify(f"{_CALL}: frames of {device} are downloaded for {choice.name}: {why}.", stacklevel=5)
    return choice


def hardware_choice(kind: str, codec: str, given: Mapping[str, str]) -> EncoderChoice:
    """Return the encoder of a kind of hardware, with its options for quality.

    >>> hardware_choice("nvenc", "h265", {"crf": "20", "preset": "p5"})
    ... # doctest: +NORMALIZE_WHITESPACE
    EncoderChoice(name='hevc_nvenc', options={'rc': 'vbr', 'cq': '20', 'b': '0', 'preset': 'p5'},
                  pixel_format='yuv420p', device=None)
    """
    options = {name: value for name, value in given.items() if name != "crf"}
    quality = round(float(given.get("crf", _QUALITY)))
    made = {**_quality(kind, min(max(quality, 1), 51)), **options}
    device = "vaapi" if kind == "vaapi" else None
    return EncoderChoice(f"{_CODECS[codec]}_{kind}", made, HARDWARE[kind], device)


def _quality(kind: str, quality: int) -> dict[str, str]:
    """Return the options for constant quality, on the scale of x264's ``crf``."""
    q = str(quality)
    # VideoToolbox counts from 1 to 100, best last, in units of FFmpeg's lambda.
    apple = str(max(1, 100 - quality * 100 // 51) * 118)
    return {
        "nvenc": {"rc": "vbr", "cq": q, "b": "0"},
        "qsv": {"global_quality": q},
        "amf": {"rc": "cqp", "qp_i": q, "qp_p": q},
        "vaapi": {"rc_mode": "CQP", "qp": q},
        "videotoolbox": {"flags": "+qscale", "global_quality": apple},
    }[kind]


def refusal(choice: EncoderChoice, size: tuple[int, int]) -> str | None:
    """Open an encoder and close it again. Return why it does not open, or None if it does."""
    if choice.name not in av.codecs_available:
        return "this build of FFmpeg does not have it"
    before = av.logging.get_level()
    av.logging.set_level(av.logging.ERROR)  # FFmpeg says the reason in its log only
    try:
        with av.logging.Capture():
            context = av.CodecContext.create(
                choice.name, "w", hwaccel=hardware_device(choice.device)
            )
            context.width, context.height = size
            context.pix_fmt = choice.pixel_format
            context.time_base = Fraction(1, 30)
            context.options = dict(choice.options)
            open_encoder(context, strict=True)
    except (av.FFmpegError, OSError, ValueError, RuntimeError) as error:
        log = getattr(error, "log", None)
        return str(log[2]).strip().rstrip(".") if log else ffmpeg_message(error)
    finally:
        av.logging.set_level(before)
    return None
