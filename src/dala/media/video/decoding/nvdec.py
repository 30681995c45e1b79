"""Frames that NVIDIA's decoder leaves in the memory of the GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dala.gpu.compute import Buffer, buffer_zeros, from_dlpack
from dala.media.kernels import kernel_from_text
from dala.media.video.source import AvObject, DecodedFrame, av

if TYPE_CHECKING:
    from dala.gpu.compute.engines.base import Engine

#: Layouts whose planes are read on the GPU. Other frames are downloaded.
LAYOUTS = (
    "nv12", "p010le", "p012le", "p016le", "yuv444p", "yuv444p10msble", "yuv444p12msble",
    "yuv444p16le",
)  # fmt: skip

#: The stream that FFmpeg decodes on: CUDA's default.
_DECODERS = 1

# Two bytes a sample become one. A sum of whole numbers below 2 to the 24th is exact in f32.
_NARROW = kernel_from_text("""
def narrow(words: Array, *, step=1.0, middle=0.0, scale=1.0, offset=0.0):
    y, x = position()
    code = floor((words[y, x, 0] + 256.0 * words[y, x, 1]) / step)
    return clamp(floor((code - middle) * scale + offset + 0.5), 0.0, 255.0)
""")

_STACKED = kernel_from_text("""
def stacked(luma: Array, u: Array, v: Array):
    y, x, c = position()
    return luma[y, x] if c == 0 else u[y, x] if c == 1 else v[y, x]
""")

_JOINED = kernel_from_text("""
def joined(luma: Array, pairs: Array, *, height: int):
    y, x = position()
    return luma[y, x] if y < height else pairs[y - height, x]
""")


def engine_of(device: str | None) -> Engine | None:
    """Return the engine whose GPU decodes, if the device is named as one of CUDA."""
    if device is None or not device.startswith("cuda"):
        return None
    with buffer_zeros(1, "u8", device=device) as probe:
        return probe.engine


def options_for(engine: Engine, may_fall_back: bool) -> dict[str, Any]:
    """Return options of PyAV's ``HWAccel``: frames stay in the context that this thread enters."""
    assert engine.sharing is not None, engine.id
    engine.sharing.enter(engine)
    return {
        "device": str(engine.sharing.ordinal_of(engine)),
        "options": {"primary_ctx": "0", "current_ctx": "1"},
        "is_hw_owned": True,
        "allow_software_fallback": may_fall_back,
    }


def codec_with(hardware: str, context: AvObject) -> AvObject | None:
    """Return FFmpeg's own decoder for the codec of a context, if it uses a kind of hardware."""
    found = av.Codec(context.codec.canonical_name, "r")
    kinds = [config.device_type.name for config in found.hardware_configs]
    return found if hardware in kinds else None


def is_on_gpu(frame: DecodedFrame) -> bool:
    """Return whether a frame is in the memory of a GPU."""
    return bool(frame.format.name == "cuda")


def layout_of(frame: DecodedFrame) -> AvObject:
    """Return the format of a frame's pixels, also of one in the memory of a GPU."""
    return frame.sw_format if is_on_gpu(frame) else frame.format


def on_host(frame: DecodedFrame, *, always: bool = True) -> DecodedFrame:
    """Return a frame in the host's memory; else only one whose planes the GPU cannot read."""
    if not is_on_gpu(frame):
        return frame
    if not always and frame.sw_format.name in LAYOUTS:
        return frame
    made = frame.reformat(format=frame.sw_format.name)
    made.pts, made.time_base = frame.pts, frame.time_base
    return made


def _gpu_plane(plane: AvObject, size: tuple[int, int], bits: int) -> AvObject:
    """Return the first rows and columns of a plane as an array of a GPU, which holds the plane."""
    facts = {
        "shape": size, "strides": (plane.line_size, 1 if bits <= 8 else 2),
        "typestr": "|u1" if bits <= 8 else "<u2", "data": (plane.buffer_ptr, True),
        "version": 3, "stream": _DECODERS,
    }  # fmt: skip
    return SimpleNamespace(__cuda_array_interface__=facts, plane=plane)


def planes_on_gpu(frame: DecodedFrame, device: str | None) -> tuple[Buffer, ...]:
    """Return Y, and CbCr with its pairs in rows, or Cb and Cr, which then are as large as Y.

    Samples of two bytes have an axis for them.
    """
    planes, bits = frame.planes, frame.sw_format.components[0].bits
    sizes = [(frame.height, frame.width)] * 3
    if len(planes) == 2:
        sizes = [sizes[0], (frame.height // 2, frame.width)]
    return tuple(
        from_dlpack(_gpu_plane(plane, size, bits), device=device)
        for plane, size in zip(planes, sizes, strict=True)
    )


def narrowed(words: Buffer, bits: int, full: bool, chroma: bool, shift: int) -> Buffer:
    """Round samples of two bytes, and free them; as ``color`` does it with those of the host."""
    made = buffer_zeros(words.shape[:2], "u8", device=words.device)
    middle, offset, scale = 0.0, 0.0, 1.0 / (1 << bits - 8)
    if full:
        middle, offset = (float(1 << bits - 1), 128.0) if chroma else (0.0, 0.0)
        scale = 255.0 / ((1 << bits) - 1)
    params = {"step": float(1 << shift), "middle": middle, "scale": scale, "offset": offset}
    _NARROW.run([words], made, params)
    words.free()
    return made


def stacked(planes: tuple[Buffer, ...]) -> Buffer:
    """Return Y, Cb and Cr of every pixel as one buffer, and free them."""
    made = buffer_zeros((*planes[0].shape, 3), "u8", device=planes[0].device)
    _STACKED.run(list(planes), made)
    for plane in planes:
        plane.free()
    return made


def joined(planes: list[Buffer]) -> Buffer:
    """Return Y and CbCr as one buffer, and free them."""
    luma, pairs = planes
    height, width = luma.shape
    made = buffer_zeros((height * 3 // 2, width), "u8", device=luma.device)
    _JOINED.run(planes, made, {"height": height})
    luma.free()
    pairs.free()
    return made
