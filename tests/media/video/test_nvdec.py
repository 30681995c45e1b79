"""Frames in the memory of a GPU, from a decoder whose "GPU" is the processor."""

from __future__ import annotations

import av
import numpy as np
import pytest

from dala.gpu.compute.engines import instances
from dala.media import gpu, video
from dala.media.video import color, deep
from dala.media.video.decoding import nvdec
from tests.engine.cuda.conftest import engine

__all__ = ["engine"]

RNG = np.random.default_rng(8)


#: What is the same for frames of the host and of the GPU.
_SAME = (
    "width", "height", "colorspace", "color_range", "color_primaries", "color_trc", "side_data",
    "interlaced_frame", "rotation", "is_corrupt",
)  # fmt: skip


class GpuFrame:
    """A frame as PyAV gives it with ``is_hw_owned``: planes of the GPU with padded rows."""

    def __init__(self, frame: av.VideoFrame, layout: str) -> None:
        self.host = frame.reformat(format=layout)
        self.sw_format = self.host.format
        self.format = type("Format", (), {"name": "cuda", "components": ()})()
        for name in _SAME:
            setattr(self, name, getattr(self.host, name))
        self.pts, self.time_base = frame.pts, frame.time_base

        self.planes = self.host.planes

    def reformat(self, **options):
        return self.host.reformat(**options)


@pytest.fixture
def device(engine, monkeypatch):
    monkeypatch.setitem(instances.by_name, "cuda:7", engine)
    return engine


def decoded(layout: str, size=(96, 64)) -> GpuFrame:
    picture = RNG.integers(0, 256, (size[1], size[0], 3), np.uint8)
    frame = av.VideoFrame.from_ndarray(picture, "rgb24")
    frame.colorspace, frame.color_range = 1, 1
    frame.pts, frame.time_base = 3, 1
    return GpuFrame(frame, layout)


@pytest.mark.parametrize("range", ["limited", "full"])
@pytest.mark.parametrize("layout", ["nv12", "p010le", "p016le", "yuv444p", "yuv444p16le"])
def test_planes_equal_those_of_the_host(device, layout, range):
    frame = decoded(layout)
    colors = color.ColorInfo(range=range)
    before = device.stats()
    here = color.planes_of(frame, colors, device.id)
    after = device.stats()
    assert [after[k] - before[k] for k in ("uploaded_bytes", "downloaded_bytes")] == [0, 0]
    there = color.planes_of(frame.host, colors)
    assert here.format == there.format == ("nv12" if len(frame.planes) == 2 else "yuv444")
    for one, other in zip(here.arrays, there.arrays, strict=True):
        assert np.array_equal(one.numpy(), other)
    joined = color.to_planes(here, device.id)
    wanted = color.to_planes(there, "cpu")
    assert (joined is None) == (wanted is None) == (len(frame.planes) == 3)
    if joined is not None:
        assert np.array_equal(joined.numpy(), wanted.numpy())


@pytest.mark.parametrize("layout", ["nv12", "p010le", "yuv444p16le"])
def test_deep_planes_equal_those_of_the_host(device, layout):
    frame, colors = decoded(layout), color.ColorInfo()
    here, there = deep.deep_planes(frame, colors, device.id), deep.deep_planes(frame.host, colors)
    for one, other in zip(here.arrays, there.arrays, strict=True):
        assert np.array_equal(np.asarray(one), other)
    assert (here.bits, here.shift, here.matrix) == (there.bits, there.shift, there.matrix)
    assert np.array_equal(
        deep.to_rgba(here, device.id, deep=True).numpy(),
        deep.to_rgba(there, device.id, deep=True).numpy(),
    )


def test_other_frames_are_downloaded():
    assert nvdec.on_host(decoded("yuv422p"), always=False).format.name == "yuv422p"
    frame = decoded("nv12")
    assert nvdec.on_host(frame, always=False) is frame
    host = nvdec.on_host(frame)
    assert (host.format.name, host.pts, host.time_base) == ("nv12", 3, 1)
    assert nvdec.on_host(host) is host


@pytest.fixture
def clip(tmp_path):
    path = tmp_path / "clip.mp4"
    with video.write(path, fps=24, device="cpu") as sink:
        for shade in range(12):
            sink.write(np.full((64, 96, 3), shade * 20, np.uint8))
    return path


