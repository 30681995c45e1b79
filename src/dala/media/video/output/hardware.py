"""The choice of an encoder: software, or hardware that really opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from dala.errors import DeviceUnavailable, ParameterError
from dala.media.video.options import EncoderOptions
from dala.media.video.output.opening import hardware_device, open_encoder
from dala.media.video.source import av, ffmpeg_message
from dala.notices import notify

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
    #: The kind of hardware device that frames are uploaded to by FFmpeg; None for none.
    device: str | None = None


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