def test_reading_keeps_frames_on_the_gpu(device, clip, monkeypatch):
    """The decoder's frames are made GPU frames on their way into the queue."""
    from dala.media.video.decoding import input as opening
    from dala.media.video.decoding.decoder import Decoder

    with video.open(clip, device="cpu") as reader:
        wanted = [gpu.blur(frame, radius=2).numpy() for frame in reader]
    decode = Decoder._decoded
    monkeypatch.setattr(
        Decoder, "_decoded", lambda self: (GpuFrame(f, "nv12") for f in decode(self))
    )
    opened: dict[str, object] = {}

    def hardware(self):
        opened.update(opening.options_for(self._engine, True))

    monkeypatch.setattr(opening.VideoInput, "_hardware", hardware)
    monkeypatch.setattr(opening.VideoInput, "_pick", lambda self: self.container.streams.video[0])
    before = device.stats()
    with video.open(clip, device="cuda:7") as reader:
        assert reader.bits == 8
        frames = [gpu.blur(frame, radius=2) for frame in reader]
        assert reader.notices == ()
        reader.seek(0.2)
        assert next(reader).device == "cuda:7"
    after = device.stats()
    assert [after[k] - before[k] for k in ("uploaded_bytes", "downloaded_bytes")] == [0, 0]
    assert opened["device"] == "7"
    assert opened["is_hw_owned"] is True
    for frame, one in zip(frames, wanted, strict=True):
        assert np.array_equal(frame.pixels.numpy(), one)


def test_what_nvdec_leaves_to_the_cpu_is_said(device, clip, monkeypatch):
    """PyAV decodes on the CPU what NVDEC refuses: its frames are not on the GPU."""
    from dala.media.video.decoding.input import VideoInput

    monkeypatch.setattr(VideoInput, "_hardware", lambda self: None)
    monkeypatch.setattr(VideoInput, "_pick", lambda self: self.container.streams.video[0])
    said = "NVDEC does not decode such a video"
    with pytest.warns(UserWarning, match=said), video.open(clip, device="cuda:7") as reader:
        assert {frame.device for frame in reader} == {"cuda:7"}


def test_odd_sizes_are_left_to_the_cpu(device, tmp_path, monkeypatch):
    from dala.media.video.decoding.input import VideoInput

    monkeypatch.setattr(VideoInput, "_hardware", lambda self: None)
    monkeypatch.setattr(VideoInput, "_pick", lambda self: self.container.streams.video[0])
    path = tmp_path / "odd.mkv"
    with video.write(path, fps=24, codec="ffv1", device="cpu") as sink:
        sink.write(np.zeros((63, 95, 3), np.uint8))
    said = "as NVDEC cannot: the colors of odd sizes are wrong"
    with pytest.warns(UserWarning, match=said), video.open(path, device="cuda:7") as reader:
        assert next(reader).pixels.shape == (63, 95, 4)


def test_frames_are_downloaded_to_be_deinterlaced(device, clip, monkeypatch):
    from dala.media.video.decoding import input as opening
    from dala.media.video.decoding.decoder import Decoder

    decode = Decoder._decoded
    monkeypatch.setattr(
        Decoder, "_decoded", lambda self: (GpuFrame(f, "nv12") for f in decode(self))
    )
    monkeypatch.setattr(opening.VideoInput, "_hardware", lambda self: None)
    monkeypatch.setattr(opening.VideoInput, "_pick", lambda self: self.container.streams.video[0])
    with video.open(clip, device="cuda:7", deinterlace=True) as reader:
        assert len(list(reader)) == 12
        assert not any("NVDEC" in text for text in reader.notices)


def test_without_nvdec_the_cpu_decodes_and_says_so(device, clip):
    said = r"clip\.mp4: it is decoded on the CPU, as NVDEC cannot"
    with pytest.warns(UserWarning, match=said), video.open(clip, device="cuda:7") as reader:
        assert len(list(reader)) == 12


@pytest.mark.parametrize(
    ("preferred", "own"), [("libdav1d", "av1"), ("h264", "h264"), ("ffv1", None)]
)
def test_the_decoder_with_the_hardware_is_taken(preferred, own):
    context = av.CodecContext.create(preferred, "r")
    found = nvdec.codec_with("cuda", context)
    assert (found and found.name) == own
    assert nvdec.codec_with("videotoolbox", context) is None
